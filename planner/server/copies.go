package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"ringlight/planner"
	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/proto/guard"
)

// Several processes may have one store open. One of them leads; the others read
// what it writes, hear what it hears, and show it. Each change of seats makes a new
// planner from the store, which is then told again what was heard, with the time at
// which it was: so it knows what one that had heard it all would know, and nothing
// that its store does not.

// Standing is where a process stands with its store.
type Standing struct {
	// Election is its number, the same for all that have the store open and for nobody
	// else; 0: one process alone has it open, and leads.
	Election uint64
	// Reign is the number of this process's election; 0: another leads, or nobody.
	Reign uint64
	// Until is when the reign is over by this machine's clock where nothing else is
	// heard of it; zero: it has no end.
	Until time.Time
	// Batches is how many were written that this process holds; 0: they are not counted.
	Batches uint64
	// Leader says who leads, where that is known.
	Leader string
	// Away is why the store is not reached; nil: it is.
	Away error
	// Broken is why nothing more comes of it.
	Broken error
}

// ErrNotLeading is what Commit returns when this process does not lead, or no more.
// What it was given may have been written all the same.
var ErrNotLeading = errors.New("server: this process does not lead its store")

const (
	// drawnEvery is the least time between two pictures of a planner that follows, and
	// pictureShare bounds what they take of a core, as a divisor. chosen: a viewer sees
	// a second's delay; 5 %.
	drawnEvery   = time.Second
	pictureShare = 20
	// rememberedBeats of planners are told again: some of each that may be in service.
	rememberedBeats = 32
)

// word is what came over the link, and when.
type word struct {
	at     time.Duration
	packet proto.Packet
}

// memory keeps the last message of every device, and what is needed to judge the link
// and other planners.
type memory struct {
	last  map[string]word
	beats []word
	links []word // the first time that it was up, the last loss, the last time that it came back
}

// take remembers a packet. Devices keep events until they are stored.
func (m *memory) take(p proto.Packet, at time.Duration) {
	if p.Kind == proto.LinkUp || p.Kind == proto.LinkDown {
		if len(m.links) > 2 {
			m.links = append(m.links[:1], m.links[2:]...)
		}
		m.links = append(m.links, word{at, p})
	}
	topic, err := proto.ParseTopic(p.Topic)
	if p.Kind != proto.Publish || err != nil {
		return
	}
	switch topic.Kind {
	case proto.TopicPresence, proto.TopicReported, proto.TopicHealth:
		if m.last == nil {
			m.last = map[string]word{}
		}
		m.last[p.Topic] = word{at, p}
	case proto.TopicPlanner:
		if m.beats = append(m.beats, word{at, p}); len(m.beats) > rememberedBeats {
			m.beats = append([]word(nil), m.beats[1:]...)
		}
	}
}

// all are the messages in order of arrival.
func (m *memory) all() []word {
	out := slices.AppendSeq(slices.Concat(m.links, m.beats), maps.Values(m.last)) // any order: sorted below
	slices.SortFunc(out, func(a, b word) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(b.packet.Kind, a.packet.Kind), cmp.Compare(a.packet.Topic, b.packet.Topic))
	})
	return out
}

// forFollower: a picture is drawn of what devices say of themselves and of who is in
// service. Events and answers are the leader's.
func forFollower(p *proto.Packet) bool {
	if p.Kind != proto.Publish {
		return true
	}
	topic, err := proto.ParseTopic(p.Topic)
	return err == nil && topic.Kind != proto.TopicEvent && topic.Kind != proto.TopicAck
}

// begin makes the configuration of a planner from the store. It gives out no term
// before it has listened.
func begin(store Store, cfg *Config, life uint64) (planner.Config, error) {
	state, err := store.Load()
	if err != nil {
		return planner.Config{}, err
	}
	var asked *fabric.Fabric
	if !cfg.begun || !planner.Planned(state) { // later the leader may have edited it
		asked = cfg.Fabric
	}
	start, err := planner.Start(state, asked, life)
	if err != nil {
		return planner.Config{}, fmt.Errorf("server: state %s: %w", cfg.State, err)
	}
	cfg.begun = true
	start.Alone, start.Takeover = cfg.Broker == "", cfg.Takeover
	start.Host, start.Uncached = cfg.host, cfg.Uncached
	if start.Features = guard.Features(cfg.Seals.Mode, true); cfg.Seals.Mode.On() && cfg.Seals.Reports {
		start.Features |= proto.FeatureSealedReports
	}
	start.Term = max(start.Term, cfg.TermAbove)
	return start, nil
}

// seat takes the place that the store gives this process: it begins to lead, or to
// follow, or follows on with what others wrote.
func (s *server) seat() error {
	st, changed := s.store.Standing()
	s.changed = changed
	if st.Broken != nil {
		return st.Broken
	}
	now := s.since()
	s.tellAway(&st)
	was := s.standing
	s.standing = st
	switch {
	case st.Election == 0:
		return nil
	case st.Reign != 0 && !s.expired():
		if st.Reign == s.reign {
			return nil
		}
		s.reign, s.stored = st.Reign, nil
		s.cfg.Log.Info("this planner leads", "planner", proto.PlannerCopy{Life: s.life}, "batches", st.Batches)
		if err := s.draw(false); err != nil {
			return err
		}
		s.host.Batches = st.Batches
		s.host.Lead()
		return nil
	case s.reign != 0:
		s.reign, s.stored = 0, nil
		s.cfg.Log.Warn("this planner leads no more: nothing is planned or commanded by it", "planner", proto.PlannerCopy{Life: s.life}, "leader", st.Leader)
		return s.draw(true)
	}
	if st.Batches != was.Batches {
		s.stale = true
	}
	if s.stale && now >= s.drawAt {
		return s.draw(true)
	}
	return nil
}

// expired: the reign ended while nobody looked, as when this process was stopped.
func (s *server) expired() bool {
	return !s.standing.Until.IsZero() && time.Now().After(s.standing.Until)
}

// leads: what the planner says leaves.
func (s *server) leads() bool { return s.standing.Election == 0 || s.reign != 0 && !s.expired() }

// draw makes the planner anew from the store and tells it what was heard.
func (s *server) draw(picture bool) error {
	began := time.Now()
	start, err := begin(s.store, &s.cfg, s.life)
	if err != nil {
		return err
	}
	start.Election, start.Follow, start.Picture, start.Before = s.standing.Election, true, picture, s.host.Planner()
	s.host = planner.NewHost(start, s)
	s.host.Batches = s.standing.Batches
	for _, w := range s.memory.all() {
		s.again = &w.at
		s.host.Deliver(w.packet)
		s.host.Step()
	}
	s.again = nil
	took := time.Since(began)
	s.stale, s.drawAt = false, s.since()+max(drawnEvery, pictureShare*took)
	return nil
}

// tellAway logs when the store is not reached, and when it is again.
func (s *server) tellAway(st *Standing) {
	switch was := s.standing.Away; {
	case st.Away != nil && was == nil:
		s.awayAt = time.Now()
		s.cfg.Log.Error("the store takes no writes: nothing is planned until it does; agents go on as they are", "reason", st.Away)
	case st.Away == nil && was != nil:
		s.cfg.Log.Info("the store is reached again")
	}
}

// openStore opens the store that the configuration names, as soon as that can be.
func openStore(ctx context.Context, cfg *Config) (Store, error) {
	if cfg.Open != nil {
		return cfg.Open(ctx)
	}
	for said := false; ; {
		s, err := openBolt(cfg.State)
		if err == nil || !errors.Is(err, errHeld) {
			return s, err
		}
		if !said {
			said = true
			cfg.Log.Warn("waits for the store: another process holds it, and this one takes its place when that ends", "state", cfg.State)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(lockPatience / 10):
		}
	}
}

const (
	// storeHangs is how long a write may take before the store is said to take none.
	// chosen: many times what a slow disk or a cluster that elects needs.
	storeHangs = 5 * time.Second
	// leastRoom is what the disk of a store's file is to have free, beside as much again
	// as the file. chosen: hours of a busy day.
	leastRoom = 64 << 20
	lookRoom  = 10 * time.Second // how often it is looked; chosen
	fullAgain = time.Second      // between two tries of a write to a full disk; chosen
)

// warn has those alarms stand that the planner does not find itself.
func (s *server) warn(now time.Time) {
	w := &s.warnings
	list := slices.Concat(w.issued, w.doubted)
	if since, why := s.unwritten(now); !since.IsZero() {
		list = append(list, proto.AlarmStatus{ID: "store/writes", Check: "store", Subject: "store", What: "the store takes no writes", SinceMillis: uint64(since.UnixMilli()), Why: proto.Clip(why)})
	}
	if s.cfg.Open == nil && now.Sub(w.roomAt) >= lookRoom {
		w.room, w.roomAt = lacksRoom(s.cfg.State), now
	}
	if w.room != "" {
		list = append(list, proto.AlarmStatus{ID: "store/room", Check: "disk", Subject: "store", What: "the store's disk is nearly full", Why: w.room})
	}
	s.host.Warn(list)
}

// unwritten says since when the store takes no writes, and why; zero: it does.
func (s *server) unwritten(now time.Time) (since time.Time, why string) {
	switch full := s.full.Load(); {
	case s.standing.Away != nil:
		return s.awayAt, s.standing.Away.Error()
	case s.stored == nil || full == nil && now.Sub(s.storing) < storeHangs:
		return time.Time{}, ""
	case full != nil:
		return s.storing, *full + "; it is tried again each second"
	}
	return s.storing, "a write is under way since then, and nothing is decided or told before it is over"
}

// commit writes records, again while a disk, a quota or a limit is full (of a file that
// does not grow bbolt keeps but the words): nothing is decided or told meanwhile.
func (s *server) commit(records []planner.Record) error {
	for {
		err := s.store.Commit(records)
		if err == nil || !slices.ContainsFunc([]error{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG}, func(e error) bool { return strings.HasSuffix(err.Error(), e.Error()) }) {
			s.full.Store(nil)
			return err
		}
		text := err.Error()
		if s.full.Swap(&text) == nil {
			s.cfg.Log.Error("the store takes no writes: nothing is planned until it does; agents go on as they are", "reason", err)
		}
		time.Sleep(fullAgain)
	}
}

// lacksRoom says what is missing where a file is, "" when there is room.
func lacksRoom(file string) string {
	var fs syscall.Statfs_t
	info, err := os.Stat(file)
	if err != nil || syscall.Statfs(filepath.Dir(file), &fs) != nil {
		return "" // a write will tell
	}
	free, wants := int64(fs.Bavail)*int64(fs.Bsize), leastRoom+info.Size()
	if free >= wants {
		return ""
	}
	return fmt.Sprintf("%d MiB are free beside %s, want %d; a planner that cannot store plans nothing", free>>20, file, wants>>20)
}
