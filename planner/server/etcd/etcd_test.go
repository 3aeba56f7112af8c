package etcd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"ringlight/planner"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/sim/freeport"
)

// patience bounds hangs, not speed.
const patience = 40 * time.Second

// members are a cluster of etcd, each a process.
type members struct {
	t     *testing.T
	dir   string
	urls  []string
	peers []string
	runs  []*exec.Cmd
	token string
}

func freeURLs(n int) (urls []string) {
	for range n {
		urls = append(urls, "http://"+freeport.Address())
	}
	return urls
}

// startEtcd starts n members; without etcd the test is skipped.
func startEtcd(t *testing.T, n int) *members {
	t.Helper()
	if _, err := exec.LookPath("etcd"); err != nil {
		t.Skip("there is no etcd (package etcd-server)")
	}
	urls := freeURLs(2 * n)
	m := &members{t: t, dir: t.TempDir(), urls: urls[:n], peers: urls[n:], runs: make([]*exec.Cmd, n), token: fmt.Sprint(rand.Uint64())}
	for i := range n {
		m.start(i)
	}
	t.Cleanup(func() {
		for i := range m.runs {
			m.kill(i)
			if log, _ := os.ReadFile(filepath.Join(m.dir, fmt.Sprintf("m%d.log", i))); t.Failed() {
				t.Logf("etcd m%d at its end: %s", i, log[max(0, len(log)-2000):])
			}
		}
	})
	return m
}

func (m *members) start(i int) {
	m.t.Helper()
	var all []string
	for k, p := range m.peers {
		all = append(all, fmt.Sprintf("m%d=%s", k, p))
	}
	name := fmt.Sprintf("m%d", i)
	c := exec.Command("etcd", "--name", name, "--data-dir", filepath.Join(m.dir, name), "--listen-client-urls", m.urls[i], "--advertise-client-urls", m.urls[i],
		"--listen-peer-urls", m.peers[i], "--initial-advertise-peer-urls", m.peers[i], "--initial-cluster", strings.Join(all, ","), "--initial-cluster-token", m.token, "--initial-cluster-state", "new",
		"--auto-compaction-mode", "periodic", "--auto-compaction-retention", "1h", "--quota-backend-bytes", fmt.Sprint(64<<20), "--unsafe-no-fsync")
	log, err := os.Create(filepath.Join(m.dir, name+".log"))
	if err != nil {
		m.t.Fatal(err)
	}
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.runs[i] = c
}

func (m *members) kill(i int) {
	if c := m.runs[i]; c != nil {
		_ = c.Process.Signal(syscall.SIGCONT)
		_ = c.Process.Kill()
		_ = c.Wait()
		m.runs[i] = nil
	}
}

func (m *members) config(who string) Config {
	return Config{Endpoints: m.urls, Name: "ringlight", Who: who, Log: slog.New(slog.DiscardHandler)}
}

func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := Open(ctx, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// until waits for a standing.
func until(t *testing.T, s *Store, what string, so func(server.Standing) bool) server.Standing {
	t.Helper()
	end := time.After(patience)
	for {
		st, changed := s.Standing()
		if so(st) {
			return st
		}
		select {
		case <-changed:
		case <-end:
			t.Fatalf("not %s within %v: %+v", what, patience, st)
		}
	}
}

func leads(st server.Standing) bool { return st.Reign != 0 }

func write(t *testing.T, s *Store, records ...planner.Record) {
	t.Helper()
	if err := s.Commit(records); err != nil {
		t.Fatal(err)
	}
}

func rec(key, value string) planner.Record {
	r := planner.Record{Key: key}
	if value != "" {
		r.Value = []byte(value)
	}
	return r
}

func load(t *testing.T, s *Store) planner.State {
	t.Helper()
	st, err := s.Load()
	if err != nil {
		t.Fatal(err)
	}
	return st
}

// Goal: of two that have the store open one writes, the other reads along, and leads
// when the first one resigns or is cut off; the one that was cut off writes nothing
// more, and one that does not look would (the planted defect). Method: one member of
// etcd, batches of some records and of parts, snapshots every 4 batches; the leader's
// key is taken away behind its back.
func TestOneWritesTheOthersReadAlong(t *testing.T) {
	t.Parallel()
	m := startEtcd(t, 1)
	cfg := m.config("a")
	cfg.every = 4
	a := open(t, cfg)
	until(t, a, "elected", leads)
	cfg.Who = "b"
	b := open(t, cfg)
	until(t, b, "told who leads", func(st server.Standing) bool { return st.Leader == "a" && st.Reign == 0 })
	if err := b.Commit([]planner.Record{rec("x", "1")}); !errors.Is(err, server.ErrNotLeading) {
		t.Fatalf("one that does not lead wrote: %v", err)
	}
	long := make([]byte, 5<<19)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(long)
	write(t, a, rec("term", "7"), rec("empty", "0"), planner.Record{Key: "e", Value: []byte{}})
	for i := range 10 {
		write(t, a, rec(fmt.Sprint("k", i%3), fmt.Sprint(i)), rec("gone", fmt.Sprint(i)), rec("gone", ""), planner.Record{Key: "long", Value: long[i:]})
	}
	write(t, a, rec("last", "1"))
	until(t, b, "at the last batch", func(st server.Standing) bool { return st.Batches == 12 })
	// A copy is the same store, and is not written over.
	to := m.config("copier")
	to.Name = "copy"
	if err := Place(to).Make(t.Context(), load(t, a)); err != nil {
		t.Fatal(err)
	}
	if copied, err := Place(to).Read(t.Context()); err != nil || !reflect.DeepEqual(copied, load(t, a)) {
		t.Errorf("the copy has %d records, %v", len(copied), err)
	}
	if err := Place(to).Make(t.Context(), nil); proto.AsError(err).Field != "store" {
		t.Errorf("a store that is there was written over: %v", err)
	}
	if x, y := load(t, a), load(t, b); !reflect.DeepEqual(x, y) || len(x) != 8 {
		t.Fatalf("one reads %d records, the other wrote %d", len(y), len(x))
	}
	began := time.Now()
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	until(t, b, "elected", leads)
	t.Logf("resigned to elected: %v", time.Since(began).Round(time.Millisecond))
	write(t, b, rec("last", "2"))

	// Somebody else is elected while b is not looking.
	c := open(t, m.config("c"))
	if !reflect.DeepEqual(load(t, b), load(t, c)) {
		t.Error("what a new one reads is not what was written")
	}
	if _, err := m.client().Delete(context.Background(), "ringlight/leader"); err != nil {
		t.Fatal(err)
	}
	until(t, c, "elected", leads)
	if err := b.Commit([]planner.Record{rec("last", "3")}); !errors.Is(err, server.ErrNotLeading) {
		t.Errorf("one that leads no more wrote: %v", err)
	}
	write(t, c, rec("last", "4"))
	if got := string(load(t, c).Get("last")); got != "4" {
		t.Errorf("last is %s", got)
	}

	// The planted defect: found by what it does to the one who leads.
	cfg = m.config("defect")
	cfg.unguarded = true
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	b.Close()
	d := open(t, cfg)
	until(t, d, "elected", leads)
	e := open(t, m.config("e"))
	if _, err := m.client().Delete(context.Background(), "ringlight/leader"); err != nil {
		t.Fatal(err)
	}
	until(t, e, "elected", leads)
	write(t, e, rec("last", "5"))
	if err := d.Commit([]planner.Record{rec("last", "6")}); err != nil {
		t.Errorf("the defect is not planted: %v", err)
	}
	if err := e.Commit([]planner.Record{rec("last", "7")}); err == nil {
		t.Error("a leader that does not look was not noticed")
	}
}

// Goal: a leader whose store takes no writes leads no more and says why, though its lease
// could be renewed; nobody else is elected, and when there is space again somebody is.
// Method: etcd is told that it has no space, and then that it has.
func TestWhoCannotWriteDoesNotLead(t *testing.T) {
	t.Parallel()
	m := startEtcd(t, 1)
	s := open(t, m.config("a"))
	until(t, s, "elected", leads)
	write(t, s, rec("x", "1"))
	maintenance := pb.NewMaintenanceClient(m.client().ActiveConnection())
	space := func(do pb.AlarmRequest_AlarmAction) {
		t.Helper()
		if _, err := maintenance.Alarm(t.Context(), &pb.AlarmRequest{Action: do, Alarm: pb.AlarmType_NOSPACE}); err != nil {
			t.Fatal(err)
		}
	}
	space(pb.AlarmRequest_ACTIVATE)
	if err := s.Commit([]planner.Record{rec("x", "2")}); !errors.Is(err, server.ErrNotLeading) {
		t.Errorf("without space: %v", err)
	}
	if st, _ := s.Standing(); leads(st) || st.Away == nil || !strings.Contains(st.Away.Error(), "space") {
		t.Errorf("without space: %+v", st)
	}
	space(pb.AlarmRequest_DEACTIVATE)
	until(t, s, "elected again", func(st server.Standing) bool { return leads(st) && st.Away == nil })
	write(t, s, rec("x", "3"))
}

func (m *members) client() *clientv3.Client {
	m.t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: m.urls})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { c.Close() })
	return c
}

// Goal: a store is refused in another cluster than its own, and so are endpoints of two
// clusters; when it was brought there on purpose it is adopted. Method: two clusters of
// one member, the store's key of the cluster written as that of the other.
func TestAnotherClusterIsRefused(t *testing.T) {
	t.Parallel()
	one, two := startEtcd(t, 1), startEtcd(t, 1)
	a := open(t, one.config("a"))
	until(t, a, "elected", leads)
	write(t, a, rec("term", "7"))
	a.Close()
	both := one.config("b")
	both.Endpoints = []string{one.urls[0], two.urls[0]}
	check := func(cfg Config, want string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		for {
			s, err := Open(ctx, cfg)
			if e := proto.AsError(err); err != nil && e.Field == "store" && strings.Contains(err.Error(), want) {
				return
			}
			if err != nil || ctx.Err() != nil {
				t.Fatalf("%v, want %q", err, want)
			}
			s.Close() // the second one was not up yet
		}
	}
	check(both, "of one cluster")
	if _, err := one.client().Put(context.Background(), "ringlight/cluster", "00000000000000aa"); err != nil {
		t.Fatal(err)
	}
	check(one.config("c"), "00000000000000aa")
	if err := Adopt(context.Background(), one.config("c")); err != nil {
		t.Fatal(err)
	}
	until(t, open(t, one.config("c")), "elected", leads)
}

// Goal: records survive being packed, whatever they are; what was cut is refused.
func FuzzPack(f *testing.F) {
	f.Add([]byte("key"), []byte("value"), 3)
	f.Add([]byte(""), []byte{}, 0)
	f.Fuzz(func(t *testing.T, key, value []byte, cut int) {
		in := []planner.Record{{Key: string(key), Value: append([]byte{}, value...)}, {Key: "gone"}, {Key: "x", Value: []byte{}}}
		packed := pack(in)
		out, err := unpack(packed)
		if err != nil || !reflect.DeepEqual(in, out) {
			t.Fatalf("%q became %q, %v", in, out, err)
		}
		if cut >= 0 && cut < len(packed) {
			if out, err := unpack(packed[:cut]); err == nil && len(out) == len(in) {
				t.Fatalf("cut at %d of %d it reads as whole", cut, len(packed))
			}
		}
		_, _ = unpack(value)
	})
}
