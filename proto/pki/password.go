package pki

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ringlight/proto"
)

// usersName is the file by which brokers know passwords, in the form of mosquitto 2:
// user:$7$ROUNDS$SALT$HASH, PBKDF2 of SHA-512.
const usersName = "passwords"

const (
	passwordBytes = 24 // drawn at random, so that rounds need not be many
	saltBytes     = 12
	hashBytes     = 64
	rounds        = 101 // mosquitto's
	maxRounds     = 10_000
)

// Users are the names that may log in with a password, as a broker lists them.
type Users struct{ lines map[string]string }

// ReadUsers reads a file of users.
func ReadUsers(file string) (*Users, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, proto.Wrong("passwords", "a readable file of ocsctl pki password", "%v", err)
	}
	u := &Users{lines: map[string]string{}}
	for i, line := range slices.Collect(strings.Lines(string(raw))) { // none: all were taken away
		name, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), ":")
		if _, err := proto.ParseHolder(name); err != nil || !wellFormed(rest) {
			return nil, proto.Wrong("passwords", "lines of ocsctl pki password, NAME:$7$..", "line %d of %s", i+1, file)
		}
		u.lines[name] = rest
	}
	return u, nil
}

func parts(rest string) (n int, salt, hash []byte, ok bool) {
	p := strings.Split(rest, "$")
	if len(p) != 5 || p[0] != "" || p[1] != "7" {
		return 0, nil, nil, false
	}
	n, err := strconv.Atoi(p[2])
	salt, err1 := base64.StdEncoding.DecodeString(p[3])
	hash, err2 := base64.StdEncoding.DecodeString(p[4])
	return n, salt, hash, errors.Join(err, err1, err2) == nil && n > 0 && n <= maxRounds && len(salt) > 0 && len(hash) == hashBytes
}

func wellFormed(rest string) bool { _, _, _, ok := parts(rest); return ok }

// Line is what is known of a user; it is another when the password is another, and empty
// when there is no such user any more.
func (u *Users) Line(user string) string { return u.lines[user] }

// Check reports whether a password is a user's.
func (u *Users) Check(user, password string) bool {
	n, salt, hash, ok := parts(u.lines[user])
	if !ok {
		return false
	}
	have, err := pbkdf2.Key(sha512.New, password, salt, n, hashBytes)
	return err == nil && subtle.ConstantTimeCompare(have, hash) == 1
}

// Passwords makes a password for each name, in a file of its own, and has the brokers' file
// of users know it, in the place of one that the name had.
func (f *Folder) Passwords(r Request) (files []string, err error) {
	if err := f.outOf(&r); err != nil {
		return nil, err
	}
	users, err := f.users()
	if err != nil {
		return nil, err
	}
	var w writer
	for _, h := range r.Names {
		if h.Fabric != f.Trust.Fabric || h.Kind == proto.HolderEnrol {
			return nil, proto.Wrong("name", "a node, a planner or an operator of fabric "+f.Trust.Fabric, "%q", h)
		}
		secret, salt := make([]byte, passwordBytes), make([]byte, saltBytes)
		_, err1 := rand.Read(secret)
		_, err2 := rand.Read(salt)
		password := base64.RawURLEncoding.EncodeToString(secret)
		hash, err3 := pbkdf2.Key(sha512.New, password, salt, rounds, hashBytes)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, err
		}
		users[h.String()] = fmt.Sprintf("$7$%d$%s$%s", rounds, base64.StdEncoding.EncodeToString(salt), base64.StdEncoding.EncodeToString(hash))
		file := filepath.Join(r.Out, fileName(h.String())+".password")
		w.fresh(file, 0o600, []byte(h.String()+":"+password+"\n"))
		files = append(files, file)
	}
	w.users = users
	return files, f.settle(&w, f.Trust)
}

// users are the lines of the folder's own file; without one there are none.
func (f *Folder) users() (map[string]string, error) {
	u, err := ReadUsers(filepath.Join(f.Dir, usersName))
	if err != nil {
		if _, e := os.Stat(filepath.Join(f.Dir, usersName)); errors.Is(e, fs.ErrNotExist) {
			return map[string]string{}, nil
		}
		return nil, err
	}
	return u.lines, nil
}

func usersFile(users map[string]string) []byte {
	var list []string
	for name, rest := range users { // any order: sorted
		list = append(list, name+":"+rest+"\n")
	}
	slices.Sort(list)
	return []byte(strings.Join(list, ""))
}
