package cmis

import "errors"

// Image is a module's memory as public CMIS tools read it: lower memory, then
// page P of bank b at (256 b + P) 128 + 128. Pages that are not implemented
// are zero; it ends after the last one that is.
type Image struct {
	lower [128]byte
	pages map[pageKey]*[128]byte
	last  int // index of the last page
}

// PutLower sets lower memory.
func (m *Image) PutLower(b [128]byte) { m.lower = b }

// PutPage sets a page.
func (m *Image) PutPage(bank, page uint8, b [128]byte) {
	if m.pages == nil {
		m.pages = map[pageKey]*[128]byte{}
	}
	m.pages[pageKey{bank, page}] = &b
	m.last = max(m.last, int(bank)*256+int(page))
}

// Bytes is the linear image.
func (m *Image) Bytes() []byte {
	out := make([]byte, (m.last+2)*128)
	copy(out, m.lower[:])
	for k, p := range m.pages { // any order: each has its own place
		copy(out[(int(k.bank)*256+int(k.page)+1)*128:], p[:])
	}
	return out
}

// candidates are the pages that a dump asks for. CDB payload pages and the
// windows of diagnostics are not content.
var candidates = []uint8{0x00, 0x01, 0x02, 0x03, 0x04, 0x10, 0x11, 0x12, 0x13, 0x14, 0x1D, 0x9F, 0xB0, 0xB1, 0xB2, 0xB3, 0xB4}

// Dump reads a whole module through a port, as a machine: Next, Done.
type Dump struct {
	Image Image
	Banks int // Advert.Banks, at least 1
	i     int // -1 lower
	bank  uint8
	flags *Flags
	data  [128]byte
	over  bool
	err   error
}

// NewDump begins a dump. Latched bytes are read through f, so that no flag is
// lost by it: what the dump clears, f counts.
func NewDump(banks int, f *Flags) *Dump { return &Dump{Banks: max(banks, 1), i: -1, flags: f} }

// Over reports whether the dump has ended, and how.
func (d *Dump) Over() (bool, error) { return d.over, d.err }

// Next is the request to run.
func (d *Dump) Next() Request {
	if d.i < 0 {
		return Request{Offset: 0, Data: d.data[:], flags: d.flags}
	}
	return Request{Bank: d.bank, Page: candidates[d.i], Offset: 128, Data: d.data[:], flags: d.flags}
}

// Done takes its result.
func (d *Dump) Done(err error) {
	switch {
	case errors.Is(err, ErrNoPage):
	case err != nil:
		d.over, d.err = true, err
		return
	case d.i < 0:
		d.Image.PutLower(d.data)
		d.flags.seen(0, 0, d.data[:])
	default:
		d.Image.PutPage(d.bank, candidates[d.i], d.data)
		if d.bank == 0 {
			d.flags.seen(candidates[d.i], 128, d.data[:])
		}
	}
	for {
		if d.i++; d.i >= len(candidates) {
			if d.bank++; int(d.bank) >= d.Banks {
				d.over = true
				return
			}
			d.i = 0
		}
		if d.bank == 0 || Banked(candidates[d.i]) {
			return
		}
	}
}
