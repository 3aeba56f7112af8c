package cmis

import (
	"testing"
	"time"

	"ringlight/hal"
)

// Goal: no bytes make a decoder panic, and what it accepts it can say again.
func FuzzDecoders(f *testing.F) {
	c := Control{Trigger: true, Staging: true}.Bytes()
	f.Add(c[:])
	f.Add(adverts(map[int]byte{169: 3}))
	f.Add([]byte{0, 0x40, 0, 0, 0, 0xBF, 0, 0})
	f.Add(make([]byte, 256))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, err := ParseControl(b); err == nil {
			again := c.Bytes()
			if d, err := ParseControl(again[:]); err != nil || d != c {
				t.Errorf("%+v comes back as %+v, %v", c, d, err)
			}
		}
		if a, err := ParseAdvert(b); err == nil {
			if a.PageChange < 0 || a.PageChange > 10*time.Millisecond || a.CDB < 0 || a.CDB > 4960*time.Millisecond || a.Read < 8 || a.Banks < 1 {
				t.Errorf("%+v", a)
			}
		}
		if s, err := ParseStatus(b); err == nil {
			_ = s.Answer.String()
		}
		if _, payload, as, err := ParseCDBCommand(b); err == nil && (len(payload) > CDBPayloadBytes || as > TwosComplement) {
			t.Errorf("payload of %d bytes", len(payload))
		}
		if len(b) >= 128 {
			_ = CheckPage(1, b[:128])
		}
	})
}

// Goal: no sequence of answers makes a port hang, write what may not be written
// or hold more than eight bytes in one write.
func FuzzPort(f *testing.F) {
	f.Add(uint8(0x11), uint8(200), uint8(8), false, []byte{0, 1, 2, 0, 0})
	f.Add(uint8(0xB1), uint8(128), uint8(72), true, []byte{0, 0, 1, 1, 0, 3})
	f.Fuzz(func(t *testing.T, page, offset, n uint8, write bool, answers []byte) {
		p := NewPort(0, 0)
		now := time.Duration(0)
		p.Start(now, Request{Write: write, Page: page, Offset: offset, Data: make([]byte, n)})
		for i := 0; p.Busy(); i++ {
			if i > 3000 {
				t.Fatal("never ends")
			}
			now = max(now, p.Next())
			msgs := p.Poll(now)
			// Before what is read of a page, the page itself may be asked for.
			last := len(msgs) - 1
			asks := last == 1 && !write && len(msgs[0].W) == 1 && msgs[0].W[0] == BankSelect && len(msgs[0].R) == 2
			if last != 0 && !asks || len(msgs[last].W) > 9 || len(msgs[last].R) > 8 {
				t.Fatalf("%d messages: %+v", len(msgs), msgs)
			}
			a := byte(1)
			if i < len(answers) {
				a = answers[i]
			}
			var err error
			switch a % 4 {
			case 0:
				for _, m := range msgs {
					for j := range m.R {
						m.R[j] = page * byte(j)
					}
				}
			case 1:
				err = hal.ErrAddressNACK
			case 2:
				err = hal.ErrTimeout
			}
			now += 50 * time.Microsecond
			p.Completed(now, 0, err)
		}
	})
}
