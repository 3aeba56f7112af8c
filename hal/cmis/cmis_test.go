package cmis

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"ringlight/hal"
)

// Goal: the field table has no holes in its own rules.
// Method: order, bounds and overlaps; banked pages as Banked says.
func TestFieldTable(t *testing.T) {
	for i, f := range fields {
		end := int(f.Offset) + int(f.Length)
		if f.Length == 0 || end > 256 || f.Offset < 128 && (end > 128 || f.Page != 0) {
			t.Errorf("%s: %d bytes at %d of page %02xh", f.Name, f.Length, f.Offset, f.Page)
		}
		if f.Offset >= 128 && f.Banked != Banked(f.Page) {
			t.Errorf("%s: banked %v on page %02xh", f.Name, f.Banked, f.Page)
		}
		if f.Since < 0x30 || f.Since > 0x54 {
			t.Errorf("%s: since %02xh", f.Name, f.Since)
		}
		if i == 0 {
			continue
		}
		b := fields[i-1]
		same := b.Page == f.Page && b.Offset < 128 == (f.Offset < 128)
		if same && int(f.Offset) < int(b.Offset)+int(b.Length) {
			t.Errorf("%s and %s overlap", b.Name, f.Name)
		}
	}
	if f, ok := At(0x55, Temperature+1); !ok || f.Name != "TempMonValue" {
		t.Errorf("lower memory is on every page: %v, %v", f, ok)
	}
	if f, ok := At(PageLaneStatus, RxLOS); !ok || f.Access != COR {
		t.Errorf("11h:147: %v, %v", f, ok)
	}
	if _, ok := At(0x12, 200); ok {
		t.Error("a byte of a page that is not in the table has a field")
	}
}

// Goal: numbers read as the specification has them.
func TestValues(t *testing.T) {
	for _, tc := range []struct {
		b    []byte
		want int32
	}{{[]byte{0x19, 0x80}, 25_500}, {[]byte{0xFF, 0x00}, -1000}, {[]byte{0x80, 0x00}, -128_000}, {[]byte{0x00, 0x01}, 3}} {
		if got := MilliCelsius(tc.b); got != tc.want {
			t.Errorf("% x: %d, want %d", tc.b, got, tc.want)
		}
	}
	for _, milli := range []int32{0, 25_500, -1, -40_000, 85_125} {
		var b [2]byte
		PutMilliCelsius(b[:], milli)
		if d := milli - MilliCelsius(b[:]); d < -4 || d > 4 {
			t.Errorf("%d comes back as %d", milli, MilliCelsius(b[:]))
		}
	}
	for code, want := range []time.Duration{time.Millisecond, 5 * time.Millisecond, 10 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 500 * time.Millisecond, time.Second, 5 * time.Second, 10 * time.Second, time.Minute} {
		if got := Duration(uint8(code)); got != want || DurationCode(want) != uint8(code) {
			t.Errorf("code %d: %v and back %d", code, got, DurationCode(want))
		}
	}
	if Duration(15) != 50*time.Minute || DurationCode(time.Hour) != 12 {
		t.Error("reserved codes must mean the longest")
	}
	if got := Text([]byte("OCSTRX-8  \x00")); got != "OCSTRX-8" {
		t.Errorf("%q", got)
	}
}

// Goal: state names are those of the specification, and only its edges are.
func TestStates(t *testing.T) {
	if s := ModuleStateOf(0x07); s != ModuleReady || s.String() != "ModuleReady" {
		t.Errorf("07h: %v", s)
	}
	if s := ModuleStateOf(0x0F).String(); s != "unknown(7)" {
		t.Errorf("0Fh: %v", s)
	}
	edges, path := 0, 0
	for a := range uint8(16) {
		for b := range uint8(8) {
			if ModuleState(a).CanBecome(ModuleState(b)) {
				edges++
			}
			if DataPathState(a).CanBecome(DataPathState(b)) {
				path++
			}
		}
	}
	if edges != 11 || path != 11 {
		t.Errorf("%d edges of the module, %d of a data path", edges, path)
	}
	if ModuleLowPwr.CanBecome(ModuleReady) || DPActivated.CanBecome(DPDeactivated) {
		t.Error("a transient state was skipped")
	}
	b := []byte{0, 0, 0, 0}
	PutNibble(b, 0, 4)
	PutNibble(b, 1, 7)
	PutNibble(b, 6, 1)
	if !bytes.Equal(b, []byte{0x74, 0, 0, 0x01}) || Nibble(b, 1) != 7 || Nibble(b, 0) != 4 {
		t.Errorf("nibbles % x", b)
	}
}

// adverts is a page 01h with a right checksum.
func adverts(set map[int]byte) []byte {
	b := make([]byte, 128)
	for at, v := range set { // any order: each its own byte
		b[at-128] = v
	}
	sum, at, _ := Checksum(PageAdvertise, b)
	b[at-128] = sum
	return b
}

// Goal: advertisements are understood, and a page that is damaged is not.
func TestAdvert(t *testing.T) {
	page := adverts(map[int]byte{142: 0x61, 144: 0x52, 163: 0x60, 164: 15, 165: 31, 166: 0x80, 167: 0x36, 168: 0x01, 169: 3, 251: 1, 252: 0x80})
	a, err := ParseAdvert(page)
	if err != nil {
		t.Fatal(err)
	}
	want := Advert{Limits: Limits{Read: 128, Write: 8, PageChange: 1250 * time.Microsecond, Volatile: 10 * time.Millisecond, NonVolatile: 80 * time.Millisecond, CDB: 4960 * time.Millisecond},
		Banks: 2, Diagnostics: true, Monitors: true, CDBInstances: 1,
		DPInit: 10 * time.Millisecond, DPDeinit: 500 * time.Millisecond, PowerUp: time.Second, TurnOn: 5 * time.Millisecond}
	if a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
	if a, _ := ParseAdvert(adverts(map[int]byte{166: 30})); a.CDB != 50*time.Millisecond || a.Read != 8 {
		t.Errorf("%+v", a)
	}
	for i := 2; i < len(page); i++ { // bytes 128 and 129 are outside the sum
		bad := bytes.Clone(page)
		bad[i] ^= 0x10
		if _, err := ParseAdvert(bad); !errors.Is(err, errChecksum) {
			t.Errorf("byte %d flipped: %v", 128+i, err)
		}
	}
	if _, err := ParseAdvert(page[:127]); !errors.Is(err, errShort) {
		t.Errorf("cut: %v", err)
	}
}

// Goal: the custom pages come back as written, and damage is refused.
func TestOCSTrx(t *testing.T) {
	c := Control{Trigger: true, Counters: true, TriggerMax: 30 * time.Microsecond, SettleMax: 10 * time.Millisecond}
	b := c.Bytes()
	if !bytes.Equal(b[:], []byte{'O', 'C', 'S', 'T', 1, 5, 0, 30, 0x27, 0x10, 36, 8}) {
		t.Errorf("% x", b)
	}
	if got, err := ParseControl(b[:]); err != nil || got != c {
		t.Errorf("%+v, %v", got, err)
	}
	for _, i := range []int{0, 3, 4, 10, 11} {
		bad := b
		bad[i]++
		if _, err := ParseControl(bad[:]); !errors.Is(err, ErrNotOCSTrx) {
			t.Errorf("byte %d: %v", i, err)
		}
	}
	if _, err := ParseControl(b[:11]); !errors.Is(err, ErrNotOCSTrx) {
		t.Errorf("cut: %v", err)
	}
	s, err := ParseStatus([]byte{0xB1, 1, 7, 0xB1, 0x01, 0x02, 0xFF})
	if want := (Status{0xB1, AnswerDone, 7, 0xB1, 258 * time.Microsecond, true}); err != nil || s != want {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := ParseStatus(make([]byte, 6)); !errors.Is(err, errShort) {
		t.Errorf("cut: %v", err)
	}
	valid := 0
	for v := range 256 {
		if ValidTrigger(byte(v)) {
			valid++
		}
	}
	if valid != 3*4 {
		t.Errorf("%d triggers are valid, want 3 paths with 4 settings of the lasers", valid)
	}
}

// Goal: both readings of the check code, by the one example that tells them
// apart, and a command comes back as it was sent.
func TestCheckCode(t *testing.T) {
	query := []byte{0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x10}
	if a, b := CheckCode(query, OnesComplement), CheckCode(query, TwosComplement); a != 0xED || b != 0xEE {
		t.Errorf("%02x and %02x", a, b)
	}
	for _, reading := range []CheckReading{OnesComplement, TwosComplement} {
		sent := bytes.Clone(query)
		sent[5] = CheckCode(query, reading)
		id, payload, as, err := ParseCDBCommand(sent)
		if err != nil || id != 0 || as != reading || !bytes.Equal(payload, []byte{0, 0x10}) {
			t.Errorf("%04x % x %v %v", id, payload, as, err)
		}
		sent[9] += 2
		if _, _, _, err := ParseCDBCommand(sent); !errors.Is(err, errChecksum) {
			t.Errorf("damaged: %v", err)
		}
		if _, _, _, err := ParseCDBCommand(sent[:9]); !errors.Is(err, errShort) {
			t.Errorf("cut: %v", err)
		}
	}
}

// Goal: the linear image has every page in its place.
func TestImage(t *testing.T) {
	var m Image
	var lower, admin, bank1 [128]byte
	lower[0], admin[0], bank1[127] = 0x18, 0x19, 0x77
	m.PutLower(lower)
	m.PutPage(0, 0, admin)
	if n := len(m.Bytes()); n != 256 {
		t.Errorf("%d bytes", n)
	}
	m.PutPage(1, 0x11, bank1)
	b := m.Bytes()
	if want := (256+0x11)*128 + 128 + 128; len(b) != want || b[0] != 0x18 || b[128] != 0x19 || b[len(b)-1] != 0x77 {
		t.Errorf("%d bytes, want %d", len(b), want)
	}
}

// Goal: names print, unknown values too.
func TestNames(t *testing.T) {
	if AnswerNotStaged.String() != "not staged" || !strings.HasPrefix(Answer(99).String(), "unknown") {
		t.Error("names")
	}
	if hal.MCIAddr != 0x50 {
		t.Error("every CMIS module answers at 50h")
	}
}
