package agent

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// The journal on disk is a snapshot and a log that continues it:
//
//	journal.snapshot     one line, naming the log that follows it
//	journal.log.N        a line per record
//
// A line is a checksum in hex, the log's number, and a record. The log's last
// line may be torn by a crash; it was never acknowledged and is cut off. A
// torn or unreadable line with good ones behind it is damage, and damage is
// an error: to go on would be to repeat numbers.
const (
	snapshotName = "journal.snapshot"
	logName      = "journal.log."
	lockName     = "journal.lock"
)

// maxLog is the size at which a log is folded into a snapshot. chosen: a few
// hundred records, read back in milliseconds.
const maxLog = 256 << 10

// maxLine bounds one record: a full queue of events with the longest texts.
const maxLine = 4 << 20

// fileJournal appends records to the journal in a directory.
type fileJournal struct {
	dir    string
	lock   *os.File
	log    *os.File
	number uint64
	size   int64
	limit  int64
	fold   Journal // what the records so far amount to
}

// openJournal reads the journal in dir, which it makes, and holds a lock on
// it until it is closed. The Journal is a copy.
func openJournal(dir string) (*fileJournal, Journal, error) {
	j := &fileJournal{dir: dir, limit: maxLog}
	if err := j.open(); err != nil {
		j.close()
		return nil, Journal{}, fmt.Errorf("agent: journal in %s: %w", dir, err)
	}
	raw, err := j.fold.Snapshot()
	if err != nil {
		j.close()
		return nil, Journal{}, err
	}
	var own Journal
	if err := own.Apply(raw); err != nil {
		j.close()
		return nil, Journal{}, err
	}
	return j, own, nil
}

func (j *fileJournal) open() error {
	if err := os.MkdirAll(j.dir, 0o755); err != nil {
		return err
	}
	var err error
	if j.lock, err = os.OpenFile(filepath.Join(j.dir, lockName), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	if err := syscall.Flock(int(j.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("another agent has it: %w", err)
	}
	if err := j.readSnapshot(); err != nil {
		return err
	}
	if err := j.readLog(); err != nil {
		return err
	}
	return j.sweep()
}

func (j *fileJournal) readSnapshot() error {
	raw, err := os.ReadFile(filepath.Join(j.dir, snapshotName))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	number, rec, err := parseLine(bytes.TrimSuffix(raw, []byte("\n")))
	if err != nil {
		return fmt.Errorf("%s: %w", snapshotName, err)
	}
	j.number = number
	return j.fold.Apply(rec)
}

func (j *fileJournal) readLog() error {
	var err error
	if j.log, err = os.OpenFile(j.path(), os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return err
	}
	if err := syncDir(j.dir); err != nil {
		return err
	}
	r := bufio.NewReaderSize(j.log, 64<<10)
	for {
		line, err := r.ReadSlice('\n')
		var long []byte
		for errors.Is(err, bufio.ErrBufferFull) && len(long) < maxLine {
			long = append(long, line...)
			line, err = r.ReadSlice('\n')
		}
		if long != nil {
			line = append(long, line...)
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(line) == 0 {
			break
		}
		number, rec, bad := parseLine(bytes.TrimSuffix(line, []byte("\n")))
		if bad == nil && number != j.number {
			bad = fmt.Errorf("record of log %d", number)
		}
		if bad != nil || err != nil { // torn, or damaged
			if _, more := r.Peek(1); more == nil {
				return fmt.Errorf("%s at byte %d: %w", filepath.Base(j.path()), j.size, bad)
			}
			break
		}
		if err := j.fold.Apply(rec); err != nil {
			return fmt.Errorf("%s at byte %d: %w", filepath.Base(j.path()), j.size, err)
		}
		j.size += int64(len(line))
	}
	if err := j.log.Truncate(j.size); err != nil {
		return err
	}
	_, err = j.log.Seek(j.size, io.SeekStart)
	return err
}

// sweep removes what a crash left between two steps of fold-up.
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

func (j *fileJournal) path() string {
	return filepath.Join(j.dir, logName+strconv.FormatUint(j.number, 10))
}

// append puts a record on disk.
func (j *fileJournal) append(rec []byte) error {
	if err := j.fold.Apply(rec); err != nil {
		return err
	}
	line := formatLine(j.number, rec)
	_, err := j.log.Write(line)
	if err == nil {
		err = j.log.Sync()
	}
	if err != nil {
		// Half a line must not stand before the next one.
		_, seek := j.log.Seek(j.size, io.SeekStart)
		return fmt.Errorf("agent: journal: %w", errors.Join(err, j.log.Truncate(j.size), seek))
	}
	if j.size += int64(len(line)); j.size > j.limit {
		return j.foldUp()
	}
	return nil
}

// foldUp writes a snapshot and begins a new log. Until the rename the old
// snapshot and log are whole, after it the new ones.
func (j *fileJournal) foldUp() error {
	rec, err := j.fold.Snapshot()
	if err != nil {
		return err
	}
	next := *j
	next.number++
	log, err := os.OpenFile(next.path(), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("agent: journal: %w", err)
	}
	if err := errors.Join(log.Sync(), writeFile(filepath.Join(j.dir, snapshotName), formatLine(next.number, rec))); err != nil {
		log.Close()
		return fmt.Errorf("agent: journal: %w", err)
	}
	old := j.path()
	j.log.Close()
	j.log, j.number, j.size = log, next.number, 0
	// A large queue makes a large snapshot: let the log grow with it, so that
	// the work of folding stays a small part.
	j.limit = max(maxLog, int64(len(rec)))
	return os.Remove(old)
}

func (j *fileJournal) close() error {
	var errs []error
	for _, f := range []*os.File{j.log, j.lock} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	return errors.Join(errs...)
}

func formatLine(number uint64, rec []byte) []byte {
	body := fmt.Appendf(nil, "%d %s", number, rec)
	return fmt.Appendf(nil, "%08x %s\n", crc32.ChecksumIEEE(body), body)
}

func parseLine(line []byte) (number uint64, rec []byte, err error) {
	sum, body, ok := bytes.Cut(line, []byte(" "))
	want, bad := strconv.ParseUint(string(sum), 16, 32)
	if !ok || bad != nil || len(sum) != 8 || crc32.ChecksumIEEE(body) != uint32(want) {
		return 0, nil, errors.New("checksum wrong")
	}
	head, rec, ok := bytes.Cut(body, []byte(" "))
	number, bad = strconv.ParseUint(string(head), 10, 64)
	if !ok || bad != nil {
		return 0, nil, errors.New("no log number")
	}
	return number, rec, nil
}

// writeFile replaces a file as a whole.
func writeFile(path string, content []byte) error {
	f, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
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
