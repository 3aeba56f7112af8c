package service

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// The words are those of sd_notify(3), and nobody else inherits the socket.
func TestManagerHears(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	ear, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "3000000")
	t.Setenv("WATCHDOG_PID", strconv.Itoa(os.Getpid()))
	m, err := Connect()
	if err != nil || m.every != time.Second {
		t.Fatal(m, err)
	}
	if s := os.Getenv("NOTIFY_SOCKET"); s != "" {
		t.Errorf("a child would speak to %s", s)
	}
	m.Ready()
	if first, second := m.Beat(), m.Beat(); first > time.Second || second > first {
		t.Errorf("wants to be called after %v, then %v", first, second)
	}
	buf := make([]byte, 64)
	for _, want := range []string{"READY=1", "WATCHDOG=1"} {
		if n, err := ear.Read(buf); err != nil || string(buf[:n]) != want {
			t.Errorf("%q, %v; want %q", buf[:n], err, want)
		}
	}
}

// A manager that does not read holds nobody up; no manager is none; another process's
// watchdog is not ours; nonsense is refused.
func TestManagerThatIsNone(t *testing.T) {
	t.Setenv("NOTIFY_SOCKET", "")
	if m, err := Connect(); m != nil || err != nil {
		t.Error(m, err)
	}
	path := filepath.Join(t.TempDir(), "s")
	ear, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer ear.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "x")
	if _, err := Connect(); err == nil {
		t.Error("WATCHDOG_USEC=x is taken")
	}
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "3000000")
	t.Setenv("WATCHDOG_PID", "1")
	m, err := Connect()
	if err != nil || m.every != 0 || m.Beat() != noBeat {
		t.Fatal(m, err)
	}
	done := make(chan bool)
	go func() {
		for range 2000 {
			m.Ready()
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Error("it waits for a manager that does not read")
	}
}
