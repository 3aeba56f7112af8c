package linux

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ringlight/hal"
)

// eventsAtOnce is how many edges one read takes. chosen: more than one fault
// makes.
const eventsAtOnce = 16

// input is one line of the board.
type input struct {
	id     hal.LineID
	offset uint32
	invert bool
	high   bool
	seq    uint32 // of the line's last edge
	// read is when the level was last read: what the kernel noted until then is
	// in it.
	read time.Duration
}

// lines is one request for edges of lines of one chip.
type lines struct {
	gpio   *gpioChips
	fd     uintptr
	inputs []input
	seq    uint32 // of the last edge
	lost   uint64 // edges that the kernel had no room for
	levels unix.GPIOV2LineValues
	buffer [eventsAtOnce]unix.GPIOV2LineEvent
	read   func(fd uintptr, b []byte) (int, error)
}

// watch asks for the edges of a board's lines, a request for each chip and 64
// lines; others are pins of periph's registry.
func (g *gpioChips) watch(board []hal.Line, now func() time.Duration, others *foreign) ([]*lines, error) {
	var all []*lines
	var places [][]place
	var paths []string
	var errs []error
	for id, l := range board {
		if name, ok := strings.CutPrefix(l.Name, hal.Registered); ok {
			p, err := registeredPin(name)
			if err == nil {
				err = others.add(hal.LineID(id), l, p)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("linux: line %d: %w", id, err))
			}
			continue
		}
		at, err := g.find(l)
		if err != nil {
			errs = append(errs, fmt.Errorf("linux: line %d: %w", id, err))
			continue
		}
		i := len(paths) - 1
		for ; i >= 0 && (paths[i] != at.path || len(places[i]) == maxRequest); i-- {
		}
		if i < 0 {
			i = len(paths)
			paths, places = append(paths, at.path), append(places, nil)
			all = append(all, &lines{gpio: g, read: func(fd uintptr, b []byte) (int, error) { return unix.Read(int(fd), b) }})
		}
		places[i] = append(places[i], at)
		all[i].inputs = append(all[i].inputs, input{id: hal.LineID(id), offset: at.offset, invert: l.ActiveLow})
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	for i, w := range all {
		var err error
		if w.fd, err = g.request(paths[i], lineInput|lineRising|lineFalling, places[i]...); err == nil {
			if err = unix.SetNonblock(int(w.fd), true); err == nil {
				_, err = w.settle(now, false, nil)
			}
		}
		if err != nil {
			for _, w := range all[:i+1] {
				w.close()
			}
			return nil, fmt.Errorf("linux: lines: %w", err)
		}
	}
	return all, nil
}

// take reads the edges that have come. An edge carries the kernel's stamp of
// its interrupt. Where the numbers have a gap the kernel had no room for an
// edge: the levels are read again, so that nobody believes an old one.
func (w *lines) take(now func() time.Duration, epoch time.Duration, out []edge) ([]edge, error) {
	gap := false
	for {
		raw := unsafe.Slice((*byte)(unsafe.Pointer(&w.buffer)), int(unsafe.Sizeof(w.buffer)))
		n, err := w.read(w.fd, raw)
		switch {
		case err == unix.EAGAIN || err == unix.EINTR:
			n = 0
		case err != nil:
			return out, err
		}
		n /= int(unsafe.Sizeof(w.buffer[0]))
		for i := range n {
			var lost bool
			out, lost = w.one(&w.buffer[i], epoch, out)
			gap = gap || lost
		}
		if n < eventsAtOnce {
			break
		}
	}
	if gap {
		return w.settle(now, true, out)
	}
	return out, nil
}

// edge is an edge of a line, before it is an event.
type edge struct {
	line hal.LineID
	high bool
	at   time.Duration
}

// one takes an event of the kernel; lost says that others are missing before it.
func (w *lines) one(ev *unix.GPIOV2LineEvent, epoch time.Duration, out []edge) (_ []edge, lost bool) {
	if missing := ev.Seqno - w.seq - 1; missing != 0 {
		w.lost += uint64(missing)
		lost = true
	}
	w.seq = ev.Seqno
	for i := range w.inputs {
		in := &w.inputs[i]
		if in.offset != ev.Offset {
			continue
		}
		at := time.Duration(ev.Timestamp_ns) - epoch
		high := (ev.Id == unix.GPIO_V2_LINE_EVENT_RISING_EDGE) != in.invert
		if at > in.read {
			// What was lost of this line was light that came or went for a moment.
			if high != in.high && ev.Line_seqno-in.seq > 2 {
				out = append(out, edge{in.id, high, at})
				in.high = high
			}
			if high == in.high {
				out = append(out, edge{in.id, !high, at})
				in.high = !high
			}
		}
		if high != in.high {
			out = append(out, edge{in.id, high, at})
		}
		in.high, in.seq = high, ev.Line_seqno
	}
	return out, lost
}

// settle reads the levels, and tells of those that no edge told.
func (w *lines) settle(now func() time.Duration, tell bool, out []edge) ([]edge, error) {
	if err := w.gpio.values(w.fd, len(w.inputs), &w.levels); err != nil {
		return out, err
	}
	at := now()
	for i := range w.inputs {
		in := &w.inputs[i]
		high := (w.levels.Bits>>i&1 != 0) != in.invert
		if tell && high != in.high {
			out = append(out, edge{in.id, high, at})
		}
		in.high, in.read = high, at
	}
	return out, nil
}

func (w *lines) close() {
	if w.fd != 0 {
		_ = unix.Close(int(w.fd))
	}
}
