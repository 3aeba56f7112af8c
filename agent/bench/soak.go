package bench

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/at24"
	"ringlight/hal/pca9548"
	"ringlight/hal/tmp102"
	"ringlight/mzi/detmath"
)

// Soak reads chips whose answers are known over and over, so that a read that
// is wrong shows even where the bus says that all went well.
type Soak struct {
	Board hal.Board
	Chips []Known
	// Deadline of each op; 0: 2 s. On a machine that is emulated on a busy host
	// everything may stand still for seconds, which is no fault of a bus.
	Deadline time.Duration
}

// Known is a chip and what it answered when nothing else was going on.
type Known struct {
	Chip  Chip
	Bus   hal.BusID
	Text  string // for a person
	Cause error  // of an absent chip: what the bus said
	Took  time.Duration

	image        []byte
	deadline     time.Duration
	millicelsius int32
	limits       [2][]byte // of a temperature chip: low, high
	id           []byte
}

// Bounds of what a soak reads. chosen: enough of an EEPROM that no two places
// look alike, few enough bytes that a transaction is short.
const (
	imageBytes  = 1024
	imageChunk  = 32
	longestRead = 16
	jedecID     = 0x9F // JESD216: manufacturer and device, three bytes; more may follow
	// An emulated i.MX does not raise the chip select between two transfers;
	// its flash takes the next command only after these bytes.
	idBytes    = 6
	idBytesSay = 3
	// driftMillicelsius is how far a temperature may move while one soaks.
	driftMillicelsius = 5000
	// probeDeadline lets a slow adapter driver say itself what is wrong.
	probeDeadline = 2 * time.Second
	ackPolls      = 200
	ackPollGap    = 100 * time.Microsecond
)

// NewSoak is a soak of these chips; the board has the buses that they need.
// A board that has them already goes by OnBoard.
func NewSoak(chips []Chip) *Soak {
	board, at := boardOf(chips)
	return newSoak(board, chips, at)
}

// OnBoard is a soak of the chips that a whole board has, see chipsOf.
func OnBoard(b *hal.Board) *Soak {
	chips := chipsOf(b)
	at := make([]hal.BusID, len(chips))
	for i, c := range chips {
		for n, bus := range b.Buses {
			if bus.Device == c.Device {
				at[i] = hal.BusID(n)
			}
		}
	}
	return newSoak(*b, chips, at)
}

func newSoak(board hal.Board, chips []Chip, at []hal.BusID) *Soak {
	s := &Soak{Board: board}
	for i, c := range chips {
		s.Chips = append(s.Chips, Known{Chip: c, Bus: at[i]})
	}
	return s
}

func (s *Soak) deadline() time.Duration {
	if s.Deadline > 0 {
		return s.Deadline
	}
	return probeDeadline
}

// Learn asks every chip what it has to say, one after the other. An absent
// chip must not answer; everything else must, twice the same.
func (s *Soak) Learn(b Board) error {
	h := &direct{field: Alone(b)}
	var errs []error
	for i := range s.Chips {
		k := &s.Chips[i]
		k.deadline = s.deadline()
		before := b.Now()
		if err := k.learn(h); err != nil {
			errs = append(errs, fmt.Errorf("%v: %w", k.Chip, err))
		}
		k.Took = b.Now() - before
	}
	return errors.Join(errs...)
}

// do carries out one message to the chip, the mux before it.
func (k *Known) do(h *direct, m hal.Msg) error {
	return h.do(k.Bus, k.deadline, k.msgs(m)...)
}

func (k *Known) msgs(m hal.Msg) []hal.Msg {
	m.Addr = k.Chip.Addr
	if k.Chip.Mux == noMux {
		return []hal.Msg{m}
	}
	return []hal.Msg{{Addr: k.Chip.Mux, W: pca9548.AppendSelect(nil, k.Chip.Channel)}, m}
}

func (k *Known) learn(h *direct) error {
	switch k.Chip.Kind {
	case ChipEEPROM:
		return k.learnEEPROM(h)
	case ChipTemp:
		return k.learnTemp(h)
	case ChipMux:
		m := hal.Msg{Addr: k.Chip.Addr, W: pca9548.AppendNone(nil), R: make([]byte, 1)}
		if err := k.do(h, m); err != nil {
			return err
		}
		k.Text = fmt.Sprintf("%d channels, control register reads back", pca9548.Channels)
	case ChipFlash:
		m := askID()
		if err := k.do(h, m); err != nil {
			return err
		}
		k.id = m.R[1:]
		if say := k.id[:idBytesSay]; bytes.Equal(say, make([]byte, idBytesSay)) || bytes.Equal(say, []byte{0xFF, 0xFF, 0xFF}) {
			return fmt.Errorf("JEDEC number % x: no flash answers", say)
		}
		k.Text = fmt.Sprintf("JEDEC number % x", k.id[:idBytesSay])
	case ChipAbsent:
		err := k.do(h, hal.Msg{R: make([]byte, 1)})
		if err == nil {
			return errors.New("something answers")
		}
		k.Cause = err
		k.Text = err.Error()
	}
	return nil
}

// memory is what an EEPROM is.
func (k *Known) memory() at24.Chip { return at24.Of(k.Chip.Part) }

func (k *Known) imageBytes() int { return min(imageBytes, k.memory().Size) }

func (k *Known) learnEEPROM(h *direct) error {
	k.image = make([]byte, 0, k.imageBytes())
	for at := 0; at < k.imageBytes(); at += imageChunk {
		m := hal.Msg{W: k.memory().AppendRead(nil, uint16(at)), R: make([]byte, imageChunk)}
		if err := k.do(h, m); err != nil {
			return err
		}
		k.image = append(k.image, m.R...)
	}
	sum := sha256.Sum256(k.image)
	k.Text = fmt.Sprintf("sha256 of the first %d bytes %s", k.imageBytes(), hex.EncodeToString(sum[:8]))
	if serial, err := hal.ParseIdentity(k.image); err == nil {
		k.Text += ", serial number " + serial
	} else {
		k.Text += ", " + err.Error()
	}
	return nil
}

func (k *Known) learnTemp(h *direct) error {
	var regs [3][]byte
	for i, reg := range []byte{tmp102.RegTemperature, tmp102.RegLow, tmp102.RegHigh} {
		m := hal.Msg{W: tmp102.AppendRead(nil, reg), R: make([]byte, 2)}
		if err := k.do(h, m); err != nil {
			return err
		}
		regs[i] = m.R
	}
	k.millicelsius = tmp102.Millicelsius(regs[0])
	k.limits = [2][]byte{regs[1], regs[2]}
	k.Text = fmt.Sprintf("%.4f C, limits %.1f and %.1f C", float64(k.millicelsius)/1000,
		float64(tmp102.Millicelsius(regs[1]))/1000, float64(tmp102.Millicelsius(regs[2]))/1000)
	return nil
}

// TryWrite writes the place where two pages of the memory meet, waits for the
// chip by polling its acknowledgement, reads back, and restores what was
// there. It reports how often it had to poll.
func (s *Soak) TryWrite(b Board, chip int) (polls int, err error) {
	k := &s.Chips[chip]
	h := &direct{field: Alone(b)}
	const n = 8
	from := uint16(k.imageBytes() - k.memory().PageBytes - n/2) // over a page's end
	was := bytes.Clone(k.image[from:][:n])
	marked := bytes.Clone(was)
	for i := range marked {
		marked[i] ^= 0xA5
	}
	for _, data := range [][]byte{marked, was} {
		p, err := k.write(h, from, data)
		polls += p
		if err != nil {
			return polls, err
		}
		m := hal.Msg{W: k.memory().AppendRead(nil, from), R: make([]byte, n)}
		if err := k.do(h, m); err != nil {
			return polls, err
		}
		if !bytes.Equal(m.R, data) {
			return polls, fmt.Errorf("wrote % x at %#x, read % x", data, from, m.R)
		}
	}
	return polls, nil
}

func (k *Known) write(h *direct, addr uint16, data []byte) (polls int, err error) {
	for len(data) > 0 {
		w, n := k.memory().AppendWrite(nil, addr, data)
		if err := k.do(h, hal.Msg{W: w}); err != nil {
			return polls, err
		}
		addr, data = addr+uint16(n), data[n:]
		for done := false; !done; polls++ {
			err := k.do(h, hal.Msg{W: k.memory().AppendRead(nil, addr)})
			switch {
			case err == nil:
				done = true
			case polls >= ackPolls || !errors.Is(err, hal.ErrAddressNACK):
				return polls, fmt.Errorf("after %d polls: %w", polls, err)
			default:
				h.wait(ackPollGap)
			}
		}
	}
	return polls, nil
}

// Trial is one transaction of a soak and what must come back.
type Trial struct {
	Chip *Known
	Op   *hal.Op
	want []byte
}

// Draw makes a transaction of a soak, nil when there is no chip to read.
func (s *Soak) Draw(rng *detmath.Random) *Trial {
	for range 64 {
		if len(s.Chips) == 0 {
			break
		}
		k := &s.Chips[rng.Modulo(len(s.Chips))]
		if k.Chip.Kind == ChipAbsent {
			continue
		}
		t := &Trial{Chip: k}
		m := t.message(rng)
		t.Op = &hal.Op{Class: hal.Class(rng.Modulo(hal.NumClasses)), Deadline: s.deadline(), Msgs: k.msgs(m)}
		return t
	}
	return nil
}

func (t *Trial) message(rng *detmath.Random) hal.Msg {
	k := t.Chip
	switch k.Chip.Kind {
	case ChipEEPROM:
		n := 1 + rng.Modulo(longestRead)
		at := rng.Modulo(k.imageBytes() - n)
		t.want = k.image[at : at+n]
		return hal.Msg{W: k.memory().AppendRead(nil, uint16(at)), R: make([]byte, n)}
	case ChipTemp:
		reg := []byte{tmp102.RegTemperature, tmp102.RegLow, tmp102.RegHigh}[rng.Modulo(3)]
		if reg != tmp102.RegTemperature {
			t.want = k.limits[reg-tmp102.RegLow]
		}
		return hal.Msg{W: tmp102.AppendRead(nil, reg), R: make([]byte, 2)}
	case ChipMux:
		// Nothing of another op may come between the choice and the look at it.
		w := pca9548.AppendSelect(nil, uint8(rng.Modulo(pca9548.Channels)))
		t.want = w
		return hal.Msg{W: w, R: make([]byte, 1)}
	}
	t.want = k.id
	return askID()
}

func askID() hal.Msg {
	w := make([]byte, 1+idBytes)
	w[0] = jedecID
	return hal.Msg{Frame: 1 + idBytes, W: w, R: make([]byte, len(w))}
}

// Wrong says what is wrong with what came back, "" when it is right.
func (t *Trial) Wrong() string {
	got := t.Op.Msgs[len(t.Op.Msgs)-1].R
	switch {
	case t.Chip.Chip.Kind == ChipFlash:
		got = got[1:]
	case t.want == nil:
		c := tmp102.Millicelsius(got)
		if d := c - t.Chip.millicelsius; d > driftMillicelsius || d < -driftMillicelsius {
			return fmt.Sprintf("%v: %.4f C, was %.4f", t.Chip.Chip, float64(c)/1000, float64(t.Chip.millicelsius)/1000)
		}
		return ""
	}
	if bytes.Equal(got, t.want) {
		return ""
	}
	return fmt.Sprintf("%v: read % x, want % x", t.Chip.Chip, got, t.want)
}
