package ocs_test

import (
	"strings"
	"testing"
	"time"

	"ringlight/ocs"
	"ringlight/proto"
)

// Goal: what falls short of its acceptance in service is told and, below what is asked of
// a path, failed; when it is right again it counts as tuned.
// Method: a bundle that nobody holds, on each path, its case 8 and then 14 K warmer, some
// 0.16 and 0.28 rad in every cell.
func TestAcceptanceIsSampledInService(t *testing.T) {
	for _, path := range []proto.Path{proto.Loopback, proto.External1, proto.External2} {
		r := locked(t, 2, path, ocs.LockConfig{Mode: ocs.LockOff})
		o := r.optics[0]
		told := func(kelvin int32) (kind ocs.EventKind, text string) {
			r.world.SetAmbient(r.id, 40_000+1000*kelvin)
			r.events[0] = nil
			for range 10 {
				r.round()
			}
			r.run(time.Second) // a case that has just moved may go on
			r.round()
			for _, e := range r.events[0] {
				if e.Kind == ocs.Degraded || e.Kind == ocs.PathFailed || e.Kind == ocs.Verified {
					kind, text = e.Kind, e.Text
				}
			}
			return kind, text
		}
		for range 10 {
			r.round()
		}
		well := o.Status().State // there is nobody at the other end of a fibre, and nobody has looked in this life
		if len(r.events[0]) > 0 || (well == proto.Unproven) != (path == proto.Loopback) {
			t.Fatalf("%v: all is well, and %v, %+v", path, well, r.events[0])
		}
		kind, text := told(8)
		t.Logf("%v: %v %s", path, kind, text)
		if kind != ocs.Degraded || !strings.Contains(text, "wrong side") || o.Status().State != well {
			t.Errorf("%v, 8 K: %v %s, %v", path, kind, text, o.Status().State)
		}
		kind, text = told(14)
		t.Logf("%v: %v %s", path, kind, text)
		if kind != ocs.PathFailed || o.Status().State != proto.Failed {
			t.Errorf("%v, 14 K: %v %s, %v", path, kind, text, o.Status().State)
		}
		if kind, text = told(0); kind != ocs.Verified || o.Status().State != well {
			t.Errorf("%v, as it was: %v %s, %v", path, kind, text, o.Status().State)
		}
	}
}
