package mqtt

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/hooks/auth"
	"github.com/mochi-mqtt/server/v2/listeners"

	"ringlight/sim/freeport"
	"ringlight/sim/testbroker"
)

// testBroker is a broker that a test can kill and bring back on its port.
type testBroker interface {
	start(t *testing.T)
	kill(t *testing.T)
	url() string
}

// onEveryBroker runs a test against the embedded broker always, and against
// mosquitto where it is installed.
func onEveryBroker(t *testing.T, test func(t *testing.T, b testBroker)) {
	t.Run("embedded", func(t *testing.T) {
		b := &embedded{address: freeport.Address()}
		b.start(t)
		test(t, b)
	})
	t.Run("mosquitto", func(t *testing.T) {
		binary := findMosquitto()
		if binary == "" {
			t.Skip("mosquitto is not installed")
		}
		b := &mosquitto{binary: binary, address: freeport.Address()}
		b.start(t)
		test(t, b)
	})
}

func findMosquitto() string {
	if p, err := exec.LookPath("mosquitto"); err == nil {
		return p
	}
	if p := "/usr/sbin/mosquitto"; isFile(p) { // not on everybody's path
		return p
	}
	return ""
}

func isFile(p string) bool {
	st, err := os.Stat(p)
	return err == nil && !st.IsDir()
}

type embedded struct {
	address string
	hooks   []mochi.Hook
	server  *mochi.Server
}

func (b *embedded) url() string { return "mqtt://" + b.address }

func (b *embedded) start(t *testing.T) {
	t.Helper()
	b.server = mochi.New(&mochi.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	hooks := b.hooks
	if hooks == nil {
		hooks = []mochi.Hook{new(auth.AllowHook)}
	}
	for _, h := range hooks {
		if err := b.server.AddHook(h, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.server.AddListener(testbroker.Listener{Listener: listeners.NewTCP(listeners.Config{ID: "t", Address: b.address}), Server: b.server}); err != nil {
		t.Fatal(err)
	}
	if err := b.server.Serve(); err != nil {
		t.Fatal(err)
	}
	server := b.server
	t.Cleanup(func() {
		if b.server == server {
			server.Close()
		}
	})
}

func (b *embedded) kill(t *testing.T) {
	t.Helper()
	b.server.Close()
	b.server = nil
}

type mosquitto struct {
	binary, address string
	process         *exec.Cmd
}

func (b *mosquitto) url() string { return "mqtt://" + b.address }

func (b *mosquitto) start(t *testing.T) {
	t.Helper()
	host, port, _ := net.SplitHostPort(b.address)
	conf := filepath.Join(t.TempDir(), "mosquitto.conf")
	text := fmt.Sprintf("listener %s %s\nallow_anonymous true\npersistence false\nmax_queued_messages 10000\n", port, host)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(b.binary, "-c", conf)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b.process = cmd
	t.Cleanup(func() {
		if b.process == cmd {
			b.kill(t)
		}
	})
	deadline := time.After(10 * time.Second)
	for {
		conn, err := net.Dial("tcp", b.address)
		if err == nil {
			conn.Close()
			return
		}
		select {
		case <-deadline:
			t.Fatalf("mosquitto does not listen on %s: %v", b.address, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (b *mosquitto) kill(t *testing.T) {
	t.Helper()
	b.process.Process.Kill() // -9
	b.process.Wait()
	b.process = nil
}
