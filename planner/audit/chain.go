package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Max is how many records are kept; an older one goes for each that comes. chosen: a
// year of a cell of 64 nodes, some weeks of 10,000, 25 MB at most.
const Max = 1 << 16

// Kind of a record.
type Kind string

const (
	Start    Kind = "start"    // a planner comes into service, with a new term
	Act      Kind = "act"      // an operator asks for a change: on disk before anything comes of it
	Answer   Kind = "answer"   // what the act of the same number came to
	Refused  Kind = "refused"  // an operator was not let ask
	Decision Kind = "decision" // light changes for it: on disk with the decision itself
)

// Record is one line. Seq and Prev come first in it.
type Record struct {
	Seq        uint64 `json:"seq"`
	Prev       string `json:"prev"` // SHA-256 of the line before, in hex; of none: zeros
	AtMillis   uint64 `json:"at_ms"`
	Term       uint64 `json:"term"`
	Kind       Kind   `json:"kind"`
	Who        string `json:"who"`
	Sealed     bool   `json:"sealed,omitempty"` // who it was is proven by a seal; else it is what the asker said
	What       string `json:"what"`
	Why        string `json:"why,omitempty"`
	Result     string `json:"result,omitempty"` // of an answer or a refusal: ok, or the code of the error
	Reason     string `json:"reason,omitempty"` // ..., or by what a start knows that this chain is not all
	Generation uint64 `json:"generation,omitempty"`
	Corr       string `json:"corr,omitempty"`
	// Message is the SHA-256 of the request as it came, with its seal.
	Message string `json:"message_sha256,omitempty"`
	Skipped uint64 `json:"skipped,omitempty"` // refusals since the last one that is written down
}

// Head is the newest record.
type Head struct {
	Seq  uint64 `json:"head"`
	Hash string `json:"sha256"`
}

func (h Head) String() string { return fmt.Sprintf("%d:%s", h.Seq, h.Hash) }

// Line is the head as it is stored and exported.
func (h Head) Line() string { return string(encode(h)) }

// ParseHead reads what String wrote.
func ParseHead(s string) (h Head, err error) {
	n, hash, _ := strings.Cut(s, ":")
	h.Hash = hash
	h.Seq, err = strconv.ParseUint(n, 10, 64)
	if raw, bad := hex.DecodeString(hash); err != nil || h.Seq == 0 || bad != nil || len(raw) != sha256.Size || hash != strings.ToLower(hash) {
		return h, fmt.Errorf("%q: want NUMBER:SHA256, as ocsctl audit verify prints it", s)
	}
	return h, nil
}

func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("audit: a record always encodes: " + err.Error())
	}
	return raw
}

// Hash is what the next record holds of a line.
func Hash(line string) string {
	sum := sha256.Sum256([]byte(line))
	return hex.EncodeToString(sum[:])
}

var nothing = strings.Repeat("0", 2*sha256.Size)

// Chain is the records that are kept. The zero Chain is empty.
type Chain struct {
	lines  []string
	head   *Head
	gone   uint64 // lines that were let go since the start
	judged bool
	damage string
}

// Restore takes a record out of a store, in the order of their keys; none is
// refused, so that what is wrong with it can be named.
func (c *Chain) Restore(line []byte) { c.lines = append(c.lines, string(line)) }

// RestoreHead takes the head.
func (c *Chain) RestoreHead(line []byte) {
	if h := new(Head); json.Unmarshal(line, h) == nil {
		c.head = h
	}
}

// Damage says what was wrong with the chain that was restored, "" when nothing.
func (c *Chain) Damage() string {
	if !c.judged {
		c.judged = true
		if bad := Verify(c.lines, c.head, nil); len(bad) > 0 {
			c.damage = strings.Join(bad[:min(3, len(bad))], "; ")
		}
	}
	return c.damage
}

// Gone finds that there is no record at all where a term was begun: a damage, which the
// first record of whoever goes on bears.
func (c *Chain) Gone(term uint64) {
	if len(c.lines) == 0 && c.head == nil && term > 0 {
		c.judged, c.damage = true, fmt.Sprintf("the store knows term %d, and no record is here: the chain was taken away", term)
	}
}

// elsewhere is what a start says of records that are not in its chain, "" when nothing.
func elsewhere(r *Record) string {
	if r.Kind != Start || r.Reason == "" {
		return ""
	}
	return fmt.Sprintf("record %d: %s: what was done in between is in another planner's store, or this one is an older copy", r.Seq, r.Reason)
}

// Add appends a record: its line, the head after it, and the number of the one that
// is let go for it, 0: none.
func (c *Chain) Add(r Record) (line string, head Head, gone uint64) {
	c.Damage() // of what was restored, before anything is added to it
	r.Seq, r.Prev = 1, nothing
	if n := len(c.lines); n > 0 {
		last := c.lines[n-1]
		r.Prev = Hash(last)
		if x, err := parse(last); err == nil {
			r.Seq = x.Seq + 1
		}
	}
	if c.head != nil && c.head.Seq >= r.Seq { // what it names is not there any more, and stays missed
		r.Seq, r.Prev = c.head.Seq+1, c.head.Hash
	}
	if why := elsewhere(&r); why != "" && c.damage == "" {
		c.damage = why
	}
	line = string(encode(&r))
	c.lines = append(c.lines, line)
	c.head = &Head{r.Seq, Hash(line)}
	if len(c.lines) > Max {
		c.lines[0] = ""
		c.lines = c.lines[1:]
		c.gone++
	}
	if r.Seq > Max {
		gone = r.Seq - Max
	}
	return line, *c.head, gone
}

// maxBack is how many records back it is looked for acts without an answer. chosen: what
// operators ask for while one act waits.
const maxBack = 4096

// Unanswered are the acts that no answer followed, the earliest first.
func (c *Chain) Unanswered() (open []Record) {
	type number struct{ who, corr string } // a number is the client's to choose
	answered := map[number]bool{}
	for i := len(c.lines) - 1; i >= max(0, len(c.lines)-maxBack); i-- {
		r, err := parse(c.lines[i])
		switch {
		case err != nil:
		case r.Kind == Answer:
			answered[number{r.Who, r.Corr}] = true
		case r.Kind == Act && !answered[number{r.Who, r.Corr}]:
			open = append(open, r)
		}
	}
	slices.Reverse(open)
	return open
}

// Page gives the lines from a place on, a line each, as many as fit into room bytes;
// the last page ends with the head. next is the place to ask for then, 0: there is no
// more. What does not fit any page, or is more than one line, is somebody's damage,
// and shows as such.
func (c *Chain) Page(from uint64, room int) (out string, next uint64) {
	var b strings.Builder
	for i := max(from, c.gone) - c.gone; i < uint64(len(c.lines)); i++ {
		line := strings.ReplaceAll(c.lines[i], "\n", " ")
		if len(line) >= room {
			line = fmt.Sprintf("%d bytes", len(line))
		}
		if b.Len()+len(line) >= room {
			return b.String(), c.gone + i
		}
		b.WriteString(line + "\n")
	}
	if c.head != nil {
		line := c.head.Line() + "\n"
		if b.Len()+len(line) > room {
			return b.String(), c.gone + uint64(len(c.lines))
		}
		b.WriteString(line)
	}
	return b.String(), 0
}
