package server

import (
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

// office is an issuer without a planner, whose clock and answers are the test's.
type office struct {
	*issuer
	t      *testing.T
	folder *pki.Folder
	issued pki.Issued
	clock  time.Time
	said   []proto.CertAnswer
}

func newOffice(t *testing.T) *office {
	t.Helper()
	dir := t.TempDir()
	o := &office{t: t, clock: time.Now()}
	var err error
	if o.folder, err = pki.Init(filepath.Join(dir, "pki"), "f1", "cluster.example"); err != nil {
		t.Fatal(err)
	}
	if o.issued, err = o.folder.Issuer(pki.Request{Days: 30}, "a"); err != nil {
		t.Fatal(err)
	}
	o.begin(filepath.Join(dir, "state.trust.keys"))
	return o
}

// begin is a planner's next life, with the register in a file.
func (o *office) begin(file string) {
	o.t.Helper()
	r, err := openRegister(file)
	if err != nil {
		o.t.Fatal(err)
	}
	ca, _ := o.folder.Files()
	o.issuer = newIssuer(o.issued.KeyFile, ca, false, r, slog.New(slog.DiscardHandler))
	o.trust, o.now, o.send = func() *seal.Trust { return o.folder.Trust }, func() time.Time { return o.clock }, o.hear
	o.open()
	o.leads.Store(true)
	o.t.Cleanup(func() { r.file.Close() })
}

func (o *office) hear(p proto.Packet) error {
	a, _, err := o.folder.Trust.Issued(p.Payload, p.Topic)
	if err != nil {
		o.t.Fatal(err)
	}
	o.said = append(o.said, a)
	return nil
}

// Goal: nodes that are away keep no other from changing its key. Method: 1,000 nodes, of
// which only the last ten answer; all are to change.
func TestWhoIsAwayKeepsNobodyFromRenewal(t *testing.T) {
	o := newOffice(t)
	const nodes, away = 1000, 990
	for n := range proto.NodeID(nodes) {
		o.register.take(entry{Node: n, Public: proto.PublicKey{byte(n), byte(n >> 8), 1}, Issuer: o.public(), Since: o.clock.Unix(), Until: uint64(o.clock.Unix()) + 86400})
	}
	if err := o.folder.Renewal(); err != nil {
		t.Fatal(err)
	}
	asked := map[proto.NodeID]bool{}
	for range 2 * nodes / demandsAtOnce {
		o.demand()
		for _, a := range o.said {
			asked[a.Node] = true
		}
		o.said, o.clock = nil, o.clock.Add(time.Second)
	}
	for n := proto.NodeID(away); n < nodes; n++ {
		if !asked[n] {
			t.Errorf("node %d is not asked while others are away", n)
		}
	}
}
