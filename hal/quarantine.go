package hal

import (
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"
)

// Device is one device of a board: an address on a bus, or behind one channel
// of a mux.
type Device struct {
	Bus     BusID
	Addr    uint16
	Mux     uint16 // 0: none
	Channel uint8
}

// String is bus/address, or bus/mux.channel/address.
func (d Device) String() string {
	if d.Mux == 0 {
		return fmt.Sprintf("%d/%#x", d.Bus, d.Addr)
	}
	return fmt.Sprintf("%d/%#x.%d/%#x", d.Bus, d.Mux, d.Channel, d.Addr)
}

// place orders devices.
func (d Device) place() uint64 {
	return uint64(d.Bus)<<40 | uint64(d.Mux)<<24 | uint64(d.Channel)<<16 | uint64(d.Addr)
}

// Limits of a quarantine.
const (
	// quarantineAfter consecutive errors. [hubris] drv/transceivers-server
	// gives up a module after three.
	quarantineAfter = 3
	// quarantineSpan lies at least between the first and the last of them: a
	// chip that programs a memory does not acknowledge for up to 80 ms (CMIS
	// tWRITENV), which is an answer and no fault. chosen: a little more.
	quarantineSpan = 100 * time.Millisecond
	// controllerSpan is the same for a CMIS module's controller, which may do a
	// command in the foreground for 4.96 s (CMIS tCDBF) and come up for 2 s.
	controllerSpan = 5 * time.Second
	// quarantineTrial is how often a device in quarantine is asked whether it
	// has come back. chosen: seldom enough not to load a bus that others use.
	quarantineTrial = 5 * time.Second
	// absentTrial is the same for one that does not acknowledge its address,
	// which takes a bus some ten bits. chosen: a supply that is back is seen
	// within a second.
	absentTrial = time.Second
)

// Quarantine keeps devices that fail again and again off their bus, so that
// one bad module costs the others nothing.
//
//	        3 errors over 100 ms              a command, or
//	free -------------------------> latched ---- absent, then present ---> free
//	     <-- any success (counting)
//
// A latched device is left alone but for one op every five seconds, one that is
// absent every second. That op
// tells a reinsertion: the device did not acknowledge its address, and now
// does. A device that was always there and merely works again stays latched
// until a person says so; but where several devices of a bus timed out, one of
// them held the bus, and those that answer again are let out. What moves or confirms light (ClassSwitch,
// ClassVerify) is always tried: protection does not wait for a person.
type Quarantine struct {
	muxes   []Device // Addr of each mux
	slow    []BusID  // of CMIS modules
	records []record
}

// record is what is known of a device that has failed.
type record struct {
	device  Device
	errors  int
	first   time.Duration // of the errors in a row
	latched bool
	since   time.Duration
	absent  bool          // it did not acknowledge its address
	shared  bool          // others on its bus timed out, too
	trial   time.Duration // the next one
	cause   error
}

// Held is a device in quarantine.
type Held struct {
	Device Device
	Since  time.Duration
	Absent bool  // it does not acknowledge its address
	Cause  error // the last error
}

// NewQuarantine is a quarantine for the devices of b.
func NewQuarantine(b *Board) *Quarantine {
	q := &Quarantine{}
	for i := range b.Bundles {
		for _, m := range b.Bundles[i].Modules {
			bus := m.Slow
			if m.Kind == KindCMIS {
				bus = m.MCI
				q.slow = append(q.slow, bus)
			}
			if d := (Device{Bus: bus, Addr: m.Mux}); m.Mux != 0 && !slices.Contains(q.muxes, d) {
				q.muxes = append(q.muxes, d)
			}
		}
	}
	return q
}

// device is what message n of op goes to.
func (q *Quarantine) device(bus BusID, op *Op, n int) Device {
	d := Device{Bus: bus, Addr: op.Msgs[n].Addr}
	for _, m := range op.Msgs[:n] {
		if !slices.Contains(q.muxes, Device{Bus: bus, Addr: m.Addr}) || len(m.W) == 0 || m.W[0] == 0 {
			continue
		}
		d.Mux, d.Channel = m.Addr, 0
		for m.W[0]>>d.Channel&1 == 0 {
			d.Channel++
		}
	}
	return d
}

func (q *Quarantine) find(d Device) *record {
	for i := range q.records {
		if q.records[i].device == d {
			return &q.records[i]
		}
	}
	return nil
}

// Refuse is nil when op may go to its bus, else the error with which it ends
// at once: it names a latched device and matches ErrQuarantined.
func (q *Quarantine) Refuse(now time.Duration, bus BusID, op *Op) error {
	if len(q.records) == 0 || op.Class <= ClassVerify {
		return nil
	}
	for n := range op.Msgs {
		if r := q.find(q.device(bus, op, n)); r != nil && r.latched && r.trial > now {
			return fmt.Errorf("device %v: %w, last: %w", r.device, ErrQuarantined, r.cause)
		}
	}
	for n := range op.Msgs { // it goes, with all of its messages
		if r := q.find(q.device(bus, op, n)); r != nil && r.latched {
			r.trial = now + r.patience()
		}
	}
	return nil
}

// patience is how long a latched device is left alone.
func (r *record) patience() time.Duration {
	if errors.Is(r.cause, ErrAddressNACK) {
		return absentTrial
	}
	return quarantineTrial
}

// timedOut reports an error that a held bus shows at every device alike.
func timedOut(err error) bool {
	return errors.Is(err, ErrTimeout) || errors.Is(err, ErrClockStretch)
}

// Done takes the completion of an op that went to its bus. latched is the
// device that it put into quarantine, freed one that it let out.
func (q *Quarantine) Done(now time.Duration, c *Completion) (latched, freed *Device) {
	end := len(c.Op.Msgs)
	if c.Err != nil {
		end = min(c.Msg, end-1)
	}
	for n := range c.Op.Msgs[:end] { // these answered
		if len(q.records) == 0 {
			break
		}
		if d := q.device(c.Bus, c.Op, n); q.answered(d) {
			freed = &d
		}
	}
	own := [...]error{ErrAddressNACK, ErrByteNACK, ErrClockStretch, ErrTimeout, ErrCRC} // the device's doing
	if c.Err == nil || !slices.ContainsFunc(own[:], func(cause error) bool { return errors.Is(c.Err, cause) }) {
		return nil, freed
	}
	d := q.device(c.Bus, c.Op, end)
	r := q.find(d)
	if r == nil {
		q.records = append(q.records, record{device: d, first: now})
		r = &q.records[len(q.records)-1]
	}
	r.errors++
	r.cause = c.Err
	r.absent = r.absent || errors.Is(c.Err, ErrAddressNACK)
	if timedOut(c.Err) {
		for i := range q.records {
			if o := &q.records[i]; o.device.Bus == d.Bus && o.device != d && timedOut(o.cause) {
				o.shared, r.shared = true, true
			}
		}
	}
	span := quarantineSpan
	if d.Addr == MCIAddr && slices.Contains(q.slow, d.Bus) {
		span = controllerSpan
	}
	if !r.latched && r.errors >= quarantineAfter && now-r.first >= span {
		r.latched, r.since, r.trial = true, now, now+r.patience()
		return &d, freed
	}
	return nil, freed
}

// answered forgets the errors of a device that is not latched, and lets one
// out that had gone and has come back.
func (q *Quarantine) answered(d Device) (freed bool) {
	for i := range q.records {
		r := &q.records[i]
		if r.device != d || r.latched && !r.absent && !r.shared {
			continue
		}
		freed = r.latched
		q.records = slices.Delete(q.records, i, i+1)
		return freed
	}
	return false
}

// Clear lets a device out, or all when d is nil, and reports how many it was.
func (q *Quarantine) Clear(d *Device) int {
	n := 0
	q.records = slices.DeleteFunc(q.records, func(r record) bool {
		out := r.latched && (d == nil || r.device == *d)
		if out {
			n++
		}
		return out
	})
	return n
}

// Held lists the devices in quarantine in the order of their addresses.
func (q *Quarantine) Held() []Held {
	var out []Held
	for i := range q.records {
		if r := &q.records[i]; r.latched {
			out = append(out, Held{r.device, r.since, r.absent, r.cause})
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Device.place() < out[j].Device.place() })
	return out
}
