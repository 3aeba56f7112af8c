package server

import (
	"errors"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"ringlight/planner"
)

// Store keeps the planner's records over its lives. One planner at a time has
// it open.
type Store interface {
	// Load returns everything, sorted by key.
	Load() (planner.State, error)
	// Commit writes the records in order, all or none; it returns when they
	// are on disk.
	Commit([]planner.Record) error
	Close() error
}

// lockPatience is how long OpenStore waits for another process to let go.
// chosen: a planner that is being replaced needs less.
const lockPatience = 2 * time.Second

var bucket = []byte("planner")

type boltStore struct{ db *bolt.DB }

// OpenStore opens or makes a store in one file.
func OpenStore(path string) (Store, error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: lockPatience, FreelistType: bolt.FreelistMapType})
	if errors.Is(err, bolt.ErrTimeout) {
		return nil, fmt.Errorf("server: state %s: another process holds it", path)
	}
	if err != nil {
		return nil, fmt.Errorf("server: state %s: %w", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("server: state %s: %w", path, err)
	}
	return &boltStore{db}, nil
}

func (s *boltStore) Load() (planner.State, error) {
	var out planner.State
	err := s.db.View(func(tx *bolt.Tx) error {
		return tx.Bucket(bucket).ForEach(func(k, v []byte) error {
			out = append(out, planner.Record{Key: string(k), Value: append([]byte{}, v...)})
			return nil
		})
	})
	if err != nil {
		return nil, fmt.Errorf("server: read state: %w", err)
	}
	return out, nil
}

func (s *boltStore) Commit(records []planner.Record) error {
	err := s.db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucket)
		for _, r := range records {
			var err error
			if r.Value == nil {
				err = b.Delete([]byte(r.Key))
			} else {
				err = b.Put([]byte(r.Key), r.Value)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", r.Key, err)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("server: write state: %w", err)
	}
	return nil
}

func (s *boltStore) Close() error { return s.db.Close() }
