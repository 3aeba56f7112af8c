package view

import (
	"context"
	"encoding/base64"
	"errors"
	"sync"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/limit"
)

const (
	// framePeriod is between two frames. chosen: ten a second look alive.
	framePeriod = 100 * time.Millisecond
	// maxViewers share one copy of the view. Places are divided fairly among addresses;
	// each costs a descriptor and a goroutine. chosen.
	maxViewers = 64
	// viewerQueue is how many frames a viewer may be behind before it has to
	// take a snapshot again. chosen: 1.6 s.
	viewerQueue = 16
	// keptFrames are for those who come with a snapshot that is a little old. chosen: 6 s.
	keptFrames = 64
	// linger is for how long the copy is kept up to date when nobody watches:
	// from a snapshot to the stream, and over a page that is loaded again. chosen.
	linger = 10 * time.Second
)

var errFull = errors.New("64 viewers watch already")

// message is one frame on its way: nil text asks for a snapshot.
type message struct {
	seq  uint64
	text []byte // base64
}

// hub keeps the picture up to date while somebody watches.
type hub struct {
	source Source
	now    func() time.Time

	mu      sync.Mutex
	running bool
	used    time.Time // last
	picture picture
	of      *planner.Planner        // that the picture is of
	fabric  *fabric.Fabric          // of that
	edition proto.Digest            // of the fabric's text
	kept    []message               // the last frames, by rising sequence
	viewers map[chan message]string // whose it is, by address
	load    Load                    // but Viewers
}

// Load is what the view has to do.
type Load struct {
	Viewers int
	Frames  uint64 // of changes, each made once for all
	Dropped uint64 // viewers let go because they were too slow; each takes a snapshot then
	Refused uint64 // because there were enough
}

// Load is what the view has had to do until now.
func (v *View) Load() Load {
	v.hub.mu.Lock()
	defer v.hub.mu.Unlock()
	l := v.hub.load
	l.Viewers = len(v.hub.viewers)
	return l
}

// awake makes sure that the picture is kept up to date; it is when it returns. It is
// called with mu held.
func (h *hub) awake(ctx context.Context) (err error) {
	if h.used = h.now(); !h.running {
		if err = h.look(ctx, true); err == nil {
			h.running = true
			go h.run()
		}
	}
	return err
}

// run looks until nobody has watched for a while.
func (h *hub) run() {
	for range time.Tick(framePeriod) {
		if !h.turn() {
			return
		}
	}
}

// turn is one look; false: it was the last.
func (h *hub) turn() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	idle := len(h.viewers) == 0 && h.now().Sub(h.used) > linger
	if idle || h.look(context.Background(), false) != nil {
		h.release()
		h.running, h.kept = false, nil
		return false
	}
	return true
}

// look takes what has changed and tells the viewers.
func (h *hub) look(ctx context.Context, all bool) error {
	var g planner.Snapshot
	anew := false // a copy that follows is made anew when others have written
	if err := h.source.Read(ctx, func(p *planner.Planner) {
		anew = !all && (p != h.of || p.Fabric != h.fabric)
		h.of = p
		g = planner.Look(p, all || anew)
	}); err != nil {
		return err
	}
	switch edited := h.edited(g.Fabric); {
	case edited && anew: // nothing that was told before fits it
		all = true
		h.release()
	case anew:
		g = h.picture.differs(g)
	}
	was := h.picture.last
	if !all && len(g.Cells) == 0 && len(g.Strips) == 0 && g.State == was.State && g.Linked == was.Linked && g.Term == was.Term && g.Last == was.Last && g.Switches == was.Switches {
		return nil
	}
	cells, strips := g.Cells, g.Strips
	h.picture.wall = uint64(h.now().UnixMilli())
	h.picture.take(g, all)
	if all {
		h.kept = nil
		return nil
	}
	raw := h.picture.frame(nil, kindChanges, cells, strips)
	m := message{h.picture.seq, base64.StdEncoding.AppendEncode(nil, raw)}
	if h.kept = append(h.kept, m); len(h.kept) > keptFrames {
		h.kept = append([]message(nil), h.kept[1:]...)
	}
	h.load.Frames++
	for v := range h.viewers { // any order: all are told
		select {
		case v <- m:
		default: // it is slow: what waits for it is void
			h.load.Dropped++
			delete(h.viewers, v)
			close(v)
		}
	}
	return nil
}

// edited takes what the planner plans for, and says whether that is another fabric.
func (h *hub) edited(f *fabric.Fabric) bool {
	if f == h.fabric {
		return false
	}
	was := h.edition
	h.fabric, h.edition = f, proto.DigestOf(f.Encode())
	return h.edition != was
}

// release lets all viewers go: each takes a snapshot then.
func (h *hub) release() {
	for v := range h.viewers { // any order: all are told
		delete(h.viewers, v)
		close(v)
	}
}

// planned is what is planned for now, and its text's digest.
func (h *hub) planned(ctx context.Context) (*fabric.Fabric, proto.Digest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.awake(ctx)
	return h.fabric, h.edition, err
}

// snapshot is the picture as a frame, and of which fabric it is.
func (h *hub) snapshot(ctx context.Context) ([]byte, proto.Digest, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.awake(ctx)
	return h.picture.snapshot(), h.edition, err
}

// join adds a viewer who knows everything up to a sequence number: he is told
// what came since. A closed channel means that he must take a snapshot.
func (h *hub) join(ctx context.Context, seq uint64, peer string) (chan message, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.awake(ctx); err != nil {
		return nil, err
	}
	if !limit.Room(h.viewers, maxViewers, peer) {
		h.load.Refused++
		return nil, errFull
	}
	v := make(chan message, viewerQueue+keptFrames)
	if seq > h.picture.seq || seq < h.picture.seq && (len(h.kept) == 0 || h.kept[0].seq > seq+1) {
		close(v)
		return v, nil
	}
	for _, m := range h.kept {
		if m.seq > seq {
			v <- m
		}
	}
	h.viewers[v] = peer
	return v, nil
}

func (h *hub) leave(v chan message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.viewers, v)
	h.used = h.now()
}
