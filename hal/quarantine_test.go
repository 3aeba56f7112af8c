package hal

import (
	"errors"
	"fmt"
	"testing"
	"time"
)

func quarantineRig(t *testing.T) (*Quarantine, Module, func(ms int, class Class, addr uint16, err error) error) {
	t.Helper()
	b := Board{Buses: []Bus{{Kind: I2C}}}
	for channel := range uint8(2) {
		b.Bundles = append(b.Bundles, Bundle{Modules: []Module{{Mux: 0x70, MuxPart: PCA9548, MuxChannel: channel, Temp: 0x48, EEPROM: 0x50, Rail: 0x40, LaneEnable: 0x38}}})
	}
	q, m := NewQuarantine(&b), b.Bundles[1].Modules[0]
	// try carries out one op to a chip behind the module's mux.
	try := func(ms int, class Class, addr uint16, fail error) error {
		now := time.Duration(ms) * time.Millisecond
		op := &Op{Class: class, Msgs: []Msg{{Addr: m.Mux, W: []byte{1 << m.MuxChannel}}, {Addr: addr, W: []byte{0}}}}
		if err := q.Refuse(now, m.Slow, op); err != nil {
			return err
		}
		c := &Completion{Bus: m.Slow, Op: op, Start: now, End: now, Err: fail}
		if fail != nil {
			c.Msg = 1
		}
		q.Done(now, c)
		return fail
	}
	return q, m, try
}

func TestThreeErrorsInARowLatch(t *testing.T) {
	// Goal: three consecutive errors latch a device and nothing else; a success
	// between them starts the count again; polling a memory that programs
	// never counts.
	// Method: ops to two chips behind one mux channel, times in milliseconds.
	nack := fmt.Errorf("bus: %w", ErrAddressNACK)
	q, m, try := quarantineRig(t)
	for ms := range 80 {
		try(ms, ClassHousekeeping, m.EEPROM, nack) // tWRITENV
	}
	try(80, ClassHousekeeping, m.EEPROM, nil)
	for i, err := range []error{nack, nack, nil, nack, nack} {
		try(1000+100*i, ClassHousekeeping, m.EEPROM, err)
	}
	if h := q.Held(); len(h) != 0 {
		t.Fatalf("latched too early: %v", h)
	}
	try(2000, ClassHousekeeping, m.EEPROM, nack)
	h := q.Held()
	want := Device{Bus: m.Slow, Mux: m.Mux, Channel: m.MuxChannel, Addr: m.EEPROM}
	if len(h) != 1 || h[0].Device != want || !h[0].Absent || !errors.Is(h[0].Cause, ErrAddressNACK) {
		t.Fatalf("held %+v, want %v", h, want)
	}
	if err := try(2001, ClassHousekeeping, m.EEPROM, nil); !errors.Is(err, ErrQuarantined) || !errors.Is(err, ErrAddressNACK) {
		t.Errorf("an op to a latched device: %v", err)
	}
	if err := try(2001, ClassHousekeeping, m.Temp, nil); err != nil {
		t.Errorf("its neighbour: %v", err)
	}
	if err := try(2001, ClassSwitch, m.EEPROM, nack); errors.Is(err, ErrQuarantined) {
		t.Errorf("what moves light must be tried: %v", err)
	}
}

func TestReinsertionOrCommandClears(t *testing.T) {
	// Goal: a device that was gone and answers again is let out by the next
	// trial; one that was always there waits for a command.
	// Method: latch by NACK and by CRC, then trials every five seconds, of what is
	// absent every second.
	for _, tc := range []struct {
		cause error
		out   bool
		trial int
	}{{ErrAddressNACK, true, 1200}, {ErrCRC, false, 5200}, {ErrTimeout, false, 5200}} {
		q, m, try := quarantineRig(t)
		for i := range 3 {
			try(100*i, ClassHousekeeping, m.Temp, tc.cause)
		}
		if err := try(tc.trial-1, ClassHousekeeping, m.Temp, nil); !errors.Is(err, ErrQuarantined) {
			t.Errorf("%v: before the trial: %v", tc.cause, err)
		}
		if err := try(tc.trial, ClassHousekeeping, m.Temp, nil); err != nil {
			t.Errorf("%v: the trial was refused: %v", tc.cause, err)
		}
		if out := len(q.Held()) == 0; out != tc.out {
			t.Errorf("%v: let out: %v", tc.cause, out)
		}
		if !tc.out {
			d := q.Held()[0].Device
			if other := (Device{Bus: 9}); q.Clear(&other) != 0 || q.Clear(&d) != 1 || q.Clear(nil) != 0 {
				t.Errorf("%v: cleared wrongly", tc.cause)
			}
			if err := try(tc.trial+1, ClassHousekeeping, m.Temp, nil); err != nil {
				t.Errorf("%v: after the command: %v", tc.cause, err)
			}
		}
	}
}

func TestATrialIsAWholeOp(t *testing.T) {
	// Goal: the op that asks whether a device is back goes with all of its messages.
	// Only one of a single message to it ever did: a latch that lost its supply for
	// 10 s was left alone for ever.
	q, m, _ := quarantineRig(t)
	op := &Op{Class: ClassHousekeeping, Msgs: []Msg{{Addr: m.Guard, W: []byte{2}}, {Addr: m.Guard, W: []byte{6}}}}
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	for i := range 3 {
		q.Done(at(100*i), &Completion{Bus: m.ADC, Op: op, Err: ErrAddressNACK})
	}
	for ms := 300; ms < 10_000; ms += 100 { // absent
		if q.Refuse(at(ms), m.ADC, op) == nil {
			q.Done(at(ms), &Completion{Bus: m.ADC, Op: op, Err: ErrAddressNACK})
		}
	}
	let := 0
	for ms := 10_000; ms < 11_000; ms += 100 { // back
		if q.Refuse(at(ms), m.ADC, op) == nil {
			let++
			q.Done(at(ms), &Completion{Bus: m.ADC, Op: op})
		}
	}
	if let == 0 || len(q.Held()) > 0 {
		t.Errorf("%d ops within a second, held %v", let, q.Held())
	}
}

func TestTheBusIsNotTheDevice(t *testing.T) {
	// Goal: errors that are the bus's or the caller's latch nobody, and a mux
	// that fails is blamed itself.
	q, m, try := quarantineRig(t)
	for _, cause := range []error{ErrBusStuck, ErrArbitrationLost, ErrOutOfRange, ErrUnsupported, ErrQueueFull, ErrClosed, ErrNoDevice} {
		for i := range 5 {
			try(1000*i, ClassHousekeeping, m.Temp, cause)
		}
	}
	if h := q.Held(); len(h) != 0 {
		t.Errorf("latched %v", h)
	}
	for i := range 3 {
		now := time.Duration(i) * time.Second
		op := &Op{Class: ClassHousekeeping, Msgs: []Msg{{Addr: m.Mux, W: []byte{1}}, {Addr: m.Temp, W: []byte{0}}}}
		q.Done(now, &Completion{Bus: m.Slow, Op: op, Err: ErrByteNACK, Msg: 0})
	}
	if h := q.Held(); len(h) != 1 || h[0].Device != (Device{Bus: m.Slow, Addr: m.Mux}) {
		t.Errorf("a mux that fails: %v", h)
	}
}

func TestHeldBusLetsOutWhatAnswersAgain(t *testing.T) {
	// Goal: where several devices of a bus time out, each is let out by its own
	// next answer; the one that holds the bus stays.
	q, m, try := quarantineRig(t)
	for i := range 3 {
		try(100*i, ClassHousekeeping, m.Temp, ErrTimeout)
		try(100*i+1, ClassHousekeeping, m.Rail, ErrTimeout)
	}
	if h := q.Held(); len(h) != 2 {
		t.Fatalf("held %v", h)
	}
	if err := try(5300, ClassHousekeeping, m.Rail, nil); err != nil {
		t.Errorf("the trial: %v", err)
	}
	try(5301, ClassHousekeeping, m.Temp, ErrTimeout)
	if h := q.Held(); len(h) != 1 || h[0].Device.Addr != m.Temp {
		t.Errorf("held %v", h)
	}
}

func TestControllersMayHoldOffForLong(t *testing.T) {
	// Goal: a CMIS module that does not acknowledge for 4.96 s is at work; one
	// that does not for longer is latched.
	b := Board{Buses: []Bus{{Kind: I2C}}, Bundles: []Bundle{{Modules: []Module{{Kind: KindCMIS, Mux: 0x70, MuxPart: PCA9848, MuxChannel: 1}}}}}
	q, m := NewQuarantine(&b), b.Bundles[0].Modules[0]
	try := func(ms int, fail error) {
		op := &Op{Class: ClassHousekeeping, Msgs: []Msg{{Addr: m.Mux, W: []byte{1 << m.MuxChannel}}, {Addr: MCIAddr, W: []byte{0}}}}
		q.Done(time.Duration(ms)*time.Millisecond, &Completion{Bus: m.MCI, Op: op, Err: fail, Msg: 1})
	}
	for ms := 0; ms < 4960; ms += 40 {
		try(ms, ErrAddressNACK)
	}
	if h := q.Held(); len(h) != 0 {
		t.Errorf("held while it may be at work: %v", h)
	}
	try(5000, ErrAddressNACK)
	if h := q.Held(); len(h) != 1 || h[0].Device != (Device{Bus: m.MCI, Mux: m.Mux, Channel: m.MuxChannel, Addr: MCIAddr}) {
		t.Errorf("held %v", h)
	}
}
