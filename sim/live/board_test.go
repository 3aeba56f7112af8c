package live

import (
	"context"
	"net"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/pca953x"
	"ringlight/hal/socket"
	"ringlight/ocs/circuit"
	"ringlight/ocs/mems"
	"ringlight/sim/solo"
)

// Goal: a board in a process of its own keeps its registers when its client
// goes, which is what a killed agent looks like.
// Method: a client writes a latch register and leaves; the next one reads it.
func TestBoardOutlivesItsClient(t *testing.T) {
	layout, err := boardfile.Default(4, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "board.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- Board(ctx, solo.Config{Board: &layout, Seed: 1}, l, Outside{}) }()

	transfer := func(w, r []byte) {
		t.Helper()
		done := make(chan *hal.Completion, 1)
		c, err := socket.Dial(path, func(ev hal.Event) {
			if ev.Completion != nil {
				done <- ev.Completion
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		latch := layout.Latches[0]
		if err := c.Submit(latch.Bus, &hal.Op{Msgs: []hal.Msg{{Addr: latch.Addr, W: w, R: r}}}); err != nil {
			t.Fatal(err)
		}
		select {
		case d := <-done:
			if d.Err != nil {
				t.Fatal(d.Err)
			}
			if r != nil {
				copy(r, d.Op.Msgs[0].R)
			}
		case <-time.After(10 * time.Second):
			t.Fatal("no completion")
		}
	}
	part := pca953x.Of(layout.Latches[0].Part)
	transfer(part.AppendWrite(nil, pca953x.Output, 0, 0x35), nil)
	got := make([]byte, 1)
	transfer([]byte{part.Reg(pca953x.Output, 0)}, got)
	if got[0] != 0x35 {
		t.Errorf("the register holds %#x, want 0x35", got[0])
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// Goal: a board of mirrors says where light passes and notices a circuit that goes,
// whatever its agent says, and its maker's file is one that an agent can read.
// Method: two circuits of a crossbar on the virtual clock, one of which is taken
// away between two records.
func TestBoardOfMirrorsTellsItsLight(t *testing.T) {
	const ports = 4
	layout, err := hal.DefaultMEMS(ports)
	if err != nil {
		t.Fatal(err)
	}
	b, err := solo.New(solo.Config{Board: &layout, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	factory, err := mems.DecodeFactory(mems.Measure(b.World().Maker(b.ID()), ports).Encode())
	if err != nil {
		t.Fatal(err)
	}
	x, err := mems.New(mems.Config{Board: &layout, Factory: factory, Startup: mems.Dark})
	if err != nil {
		t.Fatal(err)
	}
	rec := recorder{ports: ports}
	run := func() {
		var done []*hal.Completion
		for end := b.Now() + time.Second; b.Now() < end; rec.watch(b, 0) {
			ops, next := x.Poll(b.Now(), done, nil)
			for _, op := range ops {
				if err := b.Submit(op.Bus, op.Op); err != nil {
					t.Fatal(err)
				}
			}
			done = done[:0]
			if ev, ok := b.Advance(min(next, end)); ok && ev.Completion != nil {
				done = append(done, ev.Completion)
			}
		}
	}
	apply := func(ch circuit.Change) {
		if err := x.Apply(b.Now(), ch); err != nil {
			t.Fatal(err)
		}
		run()
	}
	x.Start(b.Now())
	run()
	apply(circuit.Change{Create: []circuit.Pair{{A: 0, B: 1}, {A: 2, B: 3}}, Park: true})
	if r := rec.record(b, 0); !slices.Equal(r.Circuits, []PortPair{{0, 1}, {2, 3}}) || r.Darkened != 0 {
		t.Errorf("two circuits: %+v", r)
	}
	apply(circuit.Change{Remove: []circuit.Pair{{A: 0, B: 1}}})
	if r := rec.record(b, 0); !slices.Equal(r.Circuits, []PortPair{{2, 3}}) || r.Darkened != 1 {
		t.Errorf("one of them: %+v", r)
	}
}
