package server

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"ringlight/planner"
)

// Store keeps the planner's records over its lives. One process at a time writes it:
// that which holds its file, or which its election chose.
type Store interface {
	// Load returns everything that is known here, sorted by key.
	Load() (planner.State, error)
	// Commit writes the records in order, all or none; it returns when they
	// are on disk.
	Commit([]planner.Record) error
	// Standing is where this process stands; changed is closed when that is not so any
	// more, nil: it stays so.
	Standing() (s Standing, changed <-chan struct{})
	// Close lets go of it; where this process led, another one may at once.
	Close() error
}

// lockPatience is how long openBolt waits for another process to let go.
// chosen: a planner that is being replaced needs less.
const lockPatience = 2 * time.Second

// A record is stored behind a checksum of its key and value. The name of the
// bucket is the format's; a store of a later one is refused.
var (
	bucket     = []byte("planner 2")
	bucketOld  = []byte("planner") // without checksums
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

func checksum(key, value []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, value)
}

type boltStore struct {
	db   *bolt.DB
	path string
}

// openBolt opens or makes a store in one file. A file that is damaged is left
// as it is, and the error says what to do.
func openBolt(path string) (_ Store, err error) {
	fail := func(err error) (Store, error) {
		return nil, fmt.Errorf("server: state %s: %w", path, explain(path, err))
	}
	if err := checkStore(path, lockPatience); err != nil {
		return fail(err)
	}
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, FreelistType: bolt.FreelistMapType})
	if errors.Is(err, berrors.ErrTimeout) {
		err = errHeld
	}
	if err != nil {
		return fail(err)
	}
	if err := db.Update(prepare); err != nil {
		_ = db.Close()
		return fail(err)
	}
	return &boltStore{db, path}, nil
}

// explain adds the way on to what a damaged file is refused for.
func explain(path string, err error) error {
	if !errors.Is(err, errDamaged) {
		return err
	}
	return fmt.Errorf("%w; no light depends on it: put a copy back, or move the file away (mv %s %s.damaged) and start again with -fabric-file, and the planner takes over what the agents report", err, path, path)
}

// prepare makes the bucket, and takes over the records of the older format.
func prepare(tx *bolt.Tx) error {
	err := tx.ForEach(func(name []byte, _ *bolt.Bucket) error {
		if !bytes.Equal(name, bucket) && !bytes.Equal(name, bucketOld) {
			return fmt.Errorf("%q: it is of a later version of ocs-planner, which alone reads it: start that one; or, as no light depends on it, move the file away and start with -fabric-file, and the planner takes over what the agents report", name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	b, err := tx.CreateBucketIfNotExists(bucket)
	if err != nil {
		return err
	}
	old := tx.Bucket(bucketOld)
	if old == nil {
		return nil
	}
	if err := old.ForEach(func(k, v []byte) error { return put(b, k, v) }); err != nil {
		return err
	}
	return tx.DeleteBucket(bucketOld)
}

// put writes a record, or with nil removes it, and keeps in the bucket's
// sequence how many there are and the sum of their checksums, so that a record
// that is gone from its page is missed.
func put(b *bolt.Bucket, key, value []byte) error {
	seal := b.Sequence()
	if old := b.Get(key); len(old) >= 4 {
		seal = seal - 1<<32 ^ uint64(binary.BigEndian.Uint32(old))
	}
	if value == nil {
		if err := b.Delete(key); err != nil {
			return err
		}
		return b.SetSequence(seal)
	}
	sum := checksum(key, value)
	if err := b.Put(key, append(binary.BigEndian.AppendUint32(nil, sum), value...)); err != nil {
		return err
	}
	return b.SetSequence(seal + 1<<32 ^ uint64(sum))
}

func (s *boltStore) Load() (planner.State, error) {
	var out planner.State
	err := s.db.View(func(tx *bolt.Tx) error {
		b, seal := tx.Bucket(bucket), uint64(0)
		err := b.ForEach(func(k, v []byte) error {
			if len(v) < 4 || binary.BigEndian.Uint32(v) != checksum(k, v[4:]) {
				return damage("record %q is not what was written", k)
			}
			seal = seal + 1<<32 ^ uint64(binary.BigEndian.Uint32(v))
			out = append(out, planner.Record{Key: string(k), Value: append([]byte{}, v[4:]...)})
			return nil
		})
		if err == nil && seal != b.Sequence() {
			return damage("%d records, %d were written", seal>>32, b.Sequence()>>32)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("server: state %s: %w", s.path, explain(s.path, err))
	}
	return out, nil
}

func (s *boltStore) Commit(records []planner.Record) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		for _, r := range records {
			if err := put(b, []byte(r.Key), r.Value); err != nil {
				return fmt.Errorf("%s: %w", r.Key, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("server: write state %s: %w", s.path, err)
	}
	return nil
}

// Standing: the process that holds the file's lock leads.
func (s *boltStore) Standing() (Standing, <-chan struct{}) { return Standing{Reign: 1}, nil }

func (s *boltStore) Close() error { return s.db.Close() }
