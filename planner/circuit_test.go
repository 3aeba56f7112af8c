package planner

import (
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
)

func smallCore() *fabric.Core { return fabric.DefaultCore(4) }

func spec(id, servers, tp, pp int) proto.JobSpec {
	return proto.JobSpec{Job: proto.JobID(id), TP: uint32(tp), EP: 1, PP: uint32(pp), Servers: uint32(servers)}
}

func startedWorld(t testing.TB, core *fabric.Core) *coreWorld {
	w := newCoreWorld(t, core)
	w.start()
	for s := range w.switches {
		w.birth(s)
	}
	if !w.quiet(10 * time.Second) {
		t.Fatalf("the planner does not come to rest: %s", w.show())
	}
	return w
}

// A job list becomes light: every link that was granted is there both ways.
// Method: three jobs over all pods of a small core.
func TestJobsBecomeLight(t *testing.T) {
	for _, wiring := range []fabric.Wiring{fabric.Interleaved, fabric.Uniform} {
		core := smallCore()
		core.Wiring = wiring
		w := startedWorld(t, core)
		r := w.apply(spec(1, 20, 4, 2), spec(2, 24, 4, 4), spec(3, 10, 2, 1))
		if r.Code != proto.OK {
			t.Fatalf("%+v", r)
		}
		if !w.quiet(10 * time.Second) {
			t.Fatal(w.show())
		}
		if d := w.consistent(); d != "" {
			t.Error(d)
		}
		s := w.p.CoreStatus()
		if s.Placed != 3 || s.Granted == 0 || wiring == fabric.Interleaved && s.Realised != s.Granted {
			t.Error(w.show())
		}
		t.Logf("%s: %s%+v", wiring, w.show(), r.Change)
	}
}
