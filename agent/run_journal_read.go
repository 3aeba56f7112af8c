package agent

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ringlight/node"
	"ringlight/proto"
)

// What stands in front of a line's checksum. Whatever a later version changes,
// the line of its snapshot begins like this one, with its own number, so that
// this program knows it for what it is.
const (
	journalVersion = 2
	formatHead     = "ringlight-journal-"
	snapshotHead   = formatHead + "2"
	markHead       = "mark"
	markForm       = "%020d %010d %020d" // log, record, last event: always as long
)

// maxJournalFile bounds what is read into memory. chosen: twice a snapshot with
// a full queue of events with the longest texts, and the log as long as that.
const maxJournalFile = 16 << 20

// probeFill is what a probe consists of; a life that ends amid one leaves it behind.
const probeFill = ' '

// maxHoles bounds the events that are made up for lost ones. chosen: twice what
// an agent keeps; more than that a mark does not tell.
const maxHoles = 2 * maxEvents

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func recordHeadOf(number, seq uint64) string { return fmt.Sprintf("%d.%d", number, seq) }

func formatLine(head, body string) []byte {
	return fmt.Appendf(nil, "%s %08x %s\n", head, crc32.Checksum([]byte(head+" "+body), castagnoli), body)
}

var errSum = errors.New("checksum wrong")

func parseLine(line []byte) (head string, body []byte, err error) {
	h, rest, _ := bytes.Cut(line, []byte(" "))
	sum, body, ok := bytes.Cut(rest, []byte(" "))
	want, bad := strconv.ParseUint(string(sum), 16, 32)
	if !ok || bad != nil || len(sum) != 8 || string(sum) != strings.ToLower(string(sum)) ||
		crc32.Update(crc32.Update(crc32.Checksum(h, castagnoli), castagnoli, []byte(" ")), castagnoli, body) != uint32(want) {
		return "", nil, errSum
	}
	return string(h), body, nil
}

// history is what a folder was found to hold.
type history struct {
	unborn  bool    // no fold-up has ended, the first one may have begun
	fold    Journal // up to the first thing that is wrong
	number  uint64  // of the log
	seq     uint64  // of its last record
	size    int64   // of its whole records
	cut     int
	marked  mark
	highest uint64   // number of a log that any file tells of
	good    [][]byte // records that can be read, wherever they stand
	logs    map[uint64][]byte
	damage  error
}

// mark is the content of the file beside the folder.
type mark struct{ number, seq, last uint64 }

// parseMark reads a mark; it is zero where the text is not one.
func parseMark(body string) (m mark) {
	for _, n := range []*uint64{&m.number, &m.seq, &m.last} {
		word, rest, _ := strings.Cut(body, " ")
		v, err := strconv.ParseUint(word, 10, 64)
		if err != nil {
			return mark{}
		}
		*n, body = v, rest
	}
	return m
}

func (h *history) wrong(format string, args ...any) {
	if h.damage == nil {
		h.damage = fmt.Errorf(format, args...)
	}
}

// readJournalFile is nil for a file that is not there.
func readJournalFile(path string) ([]byte, error) {
	f, err := openPrivate(path, os.O_RDONLY)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxJournalFile+1))
	if len(raw) > maxJournalFile {
		return nil, fmt.Errorf("%s: more than %d bytes: no journal; move it away", path, maxJournalFile)
	}
	if raw == nil {
		raw = []byte{}
	}
	return raw, err
}

// readHistory reads all there is. An error is a reason not to run: a file that
// cannot be read, or one of a later version; damage is not.
func readHistory(dir string) (*history, error) {
	h := &history{logs: map[uint64][]byte{}}
	snapshot, err := readJournalFile(filepath.Join(dir, snapshotName))
	if err != nil {
		return nil, err
	}
	raw, err := readJournalFile(filepath.Clean(dir) + markSuffix)
	if err != nil {
		return nil, err
	}
	if head, body, err := parseLine(bytes.TrimSuffix(raw, []byte("\n"))); err == nil && head == markHead {
		h.marked = parseMark(string(body))
	}
	h.highest = h.marked.number
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		after, isLog := strings.CutPrefix(e.Name(), logName)
		if n, err := strconv.ParseUint(after, 10, 53); isLog && err == nil {
			if h.logs[n], err = readJournalFile(logPath(dir, n)); err != nil {
				return nil, err
			}
			h.highest = max(h.highest, n)
		}
	}
	if err := h.begin(snapshot); err != nil {
		return nil, err
	}
	h.highest = max(h.highest, h.number)
	h.follow()
	h.compare()
	return h, nil
}

// begin takes the snapshot.
func (h *history) begin(raw []byte) error {
	line := bytes.TrimSuffix(raw, []byte("\n"))
	head, body, bad := parseLine(line)
	v, ours := strings.CutPrefix(head, formatHead)
	version, _ := strconv.Atoi(v)
	switch {
	case raw == nil && h.highest <= 1 && len(h.logs[0])+len(h.logs[1]) == 0 && h.marked == mark{}:
		h.unborn = true
	case raw == nil:
		h.wrong("%s is gone", snapshotName)
	case bad != nil:
		h.wrong("%s: %w", snapshotName, bad)
	case ours && version > journalVersion:
		return fmt.Errorf("%s is of version %d, of a later ocs-agent; this one reads up to %d: run the later one, or move the folder away", snapshotName, version, journalVersion)
	case head != snapshotHead:
		h.wrong("%s begins with %q", snapshotName, head)
	default:
		number, rec, _ := bytes.Cut(body, []byte(" "))
		h.number, _ = strconv.ParseUint(string(number), 10, 53)
		h.take(snapshotName, rec)
	}
	return nil
}

func (h *history) take(where string, rec []byte) {
	h.good = append(h.good, rec)
	if h.damage != nil {
		return
	}
	if err := h.fold.Apply(rec); err != nil {
		h.wrong("%s: %w", where, err)
	}
}

// follow takes the log. Behind something wrong it reads on, for what can be
// salvaged.
func (h *history) follow() {
	log, there := h.logs[h.number]
	name := logName + strconv.FormatUint(h.number, 10)
	if !there && !h.unborn {
		h.wrong("%s is gone", name)
	}
	for at := 0; at < len(log); {
		n := bytes.IndexByte(log[at:], '\n') + 1
		rec, bad := h.line(log[at : at+max(n, 0)])
		if bad == nil {
			if h.take(fmt.Sprintf("%s at byte %d", name, at), rec); h.damage == nil {
				h.seq++
			}
		} else if h.damage == nil {
			if h.torn(log[at:]) {
				h.size = int64(at)
				h.cut = len(bytes.TrimRight(log[at:], string(probeFill)))
				return
			}
			h.wrong("%s at byte %d: %w", name, at, bad)
		}
		if n == 0 {
			break
		}
		at += n
	}
	h.size = int64(len(log))
}

// line is the record of a line of the log; seq counts those before it.
func (h *history) line(line []byte) (rec []byte, err error) {
	line, whole := bytes.CutSuffix(line, []byte("\n"))
	if !whole {
		return nil, errors.New("no end of line")
	}
	head, rec, err := parseLine(line)
	if want := recordHeadOf(h.number, h.seq+1); err == nil && head != want && h.damage == nil {
		err = fmt.Errorf("record %s, want %s", head, want)
	}
	return rec, err
}

// torn tells the record that a life was writing when it ended from one that was
// on disk: no mark knows it, and there is no line behind it.
func (h *history) torn(rest []byte) bool {
	if h.marked.number == h.number && h.marked.seq > h.seq {
		return false
	}
	n := bytes.IndexByte(rest, '\n') + 1
	return n == 0 || len(bytes.Trim(rest[n:], "\x00")) == 0
}

// compare looks for files that do not belong together.
func (h *history) compare() {
	if h.marked.number > h.number || h.marked.number == h.number && h.marked.seq > h.seq {
		h.wrong("it ends with record %s, but %s was on disk: files are older than journal%s, or cut", recordHeadOf(h.number, h.seq),
			recordHeadOf(h.marked.number, h.marked.seq), markSuffix)
	}
	for n, log := range h.logs { // any order: each is told alone
		if n > h.number && len(log) > 0 {
			h.wrong("%s is older than %s%d", snapshotName, logName, n)
		}
	}
}

// salvage is what can be believed of a damaged journal: the numbers that must
// not go back, and the events that nobody may have heard of. Neither a plan nor
// a reason to be out of service is among it: they might not be the last ones,
// and move light. The circuits of a switch are only a hint where light may be.
func (h *history) salvage(lost proto.Event) Journal {
	state := node.State{}
	j := Journal{State: &state, Last: h.marked.last}
	events := map[uint64]proto.Event{}
	take := func(raw []byte) {
		rec, err := readRecord(raw)
		if err != nil {
			return
		}
		r := &rec.r
		j.Acked, j.Last, j.Refused = max(j.Acked, r.Acked), max(j.Last, r.Last, r.Acked, r.Reserved), max(j.Refused, r.Refused)
		for _, e := range r.Events {
			events[e.Seq] = e
			j.Last = max(j.Last, e.Seq)
		}
		if r.State != nil {
			state.SeenTerm, state.BypassSeq = max(state.SeenTerm, r.State.SeenTerm), max(state.BypassSeq, r.State.BypassSeq)
		}
		if r.Circuits != nil {
			j.Circuits = *r.Circuits
		}
	}
	for _, raw := range h.good {
		take(raw)
	}
	for n, log := range h.logs { // any order: what is kept is the greatest of each
		for line := range bytes.Lines(log) {
			head, raw, err := parseLine(bytes.TrimSuffix(line, []byte("\n")))
			if err == nil && n != h.number && strings.HasPrefix(head, strconv.FormatUint(n, 10)+".") {
				take(raw)
			}
		}
	}
	if j.Last-j.Acked > maxHoles {
		j.Acked = j.Last - maxHoles
	}
	for seq := j.Acked + 1; seq <= j.Last; seq++ {
		e, ok := events[seq]
		if !ok {
			e = lost
			e.Seq = seq
		}
		j.Events = append(j.Events, e)
	}
	j.Reserved = j.Last
	return j
}

// lostEvent is told in the place of an event that the journal has lost.
func (c *Config) lostEvent() proto.Event {
	e := own(0, proto.Event{Version: proto.Version, Node: c.Node, Session: c.Session, Kind: proto.EvStarted, Severity: proto.SeverityWarning,
		Cause: proto.CauseAdopted, Count: 1, Text: "an event that the damaged journal has lost"})
	e.FirstMicros = e.AtMicros
	return e
}

// tellOfJournal says how the journal was read, and refuses one of another node.
func (r *runner) tellOfJournal(file *fileJournal, j *Journal) error {
	switch {
	case file.damage != nil:
		r.log.Error("journal damaged; begun anew: the light stays as it is until a planner speaks; what an operator asked for is forgotten",
			"journal", file.dir, "error", file.damage, "kept", filepath.Join(file.dir, damagedName), "next_event", j.Last+1)
	case file.unmarked:
		r.log.Warn("no readable mark beside the journal: that its end is whole cannot be told", "mark", file.mark.Name())
	case file.cut > 0:
		r.log.Warn("journal's last record was not whole; cut off", "journal", file.path(), "at_byte", file.size, "bytes", file.cut)
	}
	if j.State == nil {
		return nil
	}
	for _, h := range []*node.Held{j.State.Applied, j.State.Staged} {
		if h != nil && h.Desired.Node != r.cfg.Agent.Node {
			return fmt.Errorf("agent: journal in %s: it is of node %d, this is node %d: give each its own state folder, or move this one away",
				file.dir, h.Desired.Node, r.cfg.Agent.Node)
		}
	}
	return nil
}
