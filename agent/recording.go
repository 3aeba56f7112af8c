package agent

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"ringlight/hal"
	busrec "ringlight/hal/record"
	"ringlight/ocs"
)

// recordHead is the head of a recording: what an agent was born with.
type recordHead struct {
	Config
	Calibrations [][]byte        `json:"calibrations"` // by bundle, empty: none
	Journal      json.RawMessage `json:"journal"`      // a snapshot
	Switch       bool            `json:"switch"`       // a circuit switch: its factory data are not kept
}

// headOf is the head of the recording of an agent.
func headOf(cfg *Config, journal *Journal) ([]byte, error) {
	h := recordHead{Config: *cfg, Switch: cfg.isSwitch()}
	for _, c := range cfg.Calibrations {
		var raw []byte
		if c != nil {
			raw = c.Encode()
		}
		h.Calibrations = append(h.Calibrations, raw)
	}
	h.Journal = journal.Snapshot()
	return json.Marshal(h)
}

// born is the configuration and the journal that a head describes.
func (h *recordHead) born() (Config, Journal, error) {
	cfg := h.Config
	var j Journal
	for i, raw := range h.Calibrations {
		var c *ocs.Calibration
		if len(raw) > 0 {
			var err error
			if c, err = ocs.DecodeCalibration(raw); err != nil {
				return cfg, j, fmt.Errorf("agent: recording: calibration of bundle %d: %w", i, err)
			}
		}
		cfg.Calibrations = append(cfg.Calibrations, c)
	}
	return cfg, j, j.Apply(h.Journal)
}

// told is what an entry of kind busrec.Other is, from 1, by the input's kind.
var told = []InputKind{InPacket, InPersisted, InAsk, InSendFailed, InLine, InAlarm, InRestart, InJournal, InRequest, InFirmware}

// entryOf is an input as an entry; ops are those under way by their number. What cannot be
// told is an entry of what 0, at which a replay stops.
func entryOf(now time.Duration, in *Input, ops map[*hal.Op]uint64) busrec.Entry {
	if in.Kind == InHardware {
		if edge := in.Hardware.Edge; edge != nil {
			return busrec.Entry{Kind: busrec.Edge, At: now, Edge: *edge}
		}
		c := in.Hardware.Completion
		e := busrec.Entry{Kind: busrec.Completion, At: now, Seq: ops[c.Op], Bus: c.Bus, Start: c.Start, End: c.End, Msg: c.Msg, Err: c.Err}
		for i := range c.Op.Msgs {
			e.R = append(e.R, c.Op.Msgs[i].Redact(c.Op.Msgs[i].R))
		}
		delete(ops, c.Op)
		return e
	}
	e := busrec.Entry{Kind: busrec.Other, At: now, What: uint8(1 + slices.Index(told, in.Kind))}
	if in.Kind == InFirmware && len(in.Line) > 0 { // what is kept has no room for an image
		n := uint64(len(in.Line))
		in = &Input{Kind: InFirmware, ID: n, Text: fmt.Sprintf("firmware is not recorded: %d bytes, SHA-256 %x", n, sha256.Sum256(in.Line))}
	}
	var err error
	if e.Blob, err = json.Marshal(in); err != nil {
		e.What = 0
	}
	return e
}

// inputOf is the input that an entry of kind Other tells.
func inputOf(e *busrec.Entry) (Input, error) {
	var in Input
	if e.What < 1 || int(e.What) > len(told) {
		return in, fmt.Errorf("agent: recording: entry of what %d", e.What)
	}
	err := json.Unmarshal(e.Blob, &in)
	return in, err
}

// Recorder keeps what happens to an agent: the last of it in memory, all of it
// in whoever listens. It is used by the agent's own goroutine.
type Recorder struct {
	head []byte
	w    busrec.Writer
	ring *busrec.Ring
	ops  map[*hal.Op]uint64
	out  func(block []byte) // nil: nobody listens
	bulk bool               // modules take firmware: thousands of writes, which must not displace how the light was
}

// newRecorder records an agent that is about to be born.
func newRecorder(cfg *Config, journal *Journal, bytes int) (*Recorder, error) {
	head, err := headOf(cfg, journal)
	if err != nil {
		return nil, err
	}
	return &Recorder{head: busrec.Head(head), ring: busrec.NewRing(bytes), ops: map[*hal.Op]uint64{}}, nil
}

func (r *Recorder) put(e *busrec.Entry) {
	if b := r.w.Append(e); b != nil {
		r.keep(b)
	}
}

func (r *Recorder) keep(b []byte) {
	r.ring.Put(b, r.bulk)
	if r.out != nil {
		r.out(b)
	}
}

// Flush gives out what is not a full block yet.
func (r *Recorder) Flush() {
	if b := r.w.Flush(); b != nil {
		r.keep(b)
	}
}

// Told is an input, before it is delivered.
func (r *Recorder) Told(now time.Duration, in Input) {
	e := entryOf(now, &in, r.ops)
	r.put(&e)
}

// Polled is a call of Poll.
func (r *Recorder) Polled(now time.Duration) { r.put(&busrec.Entry{Kind: busrec.Poll, At: now}) }

// Asked is an op that the agent asks for.
func (r *Recorder) Asked(now time.Duration, bus hal.BusID, op *hal.Op) {
	e := busrec.Entry{Kind: busrec.Submit, At: now, Bus: bus, Op: op}
	r.put(&e)
	r.ops[op] = e.Seq
}

// So is the recording so far, as much of it as is kept.
func (r *Recorder) So() [][]byte {
	r.Flush()
	return append([][]byte{r.head}, r.ring.Blocks()...)
}
