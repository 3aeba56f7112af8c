package audit

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxProblems bounds what is told of one chain. chosen: a screen.
const maxProblems = 20

// parse reads a line. Keys of a later version are no fault: the chain is of lines.
func parse(line string) (r Record, err error) {
	if err = json.Unmarshal([]byte(line), &r); err == nil && (r.Seq == 0 || !strings.HasPrefix(line, `{"seq":`+strconv.FormatUint(r.Seq, 10)+`,"prev":"`+r.Prev+`",`)) {
		err = errors.New("it does not begin with its number and the hash of the one before")
	}
	return r, err
}

// Parse reads the lines of a chain and its head, which stands last; a line that is no
// record is left to Verify.
func Parse(text string) (lines []string, records []Record, head *Head) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSuffix(line, "\n"); line == "" {
			continue
		}
		var h Head
		if strings.HasPrefix(line, `{"head":`) && json.Unmarshal([]byte(line), &h) == nil {
			head = &h
			continue
		}
		lines = append(lines, line)
		if r, err := parse(line); err == nil {
			records = append(records, r)
		}
	}
	return lines, records, head
}

// Verify says what is wrong with a chain, nothing when all of it stands as it was
// written. known is a head that was kept elsewhere, nil: none was.
func Verify(lines []string, head, known *Head) (problems []string) {
	if len(lines) == 0 && head == nil && known == nil {
		return nil // no planner has written any
	}
	var v verifier
	v.read(lines)
	v.links()
	v.ends(head)
	if known != nil {
		v.against(known)
	}
	if n := len(v.problems); n > maxProblems {
		v.problems = append(v.problems[:maxProblems], fmt.Sprintf("and %d more", n-maxProblems))
	}
	return v.problems
}

type link struct {
	seq        uint64
	prev, hash string
}

type verifier struct {
	chain    []link // by number
	head     Head
	problems []string
}

func (v *verifier) say(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// read takes the lines, and finds those that are none and that are not in their place.
func (v *verifier) read(lines []string) {
	last := uint64(0)
	for i, line := range lines {
		r, err := parse(line)
		if err != nil {
			v.say("line %d, after record %d, is no record: %v", i+1, last, err)
			continue
		}
		if r.Seq <= last {
			v.say("record %d stands after record %d", r.Seq, last)
		}
		if r.Seq == 1 && r.Kind == Start && r.Why != "" { // by a planner that found none where some had been
			v.say("record 1 is not the first: %s", r.Why)
		}
		if why := elsewhere(&r); why != "" {
			v.say("%s", why)
		}
		last = r.Seq
		v.chain = append(v.chain, link{r.Seq, r.Prev, Hash(line)})
	}
	slices.SortStableFunc(v.chain, func(a, b link) int { return cmp.Compare(a.seq, b.seq) })
}

func (v *verifier) missing(from, to uint64, where string) {
	if from == to {
		v.say("record %d is missing%s", from, where)
	} else {
		v.say("records %d to %d are missing%s", from, to, where)
	}
}

// links holds every record against the one before.
func (v *verifier) links() {
	for i := 1; i < len(v.chain); i++ {
		a, b := &v.chain[i-1], &v.chain[i]
		switch {
		case a.seq == b.seq:
			v.say("record %d is there twice", a.seq)
		case a.seq+1 < b.seq:
			v.missing(a.seq+1, b.seq-1, "")
		case a.hash != b.prev:
			v.say("record %d is not what record %d was written after", a.seq, b.seq)
		}
	}
}

// ends holds the chain against its head, and its beginning against what is let go.
func (v *verifier) ends(head *Head) {
	if n := len(v.chain); n > 0 {
		v.head = Head{v.chain[n-1].seq, v.chain[n-1].hash}
	}
	if head == nil {
		v.say("the head is missing: nobody knows how far the chain went")
		head = &v.head
	}
	switch {
	case head.Seq > v.head.Seq:
		v.missing(v.head.Seq+1, head.Seq, " at the end")
	case head.Seq < v.head.Seq:
		v.say("the head is record %d, the chain goes on to %d", head.Seq, v.head.Seq)
	case head.Hash != v.head.Hash:
		v.say("record %d is not what the head was written after", head.Seq)
	}
	if n := len(v.chain); n == 0 {
		return
	}
	first := &v.chain[0]
	switch least := max(head.Seq, Max) - Max + 1; {
	case first.seq > least:
		v.missing(least, first.seq-1, " at the beginning")
	case first.seq == 1 && first.prev != nothing:
		v.say("record 1 was written after another one")
	}
}

// against holds the chain against a head that was kept elsewhere.
func (v *verifier) against(known *Head) {
	i, ok := slices.BinarySearchFunc(v.chain, known.Seq, func(l link, n uint64) int { return cmp.Compare(l.seq, n) })
	switch {
	case ok && v.chain[i].hash != known.Hash:
		v.say("record %d is another one than is known: it, or what came before, was written anew", known.Seq)
	case !ok && known.Seq > v.head.Seq:
		v.say("record %d is known and the chain ends with %d: it was cut off, or is an older copy", known.Seq, v.head.Seq)
	case !ok:
		v.say("record %d is known and not kept any more: nothing can be held against it", known.Seq)
	}
}
