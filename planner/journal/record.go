package journal

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/proto"
)

// Record is one small entry of the store. A nil Value deletes it.
type Record struct {
	Key   string
	Value []byte
}

// State is the content of a store, sorted by key.
type State []Record

// Get gives a record's value, nil when there is none.
func (s State) Get(key string) []byte {
	i, ok := slices.BinarySearchFunc(s, key, func(r Record, key string) int { return strings.Compare(r.Key, key) })
	if !ok {
		return nil
	}
	return s[i].Value
}

// Decode reads a record of JSON into what v points to, which stays where there is none.
func (s State) Decode(key string, v any) (there bool, err error) {
	raw := s.Get(key)
	if raw == nil {
		return false, nil
	}
	if err = json.Unmarshal(raw, v); err != nil {
		err = fmt.Errorf("store: %s: %w", key, err)
	}
	return true, err
}

// Number reads a decimal record, 0 when there is none.
func (s State) Number(key string) (uint64, error) {
	raw := s.Get(key)
	if raw == nil {
		return 0, nil
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("store: %s: %w", key, err)
	}
	return n, nil
}

// CheckCount says why a stored term, generation or sequence number is none that
// a planner can go on from: it would soon not fit into a message.
func CheckCount(field string, n uint64) error {
	if most := proto.Highest(proto.MaxCount); n > most {
		return fmt.Errorf("%s: %d, want at most %d", field, n, most)
	}
	return nil
}

// NumberedKey sorts by number.
func NumberedKey(prefix string, n uint64) string { return fmt.Sprintf("%s%010d", prefix, n) }

// Encode makes a record of a value as JSON.
func Encode(key string, v any) Record {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("planner: a record always encodes: " + err.Error())
	}
	return Record{key, raw}
}
