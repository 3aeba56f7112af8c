package server

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ringlight/planner"
	"ringlight/proto"
)

// storeFormat is of what Export writes; a later one is refused. chosen: that of the
// records, which the name of the bucket has too.
const storeFormat = 2

// maxExportLine bounds a line of an export: the fabric of 10,000 nodes is 3 MB.
const maxExportLine = 64 << 20

// StoreHead is what an export begins with, and what is said of a store.
type StoreHead struct {
	Format  int    `json:"ringlight_store"`
	Fabric  string `json:"fabric"`
	Term    uint64 `json:"term"`
	Records int    `json:"records"`
	SHA256  string `json:"sha256"` // of all keys and values, in order: a copy has the same
}

// storeLine is one record; a value is base64.
type storeLine struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

// headOf describes what a store holds. What a planner would not start from is an error.
func headOf(st planner.State) (StoreHead, error) {
	head := StoreHead{Format: storeFormat, Records: len(st)}
	if len(st) > 0 {
		cfg, err := planner.Start(st, nil, 1)
		if err != nil {
			return head, err
		}
		head.Fabric, head.Term = cfg.Fabric.Name, uint64(cfg.Term)
	}
	sum := sha256.New()
	for _, r := range st {
		var n [8]byte
		binary.BigEndian.PutUint32(n[:], uint32(len(r.Key)))
		binary.BigEndian.PutUint32(n[4:], uint32(len(r.Value)))
		sum.Write(n[:])
		sum.Write([]byte(r.Key))
		sum.Write(r.Value)
	}
	head.SHA256 = fmt.Sprintf("%x", sum.Sum(nil))
	return head, nil
}

// Place is where a store is, or may be made.
type Place interface {
	// Read reads a store that must be there, whole.
	Read(context.Context) (planner.State, error)
	// Make makes a new store, whole or not at all.
	Make(context.Context, planner.State) error
}

// File is the place of a store in a file. No planner may have it open.
type File string

// Read reads the file.
func (f File) Read(context.Context) (planner.State, error) {
	path := string(f)
	if _, err := os.Stat(path); err != nil {
		return nil, proto.Wrong("state", "the file of a store", "%v", err)
	}
	s, err := openBolt(path)
	if err != nil {
		return nil, err
	}
	st, err := s.Load()
	return st, errors.Join(err, s.Close())
}

// whole reads all that a store holds.
func whole(ctx context.Context, at Place) (planner.State, StoreHead, error) {
	st, err := at.Read(ctx)
	if err != nil {
		return nil, StoreHead{}, err
	}
	head, err := headOf(st)
	return st, head, err
}

// CheckStore reads a store whole and says what it holds.
func CheckStore(ctx context.Context, at Place) (StoreHead, error) {
	_, head, err := whole(ctx, at)
	return head, err
}

// CopyStore makes a new store that holds what another one does.
func CopyStore(ctx context.Context, from, to Place) (StoreHead, error) {
	st, head, err := whole(ctx, from)
	if err != nil {
		return head, err
	}
	return head, to.Make(ctx, st)
}

// ExportStore writes a store as lines of JSON: its head, then a record each.
func ExportStore(ctx context.Context, at Place, out io.Writer) (StoreHead, error) {
	st, head, err := whole(ctx, at)
	if err != nil {
		return head, err
	}
	w := bufio.NewWriter(out)
	enc := json.NewEncoder(w)
	err = enc.Encode(head)
	for i := 0; i < len(st) && err == nil; i++ {
		err = enc.Encode(storeLine{st[i].Key, st[i].Value})
	}
	return head, errors.Join(err, w.Flush())
}

// ImportStore makes a new store of what Export wrote, whole or not at all.
func ImportStore(ctx context.Context, in io.Reader, at Place) (StoreHead, error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxExportLine)
	var want StoreHead
	if !lines.Scan() || proto.DecodeFile(lines.Bytes(), &want) != nil || want.Format == 0 {
		return StoreHead{}, proto.Wrong("import", "what ocs-planner store export wrote", "line 1: no head of an export")
	}
	if want.Format > storeFormat {
		return StoreHead{}, proto.Wrong("import", fmt.Sprintf("format 1 to %d", storeFormat), "line 1: format %d is of a later version of ocs-planner", want.Format)
	}
	var st planner.State
	for n := 2; lines.Scan(); n++ {
		var l storeLine
		if err := proto.DecodeFile(lines.Bytes(), &l); err != nil {
			return StoreHead{}, proto.Wrong("import", "what ocs-planner store export wrote", "line %d: %v", n, err)
		}
		if len(st) > 0 && l.Key <= st[len(st)-1].Key {
			return StoreHead{}, proto.Wrong("import", "keys in order", "line %d: %q", n, l.Key)
		}
		st = append(st, planner.Record{Key: l.Key, Value: l.Value})
	}
	if err := lines.Err(); err != nil {
		return StoreHead{}, proto.Wrong("import", "lines of at most 64 MiB", "%v", err)
	}
	head, err := headOf(st)
	if err != nil {
		return head, err
	}
	if head.Records != want.Records || head.SHA256 != want.SHA256 {
		return StoreHead{}, proto.Wrong("import", "the records that were exported", "%d records, %d were written; sha256 %s, want %s", head.Records, want.Records, head.SHA256, want.SHA256)
	}
	return head, at.Make(ctx, st)
}

// Make makes the file under another name first, so that it is whole or not there.
func (f File) Make(_ context.Context, st planner.State) error {
	path := string(f)
	if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
		return &proto.Error{Code: proto.Invalid, Field: "state", Limit: "a file that is not there yet", Reason: path + " is there"}
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".import-*")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	made := filepath.Join(dir, "store")
	s, err := openBolt(made)
	if err != nil {
		return err
	}
	if err := errors.Join(s.Commit(st), s.Close()); err != nil {
		return err
	}
	return os.Link(made, path) // fails where somebody was faster
}
