package mqtt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/proto"
)

// Goal: user and password come from a file that its owner alone may read, and from nowhere
// else. Method: files and URLs, each with one thing wrong; the refusal names field, file and mode.
func TestLoginIsAFileOfItsOwner(t *testing.T) {
	dir := t.TempDir()
	for i, c := range []struct {
		broker, text string
		mode         os.FileMode
		user, pass   string
		wants        []string // of the refusal
	}{
		{"mqtt://127.0.0.1", "f1/n/7:se:cret\n", 0o600, "f1/n/7", "se:cret", nil},
		{"mqtt://127.0.0.1", "f1/n/7:x\r\n", 0o400, "f1/n/7", "x", nil},
		{"mqtt://ops@127.0.0.1", "se:cret", 0o600, "ops", "se:cret", nil},
		{"mqtt://f1%2Fn%2F7@127.0.0.1,mqtt://f1%2Fn%2F7@localhost", "x", 0o600, "f1/n/7", "x", nil},
		{"mqtt://127.0.0.1", "a:b", 0o640, "", "", []string{"password_file", "0640", "chmod 600"}},
		{"mqtt://127.0.0.1", "a:b", 0o604, "", "", []string{"password_file", "0604"}},
		{"mqtt://127.0.0.1", "ab", 0o600, "", "", []string{"password_file", "user:password"}},
		{"mqtt://127.0.0.1", ":b", 0o600, "", "", []string{"password_file"}},
		{"mqtt://127.0.0.1", "a:", 0o600, "", "", []string{"password_file"}},
		{"mqtt://127.0.0.1", "", 0o600, "", "", []string{"password_file"}},
		{"mqtt://127.0.0.1", "a:b\nc:d\n", 0o600, "", "", []string{"password_file", "one line"}},
		{"mqtt://127.0.0.1", "a:" + strings.Repeat("b", maxLogin), 0o600, "", "", []string{"password_file"}},
		{"mqtt://a:secret@127.0.0.1", "x", 0o600, "", "", []string{"broker", "password_file"}},
	} {
		file := filepath.Join(dir, string(rune('a'+i)))
		if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		cfg := Config{Broker: c.broker, ClientID: "c", PasswordFile: file}
		err := cfg.Check()
		if (err == nil) != (c.wants == nil) {
			t.Errorf("%d: %v", i, err)
		}
		for _, w := range c.wants {
			if err != nil && !strings.Contains(proto.AsError(err).Field+" "+err.Error()+" "+proto.AsError(err).Limit, w) {
				t.Errorf("%d: %q is not in %v", i, w, err)
			}
		}
		if err != nil {
			if c.wants[0] == "password_file" && c.mode&0o077 != 0 && !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%d: %v", i, err)
			}
			continue
		}
		list, err := cfg.endpoints()
		if err != nil {
			t.Fatal(err)
		}
		if user, pass, err := cfg.login(list[0].user); user != c.user || pass != c.pass || err != nil {
			t.Errorf("%d: %q %q %v", i, user, pass, err)
		}
		if user, err := cfg.User(); user != c.user || err != nil {
			t.Errorf("%d: %q %v", i, user, err)
		}
	}
	none := Config{Broker: "mqtt://a@127.0.0.1", ClientID: "c"}
	if err := none.Check(); err == nil || !strings.Contains(proto.AsError(err).Limit, "password_file") {
		t.Errorf("a user without a file: %v", err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir) // a service manager's, whose modes are its own
	given := Config{Broker: "mqtt://127.0.0.1", ClientID: "c", PasswordFile: filepath.Join(dir, "e")}
	if err := given.Check(); err != nil {
		t.Error(err)
	}
}
