package live

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"ringlight/hal"
	"ringlight/hal/boardfile"
	"ringlight/hal/pca953x"
	"ringlight/hal/socket"
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
