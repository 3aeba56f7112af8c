package cli

import (
	"io"
	"io/fs"
	"os"
)

// ReadBounded reads a file, or stdin for "-". long: it has more than most bytes.
func ReadBounded(stdin io.Reader, name string, most int64) (text []byte, long bool, err error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, false, err
		}
		defer f.Close()
		in = f
	}
	text, err = io.ReadAll(io.LimitReader(in, most+1))
	return text, int64(len(text)) > most, err
}

// ReplaceFile writes a file whole or not at all.
func ReplaceFile(name string, data []byte, mode fs.FileMode) error {
	if err := os.WriteFile(name+".new", data, mode); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}
