package agent

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"ringlight/agent/pm"
)

// The records on disk are one file beside the journal: a head of binsHead bytes, which
// names the node and the length of a slot, then the slots of package pm. Rows are written
// in place, so that it never grows. What is not of this node and board is set aside.
const (
	binsName    = "records"
	binsSpoiled = "records.damaged" // the last that was set aside
	binsHead    = 64
)

// savedBins is a row on its way to the disk.
type savedBins struct {
	slot int
	row  []byte
}

// binsFile keeps rows. What cannot be written waits for the next.
type binsFile struct {
	file    *os.File
	length  int
	waiting map[int][]byte
	failed  bool
	log     *slog.Logger
}

// openBins reads the file in a folder, and gives its rows by slot.
func openBins(dir string, cfg *Config, log *slog.Logger) (*binsFile, [][]byte, error) {
	r, _ := newRecords(cfg, nil)
	b := &binsFile{length: r.book.SlotBytes(), waiting: map[int][]byte{}, log: log}
	path, head := filepath.Join(dir, binsName), formatLine("records.2", fmt.Sprintf("%d %d", cfg.Node, r.book.SlotBytes()))
	raw, err := readIfThere(path)
	if err != nil {
		return nil, nil, err
	}
	if len(raw) > 0 && !bytes.HasPrefix(raw, head) {
		log.Warn("the records are damaged, or of another node or board: set aside and begun anew", "kept", filepath.Join(dir, binsSpoiled))
		if err := os.Rename(path, filepath.Join(dir, binsSpoiled)); err != nil {
			return nil, nil, err
		}
		raw = nil
	}
	if b.file, err = openPrivate(path, os.O_CREATE|os.O_RDWR); err != nil {
		return nil, nil, err
	}
	if len(raw) == 0 {
		b.waiting[headSlot] = head
	}
	rows := make([][]byte, pm.Slots)
	for slot := range rows {
		if from := b.place(slot); from < len(raw) {
			rows[slot] = raw[from:min(len(raw), from+b.length)]
		}
	}
	return b, rows, nil
}

// headSlot is the head's, in front of the slots.
const headSlot = -1

func (b *binsFile) place(slot int) int {
	if slot == headSlot {
		return 0
	}
	return binsHead + slot*b.length
}

// write puts a row on disk, and those that wait.
func (b *binsFile) write(s savedBins) {
	b.waiting[s.slot] = s.row
	var err error
	for slot, row := range b.waiting { // any order: each has its own place
		if _, werr := b.file.WriteAt(row, int64(b.place(slot))); werr != nil {
			err = werr
			break
		}
	}
	if err = errors.Join(err, b.file.Sync()); err == nil {
		clear(b.waiting)
	}
	switch failed := err != nil; {
	case failed && !b.failed:
		b.log.Warn("the records cannot be written; they wait in memory", "error", err)
	case !failed && b.failed:
		b.log.Info("the records are written again")
	}
	b.failed = err != nil
}

// openBins opens the records; without them the agent runs all the same.
func (r *runner) openBins(journal *Journal) {
	if r.cfg.Journal == "" {
		return
	}
	var err error
	if r.bins, journal.Bins, err = openBins(r.cfg.Journal, &r.cfg.Agent, r.log); err != nil {
		r.log.Error("no records are kept", "error", err)
	}
}

// keepBins queues a row for the disk. Where that hangs for hours, rows are lost.
func (r *runner) keepBins(slot int, row []byte) {
	if r.bins == nil {
		return
	}
	select {
	case r.rows <- savedBins{slot, row}:
	default:
	}
}

// lastBins writes what the disk has otherwise, the row under way too.
func (r *runner) lastBins() {
	if r.bins == nil {
		return
	}
	for len(r.rows) > 0 {
		r.bins.write(<-r.rows)
	}
	r.host.Bins = func(slot int, row []byte) { r.bins.write(savedBins{slot, row}) }
	r.host.SaveBins(r.hardware.Now())
	r.bins.file.Close()
}
