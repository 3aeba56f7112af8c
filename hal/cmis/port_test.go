package cmis

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
)

// answer is what a module says: one entry a message to it.
type answer struct {
	r    []byte
	err  error
	only int    // of the message, when not the last
	page []byte // of a question for bank and page that goes before; nil: as selected
}

// play runs a request against answers and writes down the wire.
func play(p *Port, q Request, answers ...answer) (trace string, end time.Duration, err error) {
	now := time.Duration(0)
	p.Start(now, q)
	for p.Busy() {
		now = max(now, p.Next())
		msgs := p.Poll(now)
		if len(answers) == 0 {
			return trace + "more", now, nil
		}
		a := answers[0]
		answers = answers[1:]
		last := msgs[len(msgs)-1]
		for _, m := range msgs {
			trace += fmt.Sprintf("%02x:% x/%d ", m.Addr, m.W, len(m.R))
		}
		copy(last.R, a.r)
		if n := len(msgs); n > 1 && len(msgs[n-2].R) > 0 {
			if copy(msgs[n-2].R, []byte{p.req.Bank, p.req.Page}); a.page != nil {
				copy(msgs[n-2].R, a.page)
			}
		}
		now += 100 * time.Microsecond
		msg := len(msgs) - 1
		if a.only != 0 {
			msg = a.only - 1
		}
		p.Completed(now, msg, a.err)
	}
	return strings.TrimSpace(trace), now, p.Err()
}

// Goal: a host that hears the answer late does not take a module for broken that it asked
// in time: it asks once more, and then holds to what it hears.
func TestPortOfALateHost(t *testing.T) {
	for _, broken := range []bool{false, true} {
		p := NewPort(0, 0)
		p.Start(0, Request{Write: true, Offset: 26, Data: []byte{0}})
		asked := 0
		for now := time.Duration(0); p.Busy(); {
			if p.Poll(now) == nil {
				t.Fatalf("nothing is asked at %v", now)
			}
			var err error
			if asked++; asked == 2 || asked > 2 && broken {
				err, now = hal.ErrAddressNACK, now+time.Second // a hundred times what a write may take
			}
			p.Completed(now, 0, err)
		}
		if err := p.Err(); asked != 3 || errors.Is(err, errHoldOff) != broken {
			t.Errorf("broken %v: asked %d times, %v", broken, asked, err)
		}
	}
}

// Goal: golden frames of a port: bank and page in one write, read back, at most
// eight bytes a write, asked until acknowledged; and what goes wrong.
func TestPortFrames(t *testing.T) {
	nack := hal.ErrAddressNACK
	ten := []byte{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	for _, tc := range []struct {
		name    string
		mux     uint16
		q       Request
		answers []answer
		want    string
		err     error
	}{
		{"lower, no page", 0, Request{Offset: 3, Data: make([]byte, 1)}, []answer{{}}, "50:03/1", nil},
		{"behind a mux", 0x70, Request{Offset: 3, Data: make([]byte, 1)}, []answer{{}}, "70:04/0 50:03/1", nil},
		{"page change", 0, Request{Bank: 1, Page: 0x11, Offset: 202, Data: make([]byte, 4)},
			[]answer{{}, {err: nack}, {err: nack}, {r: []byte{1, 0x11}}, {}}, "50:7e 01 11/0 50:7e/2 50:7e/2 50:7e/2 50:ca/4", nil},
		{"bank of an unbanked page is 0", 0, Request{Bank: 3, Page: 0xB0, Offset: 128, Data: make([]byte, 1)},
			[]answer{{}, {r: []byte{0, 0xB0}}, {}}, "50:7e 00 b0/0 50:7e/2 50:80/1", nil},
		{"absent page", 0, Request{Page: 0x12, Offset: 128, Data: make([]byte, 1)}, []answer{{}, {r: []byte{0, 0}}}, "50:7e 00 12/0 50:7e/2", ErrNoPage},
		{"absent bank", 0, Request{Bank: 2, Page: 0x10, Offset: 128, Data: make([]byte, 1)}, []answer{{}, {r: []byte{0, 0x10}}}, "50:7e 02 10/0 50:7e/2", ErrNoPage},
		{"long write", 0, Request{Write: true, Page: 0xB1, Offset: 128, Data: ten}, []answer{{}, {r: []byte{0, 0xB1}}, {}, {err: nack}, {r: []byte{0, 0xB1}}, {}, {}},
			"50:7e 00 b1/0 50:7e/2 50:80 01 02 03 04 05 06 07 08/0 50:7e/2 50:7e/2 50:88 09 0a/0 50:7e/2", nil},
		{"long write, the page moves", 0, Request{Write: true, Page: 0xB1, Offset: 128, Data: ten},
			[]answer{{}, {r: []byte{0, 0xB1}}, {}, {r: []byte{0, 0x10}}, {}, {r: []byte{0, 0xB1}}, {}, {}},
			"50:7e 00 b1/0 50:7e/2 50:80 01 02 03 04 05 06 07 08/0 50:7e/2 50:7e 00 b1/0 50:7e/2 50:88 09 0a/0 50:7e/2", nil},
		{"byte refused", 0, Request{Write: true, Offset: 26, Data: []byte{0}}, []answer{{err: hal.ErrByteNACK}}, "50:1a 00/0", hal.ErrByteNACK},
		{"mux gone", 0x70, Request{Offset: 3, Data: make([]byte, 1)}, []answer{{err: nack, only: 1}}, "70:04/0 50:03/1", nack},
		{"read-only", 0, Request{Write: true, Offset: 14, Data: []byte{0}}, nil, "", errReadOnly},
		{"latched", 0, Request{Offset: 0, Data: make([]byte, 16)}, nil, "", ErrLatched},
		{"over the half", 0, Request{Offset: 120, Data: make([]byte, 9)}, nil, "", ErrRange},
		{"over the page", 0, Request{Page: 1, Offset: 250, Data: make([]byte, 7)}, nil, "", ErrRange},
		{"nothing", 0, Request{}, nil, "", ErrRange},
	} {
		p := NewPort(tc.mux, 2)
		got, _, err := play(p, tc.q, tc.answers...)
		if got != tc.want || !errors.Is(err, tc.err) || tc.err == nil && err != nil {
			t.Errorf("%s: %q, %v; want %q, %v", tc.name, got, err, tc.want, tc.err)
		}
	}
}

// Goal: what another host's page holds is never taken for our own, nor written
// to; a page that moves again and again is an error of its own.
// Method: a page selected by one request has moved before the next.
func TestPortPageMoves(t *testing.T) {
	selected := func() *Port {
		p := NewPort(0, 0)
		if _, _, err := play(p, Request{Page: PageService, Offset: 130, Data: make([]byte, 2)}, answer{}, answer{r: []byte{0, PageService}}, answer{}); err != nil {
			t.Fatal(err)
		}
		return p
	}
	sel := answer{}
	ours := answer{r: []byte{0, PageService}}
	read := Request{Page: PageService, Offset: 140, Data: make([]byte, 2)}
	trace, _, err := play(selected(), read, answer{r: []byte{9, 9}, page: []byte{0, 2}}, sel, ours, answer{r: []byte{5, 6}})
	if want := fmt.Sprintf("50:7e/2 50:8c/2 50:7e 00 %02x/0 50:7e/2 50:8c/2", PageService); trace != want || err != nil || !bytes.Equal(read.Data, []byte{5, 6}) {
		t.Errorf("read: %q, %v, % x; want %q", trace, err, read.Data, want)
	}
	write := Request{Write: true, Page: 0xB1, Offset: 140, Data: []byte{7}}
	p := selected()
	if _, _, err := play(p, Request{Write: true, Page: 0xB1, Offset: 128, Data: []byte{7}}, sel, answer{r: []byte{0, 0xB1}}, answer{}, answer{}); err != nil {
		t.Fatal(err)
	}
	trace, _, err = play(p, write, answer{r: []byte{0, 2}}, sel, answer{r: []byte{0, 0xB1}}, answer{}, answer{})
	if want := "50:7e/2 50:7e 00 b1/0 50:7e/2 50:8c 07/0 50:7e/2"; trace != want || err != nil {
		t.Errorf("write: %q, %v; want %q", trace, err, want)
	}
	p = selected()
	p.Limits.Read = 1 // each part is looked at
	long := Request{Page: PageService, Offset: 150, Data: make([]byte, 8)}
	var again []answer
	for range maxMoves {
		again = append(again, answer{page: []byte{0, 2}}, sel, ours, answer{})
	}
	if _, _, err = play(p, long, append(again, answer{page: []byte{0, 2}})...); !errors.Is(err, errMoved) {
		t.Errorf("moved again and again: %v", err)
	}
}

// Goal: a module is waited for as long as it may be away, and no longer.
// Method: one that never comes back, after writes of each kind.
func TestPortPatience(t *testing.T) {
	for _, tc := range []struct {
		q    Request
		most time.Duration
	}{
		{Request{Offset: 3, Data: make([]byte, 1)}, 10 * time.Millisecond},
		{Request{Write: true, Offset: 26, Data: []byte{0}}, 10 * time.Millisecond},
		{Request{Write: true, Page: 0, Offset: 223, Data: []byte{0}}, 80 * time.Millisecond},
		{Request{Write: true, Page: PageCDB, Offset: 128, Data: []byte{0, 0}, Patience: 300 * time.Millisecond}, 300 * time.Millisecond},
	} {
		answers := []answer{}
		if tc.q.Page != 0 || tc.q.Offset >= 128 {
			answers = append(answers, answer{}, answer{r: []byte{0, tc.q.Page}})
		}
		if tc.q.Write {
			answers = append(answers, answer{})
		}
		for range 2000 {
			answers = append(answers, answer{err: hal.ErrAddressNACK})
		}
		p := NewPort(0, 0)
		_, end, err := play(p, tc.q, answers...)
		if !errors.Is(err, errHoldOff) || !errors.Is(err, hal.ErrAddressNACK) {
			t.Errorf("%+v: %v", tc.q, err)
		}
		if end < tc.most || end > tc.most+2*time.Millisecond {
			t.Errorf("%+v: gave up after %v, want %v", tc.q, end, tc.most)
		}
	}
}

// Goal: what does not change is read once; what a write or a reset touched is
// read again.
func TestPortCache(t *testing.T) {
	p := NewPort(0, 0)
	q := Request{Page: 1, Offset: 128, Data: make([]byte, 8)}
	serial := []byte{8, 7, 6, 5, 4, 3, 2, 1}
	if _, _, err := play(p, q, answer{}, answer{r: []byte{0, 1}}, answer{r: serial}); err != nil {
		t.Fatal(err)
	}
	again := Request{Page: 1, Offset: 130, Data: make([]byte, 4)}
	if trace, _, err := play(p, again); trace != "" || err != nil || !bytes.Equal(again.Data, serial[2:6]) {
		t.Errorf("%q, %v, % x", trace, err, again.Data)
	}
	if trace, _, _ := play(p, Request{Page: 1, Offset: 130, Data: make([]byte, 8)}, answer{}); trace != "50:7e/2 50:82/8" {
		t.Errorf("partly known: %q", trace)
	}
	if _, _, err := play(p, Request{Write: true, Offset: ModuleControl, Data: []byte{SoftwareReset}}, answer{}, answer{}); err != nil {
		t.Fatal(err)
	}
	if trace, _, _ := play(p, q, answer{}, answer{r: []byte{0, 1}}, answer{}); trace != "50:7e 00 01/0 50:7e/2 50:80/8" {
		t.Errorf("after a reset: %q", trace)
	}
	volatileField := Request{Page: PageLaneStatus, Offset: DPStates, Data: make([]byte, 1)}
	for range 2 {
		if trace, _, _ := play(p, volatileField, answer{}, answer{r: []byte{0, PageLaneStatus}}, answer{}); trace == "" {
			t.Error("a state was kept")
		}
	}
}

// Goal: flags without counters are counted once a raise seen, under their own names.
func TestFlagsWithoutCounters(t *testing.T) {
	p := NewPort(0, 0)
	f := NewFlags(p)
	page := make([]byte, 128)
	for _, faults := range []byte{0, 1 << 5, 1<<5 | 1, 0} {
		page[TxFault-128] = faults
		f.seen(PageLaneStatus, 128, page)
	}
	if got := maps.Collect(f.Raised); len(got) != 2 || got["TxFault1"] != 1 || got["TxFault6"] != 1 {
		t.Error(got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second reader was taken")
		}
	}()
	NewFlags(p)
}
