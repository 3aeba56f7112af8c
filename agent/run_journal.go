package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"

	"ringlight/proto"
)

// The journal on disk is a snapshot, a log that continues it, and a mark:
//
//	journal.snapshot     one line: all that was known when its log began
//	journal.log.N        a line per record, numbered from 1
//	../journal.mark      how far the log has come to be on disk
//	damaged/             what the last damaged journal consisted of
//
// A line is what it is, a checksum of itself, and its content. The mark lies
// beside the folder and is written after each record, without a wait for the
// disk: it never says more than was there, and after a loss of power it may say
// less. So a log that ends before the mark has lost its end. A last record that
// is not whole, and that the mark does not know, was being written by a life
// that ended; nobody was told of it, and it is cut off.
//
// What cannot be noticed is a folder and a mark that were both replaced by older
// ones; of those the machine believes only what the light does not contradict.
const (
	snapshotName = "journal.snapshot"
	logName      = "journal.log."
	lockName     = "journal.lock"
	damagedName  = "damaged"
	markSuffix   = ".mark"
)

// maxLog is the size at which a log is folded into a snapshot. chosen: a few
// hundred records, read back in milliseconds.
const maxLog = 256 << 10

// fileJournal appends records to the journal in a directory.
type fileJournal struct {
	dir    string
	lock   *os.File
	log    *os.File
	mark   *os.File
	number uint64 // of the log
	seq    uint64 // of its last record
	size   int64
	limit  int64
	fold   Journal // what the records so far amount to
	cut    int     // bytes of a record that was not whole
	// unmarked: whether records are missing at its end is not known.
	unmarked bool
	damage   error // why it was begun anew, of what could be read; nil: it was not
}

// openJournal reads the journal in dir, which it makes, and holds a lock on
// it until it is closed. The Journal is a copy. lost is told in the place of
// an event that could not be read.
func openJournal(dir string, lost proto.Event) (*fileJournal, Journal, error) {
	j := &fileJournal{dir: dir, limit: maxLog}
	if err := j.open(lost); err != nil {
		j.close()
		return nil, Journal{}, fmt.Errorf("agent: journal in %s: %w", dir, err)
	}
	var own Journal
	if err := own.Apply(j.fold.Snapshot()); err != nil {
		j.close()
		return nil, Journal{}, err
	}
	switch {
	case j.damage != nil:
		own.Told = "journal damaged: light stays as found until a planner speaks; events may be missing"
	case j.cut > 0:
		own.Told = "the journal's last record was not whole"
	}
	return j, own, nil
}

func (j *fileJournal) open(lost proto.Event) error {
	err := os.MkdirAll(j.dir, 0o700)
	if err == nil {
		err = os.Chmod(j.dir, 0o700)
	}
	if err != nil {
		return err
	}
	if j.lock, err = openPrivate(filepath.Join(j.dir, lockName), os.O_CREATE|os.O_RDWR); err != nil {
		return err
	}
	if err := syscall.Flock(int(j.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another agent has it: %w", err)
	}
	if j.mark, err = openPrivate(filepath.Clean(j.dir)+markSuffix, os.O_CREATE|os.O_RDWR); err != nil {
		return err
	}
	was, err := readHistory(j.dir)
	if err != nil {
		return err
	}
	if j.damage = was.damage; j.damage != nil {
		if err := j.keepDamaged(); err != nil {
			return err
		}
		j.fold = was.salvage(lost)
	} else {
		j.fold, j.number, j.seq, j.size, j.cut = was.fold, was.number, was.seq, was.size, was.cut
		j.unmarked = !was.unborn && was.marked == mark{}
	}
	if was.damage != nil || was.unborn {
		j.number = was.highest
		err = j.foldUp()
	} else {
		err = j.openLog()
	}
	return errors.Join(err, j.sweep())
}

// openLog opens the log behind its last whole record.
func (j *fileJournal) openLog() (err error) {
	if j.log, err = openPrivate(j.path(), os.O_RDWR); err != nil {
		return err
	}
	_, err = j.log.Seek(j.size, io.SeekStart)
	return errors.Join(err, j.log.Truncate(j.size), j.remember(), j.mark.Sync())
}

// keepDamaged puts a copy of every file aside for whoever wants to look.
func (j *fileJournal) keepDamaged() error {
	aside := filepath.Join(j.dir, damagedName)
	if err := errors.Join(os.RemoveAll(aside), os.Mkdir(aside, 0o700)); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(j.dir, "journal.*"))
	for _, name := range append(names, j.mark.Name()) {
		raw, rerr := readJournalFile(name)
		err = errors.Join(err, rerr)
		if rerr == nil && filepath.Base(name) != lockName {
			err = errors.Join(err, os.WriteFile(filepath.Join(aside, filepath.Base(name)), raw, 0o600))
		}
	}
	return err
}

// sweep removes what a crash left between two steps of fold-up, and what a
// damaged journal was.
func (j *fileJournal) sweep() error {
	entries, err := os.ReadDir(j.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		old, isLog := bytes.CutPrefix([]byte(e.Name()), []byte(logName))
		if isLog && string(old) != strconv.FormatUint(j.number, 10) || e.Name() == snapshotName+".tmp" {
			if err := os.Remove(filepath.Join(j.dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *fileJournal) path() string { return logPath(j.dir, j.number) }

func logPath(dir string, number uint64) string {
	return filepath.Join(dir, logName+strconv.FormatUint(number, 10))
}

// remember sets the mark to the end of the log.
func (j *fileJournal) remember() error {
	_, err := j.mark.WriteAt(formatLine(markHead, fmt.Sprintf(markForm, j.number, j.seq, j.fold.Last)), 0)
	return err
}

// append puts a record on disk.
func (j *fileJournal) append(rec []byte) error {
	if err := j.fold.Apply(rec); err != nil {
		return err
	}
	line := formatLine(recordHeadOf(j.number, j.seq+1), string(rec))
	_, err := j.log.Write(line)
	if err == nil {
		err = j.log.Sync()
	}
	if err != nil {
		return j.takeBack(err) // half a line must not stand before the next one
	}
	j.seq++
	if j.size += int64(len(line)); j.size > j.limit {
		return j.foldUp()
	}
	_ = j.remember() // one that is behind is believed
	return nil
}

// probeBytes are written to see whether a record could be. chosen: blocks of a disk, and
// more than the record of a plan takes.
const probeBytes = 8 << 10

// probe writes behind the last record and takes it back: where a disk is full, or a file
// may grow no more, nothing less shows it.
func (j *fileJournal) probe() error {
	_, err := j.log.Write(bytes.Repeat([]byte{probeFill}, probeBytes))
	if err == nil {
		err = j.log.Sync()
	}
	return j.takeBack(err)
}

// takeBack removes what stands behind the last record, and says what failed, if anything.
func (j *fileJournal) takeBack(err error) error {
	_, seek := j.log.Seek(j.size, io.SeekStart)
	if err = errors.Join(err, j.log.Truncate(j.size), seek); err != nil {
		return fmt.Errorf("agent: journal: %w", err)
	}
	return nil
}

// foldUp writes a snapshot and begins a new log. Until the rename the old
// snapshot and log are whole, after it the new ones.
func (j *fileJournal) foldUp() error {
	rec := j.fold.Snapshot()
	next := j.number + 1
	log, err := openPrivate(logPath(j.dir, next), os.O_CREATE|os.O_TRUNC|os.O_RDWR)
	if err != nil {
		return fmt.Errorf("agent: journal: %w", err)
	}
	line := formatLine(snapshotHead, fmt.Sprintf("%d %s", next, rec))
	if err := errors.Join(log.Sync(), writeFile(filepath.Join(j.dir, snapshotName), line)); err != nil {
		log.Close()
		return fmt.Errorf("agent: journal: %w", err)
	}
	if j.log != nil {
		j.log.Close()
	}
	j.log, j.number, j.seq, j.size = log, next, 0, 0
	// A large queue makes a large snapshot: let the log grow with it, so that
	// the work of folding stays a small part.
	j.limit = max(maxLog, int64(len(rec)))
	return errors.Join(j.remember(), j.mark.Sync(), j.sweep())
}

func (j *fileJournal) close() error {
	var errs []error
	for _, f := range []*os.File{j.log, j.mark, j.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

// openPrivate opens a file that nobody else may read; one that others may is
// narrowed.
func openPrivate(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Chmod(0o600); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// writeFile replaces a file as a whole.
func writeFile(path string, content []byte) error {
	f, err := openPrivate(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path+".tmp", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
