package mqtt

import (
	"io"
	"net/url"
	"os"
	"path/filepath"
	"ringlight/proto"
	"strings"
)

// maxLogin bounds a file with user and password. chosen: no broker's are near it.
const maxLogin = 4096

// login reads user and password of a site that has those; without a file there are none. user
// is what the broker's URL names.
func (c *Config) login(user string) (name, password string, err error) {
	if c.PasswordFile == "" {
		return "", "", nil
	}
	bad := func(limit, format string, args ...any) (string, string, error) {
		return "", "", proto.Wrong("password_file", limit, format, args...)
	}
	f, err := os.Open(c.PasswordFile)
	if err != nil {
		return bad("a readable file", "%v", err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return bad("a readable file", "%v", err)
	}
	if mode := st.Mode().Perm(); mode&0o077 != 0 && !credential(c.PasswordFile) {
		return bad("a file that only its owner may read: chmod 600", "%s has mode %04o", c.PasswordFile, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxLogin+1))
	if err != nil {
		return bad("a readable file", "%v", err)
	}
	line := strings.TrimRight(string(text), "\r\n")
	if len(text) > maxLogin || strings.ContainsAny(line, "\r\n\x00") || line == "" {
		return bad("one line, user:password", "%s has another form", c.PasswordFile)
	}
	if user != "" {
		return user, line, nil
	}
	name, password, ok := strings.Cut(line, ":")
	if !ok || name == "" || password == "" {
		return bad("one line, user:password, or the password alone where the broker's URL names the user", "%s has another form", c.PasswordFile)
	}
	return name, password, nil
}

// credential: a service manager hands a file over, to nobody else; its mode shows how.
func credential(file string) bool {
	dir := os.Getenv("CREDENTIALS_DIRECTORY")
	return dir != "" && filepath.Dir(filepath.Clean(file)) == filepath.Clean(dir)
}

// User is the name by which the broker knows us, empty where it asks for none.
func (c *Config) User() (string, error) {
	u, err := url.Parse(c.Broker)
	if err != nil || c.PasswordFile == "" {
		return "", nil // of what is wrong with it Check tells
	}
	name, _, err := c.login(u.User.Username())
	return name, err
}
