package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Goal: the password of a box is in no recording and no log, in clear or as the box
// echoes it, nor in what config prints; and recordings are for their owner alone, also
// in the place of a file that others could read.
// Method: a box that knows nobody, and says with what it was asked.
func TestPasswordIsInNoRecording(t *testing.T) {
	const secret = "swordfish"
	box, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer box.Close()
	logins := make(chan string, 64)
	go func() {
		for {
			conn, err := box.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					said, err := r.ReadString(';')
					if err != nil {
						return
					}
					tag := strings.Split(said+":::::", ":")[3]
					fmt.Fprintf(conn, "\r\n\n   box 26-01-01 00:00:00\r\nM  %s DENY\r\n   PIUI\r\n   \"%s\"\r\n;", tag, said)
					select {
					case logins <- said:
					default:
					}
				}
			}()
		}
	}()
	text := fmt.Sprintf(`{"broker":"","state":%q,"log_level":"error","board":{"kind":"box","ports":8,
		"box":{"protocol":"tl1","address":%q,"user":"u","password_file":%q}}}`, filepath.Join(t.TempDir(), "state"), box.Addr(), write(t, "pw", secret+"\n"))
	file := write(t, "c.json", text)
	cfg, err := readConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	recording := write(t, "all.rec", "readable by all")
	logs, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func(old *os.File) { os.Stderr = old }(os.Stderr)
	os.Stderr = logs
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- cfg.run(ctx, recording, cfg.logger().Logger, startedAs("")) }()
	for range 2 {
		select {
		case said := <-logins:
			if !strings.Contains(said, secret) {
				t.Fatalf("%q is no login", said)
			}
		case <-ctx.Done():
			t.Fatal("nobody logs in")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if log, err := os.ReadFile(logs.Name()); err != nil || strings.Contains(string(log), secret) || !strings.Contains(string(log), "denied the command: PIUI") {
		t.Errorf("log: %s, %v", log, err)
	}
	raw, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(raw, []byte(secret)); n != 0 || !bytes.Contains(raw, []byte("::***;")) {
		t.Errorf("%d times in the recording of %d bytes", n, len(raw))
	}
	if info, err := os.Stat(recording); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the recording is %v, %v", info.Mode(), err)
	}
	if code, out, errs := command(t, "config", "-config", file); code != 0 || strings.Contains(out+errs, secret) {
		t.Errorf("config: exit %d, %s%s", code, out, errs)
	}
	url := write(t, "url.json", `{"broker":"mqtt://u:`+secret+`@127.0.0.1:1883"}`)
	if code, out, errs := command(t, "config", "-json", "-config", url); code != 2 || strings.Contains(out+errs, secret) || !strings.Contains(errs, "broker:") {
		t.Errorf("a password in the URL: exit %d, %s%s", code, out, errs)
	}
}
