package agent

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ringlight/agent/pm"
	"ringlight/hal/boardfile"
	"ringlight/proto"
)

func binsConfig(t *testing.T, modules int) *Config {
	board, err := boardfile.Default(4, 2, modules)
	if err != nil {
		t.Fatal(err)
	}
	return &Config{Node: 7, Board: &board}
}

// Goal: records outlive the process; what is spoilt is told and set aside, and never stops
// the agent; a full disk costs nothing once there is room.
// Method: rows through the file, with a page turned, a file of another board, none that can
// be read, one that is cut, and /dev/full in its place.
func TestRecordsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	log := slog.New(slog.NewTextHandler(&said, nil))
	cfg := binsConfig(t, 2)
	open := func(cfg *Config) (*binsFile, records, int) {
		t.Helper()
		b, rows, err := openBins(dir, cfg, log)
		if err != nil {
			t.Fatal(err)
		}
		r, bad := newRecords(cfg, rows)
		return b, r, bad
	}
	const at = 1_700_000_000
	count := func(r records) int {
		bins, _ := r.book.Bins(at, proto.BinScope{Place: -1, Module: -1}, 0, nil)
		return len(bins)
	}
	b, r, _ := open(cfg)
	put := func(time int64) {
		r.book.Add(time, pm.KeyOf(1, 0, 1, proto.CaseTemperature), 311_000)
		r.book.Save(time, true, func(slot int, row []byte) { b.write(savedBins{slot, row}) })
	}
	for i := range int64(96) {
		put(at - 900*i)
	}
	for range 3 {
		b.file.Close()
		if b, r, _ = open(cfg); count(r) != 96 || said.Len() > 0 {
			t.Fatalf("%d of 96 bins, said %s", count(r), &said)
		}
	}
	if info, err := b.file.Stat(); err != nil || info.Size() > int64(binsHead+pm.Slots*b.length) || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v %v", info, err)
	}

	good := b.file
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip("no /dev/full here")
	}
	b.file = full
	put(at + 900)
	put(at + 1800)
	if !strings.Contains(said.String(), "no space left") || len(b.waiting) == 0 {
		t.Errorf("a full disk: %d rows wait, said %s", len(b.waiting), &said)
	}
	b.file = good
	put(at + 2700)
	b.file.Close()
	if b, r, _ = open(cfg); !strings.Contains(said.String(), "written again") || count(r) != 93 {
		t.Errorf("%d bins, said %s", count(r), &said)
	}
	for slot := range 3 {
		if bins, _ := r.book.Bins(at+900*int64(slot+1), proto.BinScope{Place: -1, Module: -1}, 0, nil); bins[len(bins)-1].From != uint64((at+900*int64(slot+1))/900*900) {
			t.Errorf("what was written to a full disk is not there: %+v", bins[len(bins)-1])
		}
	}

	path := filepath.Join(dir, binsName)
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	spoil := func(what string, file []byte, cfg *Config, bins, damaged int, says string) {
		t.Helper()
		said.Reset()
		b.file.Close()
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		var bad int
		b, r, bad = open(cfg)
		if count(r) != bins || bad != damaged || !strings.Contains(said.String(), says) {
			t.Errorf("%s: %d bins, %d damaged, said %q", what, count(r), bad, said.String())
		}
		if kept, err := os.ReadFile(filepath.Join(dir, binsSpoiled)); says != "" && (err != nil || !bytes.Equal(kept, file)) {
			t.Errorf("%s: it is not kept: %v", what, err)
		}
	}
	turned := bytes.Clone(raw)
	turned[b.place(int(at/900)%96)+20] ^= 1
	spoil("a bit of a row", turned, cfg, 92, 1, "")
	spoil("the file's end is missing", raw[:b.place(40)+10], cfg, 40, 1, "")
	spoil("no head", raw[10:], cfg, 0, 0, "set aside")
	spoil("another board", raw, binsConfig(t, 3), 0, 0, "set aside")
	spoil("text", []byte("hello"), cfg, 0, 0, "set aside")
	spoil("nothing", nil, cfg, 0, 0, "")
	good = b.file
	b.file = full
	put(at - 900) // the first life on a full disk
	b.file = good
	put(at)
	b.file.Close()
	if b, r, _ = open(cfg); count(r) != 2 {
		t.Errorf("%d bins of a file that was begun on a full disk", count(r))
	}
	b.file.Close()
}
