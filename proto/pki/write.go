package pki

import (
	"errors"
	"os"
	"path/filepath"

	"ringlight/proto"
)

// writer writes several files, all or none.
type writer struct {
	files []file
	// What brokers are told along with it.
	issued           []issued
	revoked, welcome []string // names
	lists            []byte   // of revoked certificates, PEM
	users            map[string]string
}

type file struct {
	path    string
	mode    os.FileMode
	content []byte
	fresh   bool
}

// fresh has a file written that must not be there yet.
func (w *writer) fresh(path string, mode os.FileMode, content []byte) {
	w.files = append(w.files, file{path, mode, content, true})
}

// replace has a file written, in the place of one that is there.
func (w *writer) replace(path string, mode os.FileMode, content []byte) {
	w.files = append(w.files, file{path, mode, content, false})
}

// content is what a file is going to hold, nil when it is not among those.
func (w *writer) content(path string) []byte {
	for _, f := range w.files {
		if f.path == path {
			return f.content
		}
	}
	return nil
}

// settle writes what was asked for. Each file is whole before it has its name;
// after an error none of the new ones is left.
func (w *writer) settle() (err error) {
	files := w.files
	w.files = nil
	var made []string
	defer func() {
		if err != nil {
			for _, name := range made {
				err = errors.Join(err, os.Remove(name))
			}
		}
	}()
	for _, f := range files {
		tmp, err := f.draft()
		if err != nil {
			return err
		}
		if f.fresh {
			err = os.Link(tmp, f.path) // unlike a rename it overwrites nothing
			err = errors.Join(err, os.Remove(tmp))
			if errors.Is(err, os.ErrExist) {
				return proto.Wrong("name", "another name, or another -out", "%s is there already, and nothing is overwritten", f.path)
			}
			if err == nil {
				made = append(made, f.path)
			}
		} else {
			err = os.Rename(tmp, f.path)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// draft writes a file under a passing name.
func (f *file) draft() (string, error) {
	t, err := os.CreateTemp(filepath.Dir(f.path), ".new-*") // 0600
	if err != nil {
		return "", err
	}
	_, err = t.Write(f.content)
	if err = errors.Join(err, t.Chmod(f.mode), t.Sync(), t.Close()); err != nil {
		err = errors.Join(err, os.Remove(t.Name()))
	}
	return t.Name(), err
}
