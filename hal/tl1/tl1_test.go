package tl1_test

import (
	"errors"
	"slices"
	"testing"

	"ringlight/hal"
	"ringlight/hal/tl1"
)

// Golden messages and their negative twins.
func TestMessages(t *testing.T) {
	const head = "\r\n\n   box 26-01-01 00:00:01\r\n"
	for _, c := range []struct {
		in   string
		want tl1.Message
		bad  bool
	}{
		{in: head + "M  12 COMPLD\r\n;", want: tl1.Message{Tag: 12, Code: "COMPLD"}},
		{in: head + "M  12 COMPLD\r\n   \"a=1,b=2\"\r\n   \"c\"\r\n;", want: tl1.Message{Tag: 12, Code: "COMPLD", Text: []string{"a=1,b=2", "c"}}},
		{in: head + "M  3 DENY\r\n   SROF\r\n;", want: tl1.Message{Tag: 3, Code: "DENY", Text: []string{"SROF"}}},
		{in: head + "*C 7 REPT ALM\r\n   \"1.1.1:CR,LOS; now\"\r\n;", want: tl1.Message{Code: "REPT ALM", Text: []string{"1.1.1:CR,LOS; now"}}},
		{in: "RTRV-NE:::5;\r\n" + head + "M  5 COMPLD\r\n;", want: tl1.Message{Tag: 5, Code: "COMPLD"}}, // echoed
		{in: head + "M  x COMPLD\r\n;", bad: true},
		{in: head + "M  0 COMPLD\r\n;", bad: true},
		{in: head + "M  12\r\n;", bad: true},
		{in: head + "M  12 COMPLD\r\n   \"open\r\n;", bad: true},
		{in: "\r\n;", bad: true},
	} {
		var r tl1.Reader
		var got tl1.Message
		var ok bool
		var err error
		for i := range len(c.in) { // byte by byte
			if ok || err != nil {
				t.Errorf("%q: over before its end", c.in)
			}
			r.Put([]byte{c.in[i]})
			got, ok, err = r.Next()
		}
		if c.bad {
			if !errors.Is(err, hal.ErrBoxReply) || ok {
				t.Errorf("%q: %+v, %v", c.in, got, err)
			}
			continue
		}
		if err != nil || !ok || got.Tag != c.want.Tag || got.Code != c.want.Code || !slices.Equal(got.Text, c.want.Text) {
			t.Errorf("%q: %+v, %v", c.in, got, err)
		}
	}
	// Cut short: never a message.
	var r tl1.Reader
	r.Put([]byte(head + "M  12 COMPLD\r\n"))
	if m, ok, err := r.Next(); ok || err != nil {
		t.Errorf("cut short: %+v %v", m, err)
	}
	r.Put(make([]byte, tl1.MaxMessage))
	if _, _, err := r.Next(); !errors.Is(err, hal.ErrBoxReply) {
		t.Errorf("without end: %v", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\r\n\n   box 26-01-01 00:00:01\r\nM  12 COMPLD\r\n   \"a=1,b=2\"\r\n;"))
	f.Add([]byte("A 1 REPT EVT\n;M 1 DENY\n;"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r tl1.Reader
		r.Put(b)
		for range len(b) + 1 {
			_, ok, err := r.Next()
			if err != nil && !errors.Is(err, hal.ErrBoxReply) {
				t.Error(err)
			}
			if err == nil && !ok {
				return
			}
		}
		t.Error("endless")
	})
}

func FuzzClient(f *testing.F) {
	f.Add([]byte("M 1 COMPLD\n;M 2 COMPLD\n;M 3 COMPLD\n\"SRCPORT=1.1.1,DSTPORT=1.1.2,GRPNAME=G\"\n;"), uint8(9))
	f.Fuzz(func(t *testing.T, b []byte, piece uint8) {
		c := tl1.NewClient(tl1.Config{Names: tl1.DefaultNames(4), User: "u", Group: "G"})
		c.Begin(hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 1}}, Powers: true})
		for part := range slices.Chunk(b, int(piece)+1) {
			c.Next(nil)
			c.Take(part)
		}
	})
}
