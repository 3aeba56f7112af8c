package journal

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"time"

	"ringlight/planner/audit"
	"ringlight/proto"
)

const (
	// flushDelay gathers events into one transaction of the store.
	flushDelay = 20 * time.Millisecond
	// MaxEntries is how many events and notes are kept.
	MaxEntries = 100_000
	// noteBurst is how many notes of one rule and one node are kept in noteWindow, the last of
	// them saying so; the others are logged alone. chosen: an hour of a node that goes and comes
	// back all the time is a hundredth of the journal, and no fault makes as many in a minute.
	noteBurst  = 16
	noteWindow = time.Minute
)

// Prefixes of the store's keys.
const (
	PrefixSeen = "seen/" // the last event of a device and its session
	PrefixLog  = "log/"  // an entry, by its number
)

// Note is one decision of the planner. Node -1: of no single node.
type Note struct {
	Rule  string           `json:"rule"`
	Node  int64            `json:"node"`
	Ring  proto.RingID     `json:"ring,omitempty"`
	Gen   proto.Generation `json:"gen,omitempty"`
	Cause proto.Cause      `json:"cause,omitempty"`
	Text  string           `json:"text"`
}

// Entry is an event or a note with the planner's number for it.
type Entry struct {
	Seq    uint64
	Millis uint64
	Event  *proto.Event
	Note   *Note
}

// Cursor is how far a device's events have been taken in order.
type Cursor struct {
	Last    uint64        // number of the last one
	Session proto.Session // that told it
}

// touched is the cursor of a device.
type touched struct {
	node proto.NodeID
	*Cursor
}

// Taken is an event number that is on disk and may be acknowledged.
type Taken struct {
	Node proto.NodeID
	Seq  uint64
}

// Journal keeps the last MaxEntries entries, and those not yet in the store.
type Journal struct {
	Outbox
	Chain   audit.Chain
	Self    string  // this planner in the chain
	entries []Entry // a ring buffer once full
	first   int     // index of the oldest
	last    uint64  // number of the newest
	seen    uint64  // events taken, ever
	behind  int     // entries that no Persist holds yet
	flushAt time.Duration
	flying  uint64    // the Persist under way, 0 = none
	touched []touched // with events since the last flush
	taken   []Taken   // to be acknowledged when flying is on disk

	often   map[Note]int // by rule and node, since oftenAt
	oftenAt time.Duration
}

// New makes an empty journal.
func New() *Journal { return &Journal{flushAt: Never} }

// Len is the number of entries kept.
func (j *Journal) Len() int { return len(j.entries) }

// At gives the i-th oldest entry.
func (j *Journal) At(i int) *Entry { return &j.entries[(j.first+i)%len(j.entries)] }

// From copies at most n entries, the earliest first, of those whose number is
// at least seq. Nobody changes what they point to.
func (j *Journal) From(seq uint64, n int) []Entry {
	at := sort.Search(len(j.entries), func(i int) bool { return j.At(i).Seq >= seq })
	out := make([]Entry, 0, min(n, len(j.entries)-at))
	for ; at < len(j.entries) && len(out) < n; at++ {
		out = append(out, *j.At(at))
	}
	return out
}

// Seen is the number of events taken, ever.
func (j *Journal) Seen() uint64 { return j.seen }

// Quiet: all that was told and decided is on disk.
func (j *Journal) Quiet() bool { return j.flying == 0 && j.behind == 0 && len(j.touched) == 0 }

// Written: nothing is on its way to the disk.
func (j *Journal) Written() bool { return j.flying == 0 }

// Next is when Flush wants to be called.
func (j *Journal) Next() time.Duration {
	if j.flying != 0 {
		return Never
	}
	return j.flushAt
}

func (j *Journal) add(e Entry) {
	if j.Mute {
		return
	}
	j.last++
	e.Seq, e.Millis = j.last, cmp.Or(e.Millis, j.Wall)
	j.put(e)
	j.behind = min(j.behind+1, len(j.entries))
	j.flushAt = min(j.flushAt, j.Now+flushDelay)
}

func (j *Journal) put(e Entry) {
	if len(j.entries) < MaxEntries {
		j.entries = append(j.entries, e)
		return
	}
	j.entries[j.first] = e
	j.first = (j.first + 1) % MaxEntries
}

// Note writes down a decision, and tells the shell's log. Whoever provokes the same of
// one node again and again must not push out what is known of others.
func (j *Journal) Note(level Level, message string, n Note) {
	n.Text = proto.Clip(n.Text)
	if kept := n; j.counted(&kept) {
		j.add(Entry{Note: &kept})
	}
	j.Line(Line{Level: level, Message: message, Rule: n.Rule, Node: n.Node, Ring: n.Ring, Generation: n.Gen, Text: n.Text})
}

// counted tells whether a note is kept; the last of many says that it is.
func (j *Journal) counted(n *Note) bool {
	if j.Now >= j.oftenAt+noteWindow || j.often == nil {
		j.often, j.oftenAt = map[Note]int{}, j.Now
	}
	k := Note{Rule: n.Rule, Node: n.Node}
	if j.often[k]++; n.Node >= 0 && j.often[k] == noteBurst {
		n.Text = proto.Clip(fmt.Sprintf("%d times within %v, no more of them are kept: %s", noteBurst, noteWindow, n.Text))
	}
	return n.Node < 0 || j.often[k] <= noteBurst // the planner's own are all kept
}

// oldEvent is how old an event is at least to be written down under its own time: it
// waited for a planner. chosen: the way of others is shorter, and they keep their order.
const oldEvent = time.Second

// Take writes down an event that is the next of its device, and so old.
func (j *Journal) Take(node proto.NodeID, c *Cursor, m *proto.Event, age time.Duration) {
	c.Last, c.Session = m.Seq, m.Session
	j.seen++
	if age < oldEvent {
		age = 0
	}
	j.add(Entry{Event: m, Millis: j.Wall - min(j.Wall, uint64(age.Milliseconds()))})
	j.AckLater(node, c)
}

// AckLater acknowledges a device's events with the next flush.
func (j *Journal) AckLater(node proto.NodeID, c *Cursor) {
	if x := (touched{node, c}); !j.Mute && !slices.Contains(j.touched, x) {
		j.touched = append(j.touched, x)
	}
	j.flushAt = min(j.flushAt, j.Now+flushDelay)
}

// Repoint follows devices that have moved, or that are gone, nil.
func (j *Journal) Repoint(to func(proto.NodeID, *Cursor) *Cursor) {
	for i, x := range j.touched {
		j.touched[i].Cursor = to(x.node, x.Cursor)
	}
	j.touched = slices.DeleteFunc(j.touched, func(x touched) bool { return x.Cursor == nil })
}

// Flush puts what is new into the store, one transaction at a time.
func (j *Journal) Flush() {
	if j.flying != 0 || j.Now < j.flushAt {
		return
	}
	j.flushAt = Never
	if j.behind == 0 && len(j.touched) == 0 {
		return
	}
	var records []Record
	for i := len(j.entries) - j.behind; i < len(j.entries); i++ {
		e := j.At(i)
		records = append(records, Record{logKey(e.Seq), e.value()})
		if e.Seq > MaxEntries {
			records = append(records, Record{Key: logKey(e.Seq - MaxEntries)})
		}
	}
	j.behind = 0
	for _, c := range j.touched {
		j.taken = append(j.taken, Taken{c.node, c.Last})
		records = append(records, Record{NumberedKey(PrefixSeen, uint64(c.node)), fmt.Appendf(nil, "%d %d", c.Last, uint64(c.Session))})
	}
	j.touched = j.touched[:0]
	j.flying = j.Persist(records...)
}

// Flushed takes the news that a Persist is on disk, and lists what may be
// acknowledged now.
func (j *Journal) Flushed(id uint64) []Taken {
	if id != j.flying {
		return nil
	}
	j.flying = 0
	if j.behind > 0 || len(j.touched) > 0 {
		j.flushAt = min(j.flushAt, j.Now+flushDelay)
	}
	taken := j.taken
	j.taken = nil
	return taken
}

func logKey(seq uint64) string { return fmt.Sprintf("%s%016x", PrefixLog, seq) }

// value is an entry in the store: the wall clock's milliseconds in eight bytes,
// then an encoded proto.Event, or a note as JSON.
func (e *Entry) value() []byte {
	out := binary.BigEndian.AppendUint64(nil, e.Millis)
	if e.Event == nil {
		return append(out, Encode("", e.Note).Value...)
	}
	out, err := proto.AppendEncode(out, e.Event)
	if err != nil {
		panic("planner: an event that was decoded does not encode: " + err.Error())
	}
	return out
}

// Restore takes one entry of the store; key is without its prefix.
func (j *Journal) Restore(key string, raw []byte) error {
	seq, err := strconv.ParseUint(key, 16, 64)
	if err != nil {
		return err
	}
	if len(raw) < 9 {
		return fmt.Errorf("%d bytes, want 9 or more", len(raw))
	}
	e := Entry{Seq: seq, Millis: binary.BigEndian.Uint64(raw)}
	if raw[8] == '{' {
		e.Note = new(Note)
		err = json.Unmarshal(raw[8:], e.Note)
	} else {
		e.Event = new(proto.Event)
		_, err = proto.Decode(raw[8:], e.Event)
	}
	if err == nil {
		j.last = seq
		j.put(e)
	}
	return err
}

// Restore takes a cursor from the store.
func (c *Cursor) Restore(raw []byte) error {
	var session uint64
	if _, err := fmt.Sscanf(string(raw), "%d %d", &c.Last, &session); err != nil {
		return err
	}
	c.Session = proto.Session(session)
	return CheckCount("last event", c.Last)
}
