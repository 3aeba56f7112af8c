package etcd

import (
	"bytes"
	"compress/flate"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"ringlight/planner"
)

const (
	// maxPart bounds a value. chosen: etcd refuses requests of 1.5 MiB.
	maxPart = 1 << 20
	// maxBatch bounds a batch, unpacked: the records of a cell of 10,000 nodes are 20 MB.
	maxBatch = 256 << 20
	// storeFormat is of what is written; a later one is refused.
	storeFormat = 1
)

// sum is of a batch and of all before it.
type sum [sha256.Size]byte

func (s sum) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

func (s *sum) UnmarshalText(text []byte) error {
	if n, err := hex.Decode(s[:], text); err != nil || n != len(s) || len(text) != 2*len(s) {
		return errors.New("want 64 hexadecimal digits")
	}
	return nil
}

// next is the sum of a batch after one of this sum.
func (s sum) next(seq uint64, packed []byte) sum {
	h := sha256.New()
	h.Write(s[:])
	h.Write(binary.BigEndian.AppendUint64(nil, seq))
	h.Write(packed)
	return sum(h.Sum(nil))
}

// head is what is written: the number of the last batch, and what it is known by.
type head struct {
	Format   int       `json:"format"`
	Seq      uint64    `json:"seq"`
	Term     uint64    `json:"term"` // of the planner, for people
	Sum      sum       `json:"sha256"`
	Parts    int       `json:"parts"` // of that batch
	Snapshot *snapshot `json:"snapshot,omitempty"`
}

// snapshot is everything up to a batch.
type snapshot struct {
	Seq   uint64 `json:"seq"`
	Sum   sum    `json:"sha256"` // of the batches up to it
	Own   sum    `json:"own"`    // of the snapshot's own bytes
	Parts int    `json:"parts"`
}

func (h *head) encode() string {
	raw, err := json.Marshal(h)
	if err != nil {
		panic("etcd: a head always encodes: " + err.Error())
	}
	return string(raw)
}

func parseHead(raw []byte) (h head, err error) {
	if err := json.Unmarshal(raw, &h); err != nil {
		return h, fmt.Errorf("head: %w", err)
	}
	if h.Format != storeFormat {
		return h, fmt.Errorf("head: format %d, want %d: it is of another version of ocs-planner", h.Format, storeFormat)
	}
	if h.Parts < 1 || h.Snapshot != nil && (h.Snapshot.Parts < 1 || h.Snapshot.Seq > h.Seq) {
		return h, errors.New("head: a batch without parts, or a snapshot of what is to come")
	}
	return h, nil
}

// pack makes records small. A value is behind its length and one; 0 deletes.
func pack(records []planner.Record) []byte {
	var out bytes.Buffer
	z, err := flate.NewWriter(&out, flate.BestSpeed)
	if err != nil {
		panic("etcd: " + err.Error())
	}
	var line []byte
	for _, r := range records {
		line = binary.AppendUvarint(line[:0], uint64(len(r.Key)))
		line = append(line, r.Key...)
		if r.Value == nil {
			line = binary.AppendUvarint(line, 0)
		} else {
			line = append(binary.AppendUvarint(line, uint64(len(r.Value))+1), r.Value...)
		}
		_, _ = z.Write(line) // a buffer takes all
	}
	_ = z.Close()
	return out.Bytes()
}

func unpack(packed []byte) (out []planner.Record, err error) {
	raw, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxBatch+1))
	if err != nil || len(raw) > maxBatch {
		return nil, errors.Join(err, fmt.Errorf("a batch that does not unpack into %d bytes", maxBatch))
	}
	take := func(less uint64) ([]byte, error) {
		n, used := binary.Uvarint(raw)
		if used <= 0 || n < less && n != 0 || n-min(n, less) > uint64(len(raw)-used) {
			return nil, errors.New("a batch that ends within a record")
		}
		if n < less {
			raw = raw[used:]
			return nil, nil
		}
		end := uint64(used) + n - less
		b := append([]byte{}, raw[used:end]...)
		raw = raw[end:]
		return b, nil
	}
	for len(raw) > 0 {
		key, err := take(0)
		if err != nil {
			return nil, err
		}
		value, err := take(1)
		if err != nil {
			return nil, err
		}
		out = append(out, planner.Record{Key: string(key), Value: value})
	}
	return out, nil
}

// split divides a batch into parts, one at least.
func split(packed []byte) (parts [][]byte) {
	for len(packed) > maxPart {
		parts, packed = append(parts, packed[:maxPart]), packed[maxPart:]
	}
	return append(parts, packed)
}
