package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
)

// What is not acceptable exits 2, names the field and the limit, and leaves
// nothing behind.
func TestBadCommandLines(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) string {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, c := range []struct {
		args, says string
	}{
		{"", "help"},
		{"walk", "walk"},
		{"run -nodes 3", "nodes"},
		{"run extra", "extra"},
		{"run -broker mqtt://192.0.2.1", "-insecure"},
		{"run -broker tcp://127.0.0.1", "broker"},
		{"run -broker mqtt://127.0.0.1:1 -listen 127.0.0.1:0", "listen"},
		{"run -listen 0.0.0.0:18830", "loopback"},
		{"run -state= -listen 127.0.0.1:0", "state"},
		{"run -listen 127.0.0.1:0 -http 0.0.0.0:80 -insecure", "-cert"},
		{"run -listen 127.0.0.1:0 -gnmi 0.0.0.0:9339 -insecure", "-cert"},
		{"run -listen 127.0.0.1:0 -gnmi 9339", "host:port"},
		{"run -fabric-file nowhere.json", "fabric-file"},
		{"run -fabric-file " + write("bad.json", `{"name":"f1","colour":"blue"}`), "colour"},
		{"run -fabric-file " + write("tp.json", strings.Replace(string(fabric.Default().Encode()), `"tp": 32`, `"tp": 31`, 1)), "tp"},
		{"store", "export [FILE]"},
		{"store burn", "burn"},
		{"store check -state nowhere.db", "nowhere.db"},
		{"store import nowhere.jsonl", "nowhere.jsonl"},
		{"store copy bolt:a.db", "copy FROM TO"},
		{"store copy bolt:a.db zookeeper:x", "etcd:URL"},
		{"store copy bolt:nowhere.db bolt:b.db", "nowhere.db"},
		{"store adopt", "etcd:URL"},
		{"run -cache maybe", "on or off"},
		{"store check -store etcd:http://192.0.2.1:2379", "https"},
		{"run -store etcd:http://127.0.0.1:1", "-broker"},
		{"run -broker mqtt://127.0.0.1:1 -store etcd:http://127.0.0.1:1 -store-name /", "store_name"},
		{"run -broker mqtt://127.0.0.1:1 -store etcd:http://127.0.0.1:1,https://127.0.0.1:2", "all https"},
		{"run -broker mqtt://127.0.0.1:1 -store etcd:127.0.0.1:1", "http://host:port"},
		{"run -ca x -broker mqtt://127.0.0.1", "mqtts"},
	} {
		var out, errs bytes.Buffer
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second) // one that is accepted by mistake would run for ever
		defer cancel()
		code := program().Run(ctx, strings.Fields(c.args), cli.Terminal{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != cli.BadInput || !strings.Contains(errs.String(), c.says) || out.Len() > 0 {
			t.Errorf("%s: exit %d, %q, want 2 and %q; stdout %q", c.args, code, errs.String(), c.says, out.String())
		}
	}
	if found, _ := filepath.Glob("*.db"); len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
}

func TestErrorsAsJSON(t *testing.T) {
	var out bytes.Buffer
	code := program().Run(context.Background(), []string{"run", "-json", "-broker", "mqtt://192.0.2.1"}, cli.Terminal{Out: &out, Err: io.Discard})
	var got struct {
		Error struct{ Code, Field, Limit, Message string }
	}
	if err := json.Unmarshal(out.Bytes(), &got); err != nil || code != cli.BadInput || got.Error.Field != "broker" ||
		got.Error.Limit == "" || got.Error.Code != "invalid" || got.Error.Message == "" {
		t.Errorf("exit %d, %s, %v", code, out.String(), err)
	}
}

// start runs a command and gives its output line by line.
func start(t *testing.T, args ...string) (lines chan string, stop func() int) {
	t.Helper()
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int, 1)
	var errs bytes.Buffer
	go func() {
		done <- program().Run(ctx, args, cli.Terminal{Out: w, Err: &errs})
		w.CloseWithError(io.EOF)
	}()
	lines = make(chan string, 100)
	go func() {
		defer close(lines)
		dec := json.NewDecoder(r)
		for {
			var line json.RawMessage
			if dec.Decode(&line) != nil {
				return
			}
			lines <- string(line)
		}
	}()
	return lines, func() int {
		cancel()
		code := <-done
		if code != cli.Done {
			t.Log(errs.String())
		}
		return code
	}
}

// Without a fabric nothing is planned, and nothing stored. With one: the embedded
// broker; the second start, of the same planner, needs no file; a signal ends with 0.
func TestRunTwice(t *testing.T) {
	state := filepath.Join(t.TempDir(), "planner.db")
	var last struct {
		Fabric       string
		Nodes, K, TP int
		Planner      uint64
		Broker       string
	}
	var none bytes.Buffer
	if code := program().Run(context.Background(), []string{"run", "-listen", "127.0.0.1:0", "-state", state}, cli.Terminal{Out: io.Discard, Err: &none}); code != cli.BadInput || !strings.Contains(none.String(), "ocsctl fabric new") {
		t.Errorf("without a fabric: exit %d: %s", code, none.String())
	}
	args := []string{"run", "-json", "-listen", "127.0.0.1:0", "-state", state}
	for again := 1; again <= 2; again++ {
		was, more := last.Planner, []string{"-fabric-file", file(t, string(fabric.Default().Encode()))}
		lines, stop := start(t, append(args, more[:2*(2-again)]...)...)
		if err := json.Unmarshal([]byte(<-lines), &last); err != nil {
			t.Fatal(err)
		}
		if last.Fabric != "f1" || last.Nodes != 64 || last.K != 2 || last.TP != 32 || again == 2 && last.Planner != was {
			t.Errorf("start %d: %+v", again, last)
		}
		if code := stop(); code != cli.Done {
			t.Errorf("exit %d", code)
		}
	}
	// The store knows its fabric; another one is refused.
	other, err := fabric.New(fabric.Params{Name: "f1", Nodes: 16, GPUsPerNode: 4, K: 2, TP: 32})
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	code := program().Run(context.Background(), []string{"run", "-fabric-file", "-", "-listen", "127.0.0.1:0", "-state", state},
		cli.Terminal{In: bytes.NewReader(other.Encode()), Out: io.Discard, Err: &errs})
	if code != cli.BadInput || !strings.Contains(errs.String(), "fabric") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// What was attempted and failed exits 1.
func TestPortInUse(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var errs bytes.Buffer
	code := program().Run(context.Background(), []string{"run", "-fabric-file", file(t, string(fabric.Default().Encode())), "-listen", l.Addr().String(), "-state", filepath.Join(t.TempDir(), "p.db")},
		cli.Terminal{Out: io.Discard, Err: &errs})
	if code != cli.Failed || !strings.Contains(errs.String(), "in use") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

func TestHelpHasAnExample(t *testing.T) {
	for _, args := range [][]string{{"run", "-h"}, {"store", "-h"}, {"config", "-h"}} {
		var out bytes.Buffer
		if code := program().Run(context.Background(), args, cli.Terminal{Out: &out, Err: io.Discard}); code != cli.Done || !strings.Contains(out.String(), "ocs-planner "+args[0]) {
			t.Errorf("%v: exit %d, %s", args, code, out.String())
		}
	}
}
