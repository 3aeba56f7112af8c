package server

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"syscall"
	"time"
)

// bbolt trusts its file: a page number beyond the end is read, and the process
// with it is gone. So the pages are looked at before bbolt opens them: every
// page that is in use lies within the file, is what it says, is used once, and
// is not in the list of free ones. The layout is that of bbolt's file format,
// version 2.

const (
	boltMagic    = 0xED0CDAED
	boltVersion  = 2
	boltHeader   = 16 // of a page: id, flags, count, overflow
	boltElement  = 16 // of a leaf: flags, offset, key, value; of a branch: offset, key, page
	boltBucket   = 16 // root page and sequence, in the value of a bucket's name
	boltNoList   = 1<<64 - 1
	branchPage   = 0x01
	leafPage     = 0x02
	metaPage     = 0x04
	freelistPage = 0x10
	bucketEntry  = 0x01
)

var errDamaged = errors.New("damaged")

func damage(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errDamaged}, args...)...)
}

// checkStore looks at a file while nobody else writes it. A file that is not
// there, or is empty, is a new one.
func checkStore(path string, patience time.Duration) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	for until := time.Now().Add(patience); ; time.Sleep(patience / 100) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || time.Now().After(until) {
			return errHeld
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil || len(raw) == 0 {
		return err
	}
	return checkPages(raw)
}

var errHeld = errors.New("another process holds it")

// pages is a store's file under examination.
type pages struct {
	raw   []byte
	size  uint64
	limit uint64          // first page that was never used
	used  map[uint64]bool // in a tree, or of the list itself
}

type boltMeta struct{ size, root, freelist, limit, txid uint64 }

// metaAt reads the meta page at an offset; ok is false for one that was not
// written to its end.
func metaAt(raw []byte, at uint64) (m boltMeta, ok bool) {
	if at+boltHeader+64 > uint64(len(raw)) || binary.LittleEndian.Uint16(raw[at+8:]) != metaPage {
		return m, false
	}
	b := raw[at+boltHeader : at+boltHeader+64]
	h := fnv.New64a()
	h.Write(b[:56])
	if binary.LittleEndian.Uint32(b) != boltMagic || binary.LittleEndian.Uint32(b[4:]) != boltVersion || binary.LittleEndian.Uint64(b[56:]) != h.Sum64() {
		return m, false
	}
	u := func(i int) uint64 { return binary.LittleEndian.Uint64(b[i:]) }
	return boltMeta{size: uint64(binary.LittleEndian.Uint32(b[8:])), root: u(16), freelist: u(32), limit: u(40), txid: u(48)}, true
}

// meta is the newest of the two.
func meta(raw []byte) (best boltMeta, err error) {
	ok := false
	consider := func(at uint64) {
		if m, valid := metaAt(raw, at); valid && (at == 0 || at == m.size) && (!ok || m.txid > best.txid) {
			best, ok = m, true
		}
	}
	consider(0)
	for size := uint64(1024); size <= 64<<10; size *= 2 {
		consider(size)
	}
	if !ok {
		return best, damage("neither of its two first pages is whole")
	}
	if best.size < 1024 || best.size > 64<<10 || best.size&(best.size-1) != 0 || best.limit < 2 || best.limit > uint64(len(raw))/best.size {
		return best, damage("it has %d bytes, %d pages of %d are in use", len(raw), best.limit, best.size)
	}
	return best, nil
}

func checkPages(raw []byte) error {
	m, err := meta(raw)
	if err != nil {
		return err
	}
	p := &pages{raw: raw, size: m.size, limit: m.limit, used: map[uint64]bool{}}
	if err := p.tree(m.root); err != nil {
		return err
	}
	if m.freelist == boltNoList {
		return nil
	}
	return p.free(m.freelist)
}

// page claims a page and gives its bytes, those of its overflow included.
func (p *pages) page(id uint64) (b []byte, flags, count uint16, err error) {
	if id < 2 || id >= p.limit {
		return nil, 0, 0, damage("page %d of %d", id, p.limit)
	}
	b = p.raw[id*p.size:]
	over := uint64(binary.LittleEndian.Uint32(b[12:]))
	if binary.LittleEndian.Uint64(b) != id || id+over >= p.limit {
		return nil, 0, 0, damage("page %d says it is %d, with %d more", id, binary.LittleEndian.Uint64(b), over)
	}
	for k := id; k <= id+over; k++ {
		if p.used[k] {
			return nil, 0, 0, damage("page %d is used twice", k)
		}
		p.used[k] = true
	}
	return b[:(over+1)*p.size], binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint16(b[10:]), nil
}

// tree looks at a page and all below it.
func (p *pages) tree(id uint64) error {
	b, flags, count, err := p.page(id)
	if err != nil {
		return err
	}
	if flags != branchPage && flags != leafPage || flags == branchPage && count == 0 {
		return damage("page %d is of kind %#x with %d entries", id, flags, count)
	}
	return p.entries(b, id, flags, count)
}

func (p *pages) entries(b []byte, id uint64, flags, count uint16) error {
	last := ""
	for i := range uint64(count) {
		at := boltHeader + i*boltElement
		if at+boltElement > uint64(len(b)) {
			return damage("page %d has no room for %d entries", id, count)
		}
		e := b[at:]
		kind, pos, child := uint32(0), binary.LittleEndian.Uint32(e), uint64(0)
		keys, values := uint64(binary.LittleEndian.Uint32(e[4:])), uint64(0)
		if flags == leafPage {
			kind, pos = pos, binary.LittleEndian.Uint32(e[4:])
			keys, values = uint64(binary.LittleEndian.Uint32(e[8:])), uint64(binary.LittleEndian.Uint32(e[12:]))
		} else {
			child = binary.LittleEndian.Uint64(e[8:])
		}
		from := at + uint64(pos)
		if from+keys+values > uint64(len(b)) || keys == 0 || kind&^bucketEntry != 0 {
			return damage("page %d entry %d lies outside of it", id, i)
		}
		key, value := string(b[from:from+keys]), b[from+keys:from+keys+values]
		if i > 0 && key <= last {
			return damage("page %d entry %d is out of order", id, i)
		}
		last = key
		var err error
		switch {
		case flags == branchPage:
			err = p.tree(child)
		case kind == bucketEntry:
			err = p.bucket(value, id)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// bucket looks at a bucket by what its name holds: a root page, or, of a small
// one, the page itself.
func (p *pages) bucket(b []byte, id uint64) error {
	if len(b) < boltBucket {
		return damage("page %d has a bucket of %d bytes", id, len(b))
	}
	if root := binary.LittleEndian.Uint64(b); root != 0 {
		return p.tree(root)
	}
	inline := b[boltBucket:]
	if len(inline) < boltHeader || binary.LittleEndian.Uint16(inline[8:]) != leafPage {
		return damage("page %d has a small bucket without a page", id)
	}
	return p.entries(inline, id, leafPage, binary.LittleEndian.Uint16(inline[10:]))
}

// free looks at the list of free pages.
func (p *pages) free(id uint64) error {
	b, flags, count, err := p.page(id)
	if err != nil {
		return err
	}
	n, at := uint64(count), uint64(boltHeader)
	if count == 0xFFFF { // more than the field can say
		n, at = binary.LittleEndian.Uint64(b[at:]), at+8
	}
	if flags != freelistPage || n > (uint64(len(b))-at)/8 {
		return damage("page %d is no list of %d free pages", id, n)
	}
	for i := range n {
		k := binary.LittleEndian.Uint64(b[at+8*i:])
		if k < 2 || k >= p.limit || p.used[k] {
			return damage("page %d is in use and in the list of free ones", k)
		}
		p.used[k] = true
	}
	return nil
}
