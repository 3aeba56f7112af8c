package server

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// register are the keys of nodes that issuers vouched for, and which token was whose.
// A line a key, in the order of vouching, on disk before anybody hears of it. It holds
// no secret; copies of the planner keep their own, from what they hear.
type register struct {
	mu     sync.Mutex
	file   *os.File
	keys   map[seal.KeyID]entry
	nodes  map[proto.NodeID][]seal.KeyID // the newest last, at most two
	tokens map[proto.KeyName]entry       // the key that each was used by
	thief  map[proto.KeyName]proto.PublicKey
	lines  int
}

// entry is a line.
type entry struct {
	Node    proto.NodeID    `json:"node"`
	Public  proto.PublicKey `json:"-"`
	Issuer  proto.PublicKey `json:"-"`
	Edition uint64          `json:"edition,omitempty"`
	Token   proto.KeyName   `json:"-"`
	Since   int64           `json:"since,omitempty"` // seconds
	Until   uint64          `json:"until,omitempty"`
	Thief   proto.PublicKey `json:"-"` // another key that came with the token
	Hex     [4]string       `json:"key_issuer_token_thief"`
}

// line is how an entry is written.
func (e entry) line() ([]byte, error) {
	for i, b := range [...][]byte{e.Public[:], e.Issuer[:], e.Token[:], e.Thief[:]} {
		e.Hex[i] = hex.EncodeToString(b)
	}
	b, err := json.Marshal(e)
	return append(b, '\n'), err
}

func readLine(line []byte) (e entry, err error) {
	err = json.Unmarshal(line, &e)
	for i, to := range [...][]byte{e.Public[:], e.Issuer[:], e.Token[:], e.Thief[:]} {
		b, bad := hex.DecodeString(e.Hex[i])
		if copy(to, b); err == nil && (bad != nil || len(b) != len(to)) {
			err = errors.New("a key is not one")
		}
	}
	return e, err
}

func (e *entry) vouched(fabric string) seal.Vouched {
	return seal.Vouched{Key: seal.Key{Public: e.Public, Holder: proto.Topics{Fabric: fabric}.NodeHolder(e.Node), Role: proto.RoleNode}, Issuer: e.Issuer, Edition: e.Edition}
}

// openRegister reads a register. A last line that was cut short was told to nobody.
func openRegister(name string) (*register, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &proto.Error{Code: proto.Invalid, Field: "state", Limit: "a file that can be written", Reason: err.Error()}
	}
	r := &register{file: f, keys: map[seal.KeyID]entry{}, nodes: map[proto.NodeID][]seal.KeyID{}, tokens: map[proto.KeyName]entry{}, thief: map[proto.KeyName]proto.PublicKey{}}
	raw, err := os.ReadFile(name)
	whole := 0
	for err == nil {
		line, _, ok := bytes.Cut(raw[whole:], []byte{'\n'})
		if !ok {
			break
		}
		e, bad := readLine(line)
		if bad != nil {
			err = fmt.Errorf("%s: line %d: %w: put it back from a copy, or begin with an empty one and tokens for all nodes", name, r.lines+1, bad)
			break
		}
		r.take(e)
		whole += len(line) + 1
	}
	if err == nil {
		err = f.Truncate(int64(whole))
	}
	if err == nil {
		_, err = f.Seek(int64(whole), 0)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

// take takes a line into the tables.
func (r *register) take(e entry) {
	r.lines++
	if e.Thief != (proto.PublicKey{}) {
		r.thief[e.Token] = e.Thief
		return
	}
	id := seal.IDOf(e.Public[:])
	r.keys[id] = e
	list := append(slices.DeleteFunc(r.nodes[e.Node], func(k seal.KeyID) bool { return k == id }), id)
	for len(list) > 2 {
		delete(r.keys, list[0])
		list = list[1:]
	}
	r.nodes[e.Node] = list
	if e.Token != (proto.KeyName{}) {
		r.tokens[e.Token] = e
	}
}

// add has a line on disk, and then in the tables.
func (r *register) add(e entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	b, err := e.line()
	if err == nil {
		_, err = r.file.Write(b)
	}
	if err == nil {
		err = r.file.Sync()
	}
	if err == nil {
		r.take(e)
	}
	return err
}

func (r *register) find(id seal.KeyID) (entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.keys[id]
	return e, ok
}

func (r *register) user(token proto.KeyName) (e entry, thief proto.PublicKey, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok = r.tokens[token]
	return e, r.thief[token], ok
}

// used: a node speaks by a key, and needs no other of before.
func (r *register) used(k seal.Key) {
	if k.Role != proto.RoleNode {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	id, list := seal.IDOf(k.Public[:]), r.nodes[k.Holder.Node]
	if len(list) == 2 && list[1] == id {
		delete(r.keys, list[0])
		r.nodes[k.Holder.Node] = list[1:]
	}
}

// newest are the newest keys, one a node.
func (r *register) newest() []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]entry, 0, len(r.nodes))
	for _, list := range r.nodes { // any order: sorted below
		if e, ok := r.keys[list[len(list)-1]]; ok {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return int(int64(a.Node) - int64(b.Node)) })
	return out
}

// stolen are the tokens that more than one key came with, and that still count.
func (r *register) stolen(t *seal.Trust) []entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []entry
	for token := range r.thief { // any order: sorted below
		e := r.tokens[token]
		if v := e.vouched(t.Fabric); t.Counts(&v) {
			e.Thief = r.thief[token]
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return int(int64(a.Node) - int64(b.Node)) })
	return out
}
