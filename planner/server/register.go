package server

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/proto/seal"
)

// register are the keys of nodes that issuers vouched for, and which token was whose.
// It holds no secret. It is in the store, where whoever leads next finds it, and beside
// that in a file, a line an entry, which knows what a store that was put back from a copy
// does not; what either has counts. It grows with nodes, not with time: of a node it keeps
// the two newest keys and the token used last, and no token made before that counts.
type register struct {
	mu     sync.Mutex
	name   string
	file   *os.File
	lines  int
	fresh  bool // there was no file
	keys   map[seal.KeyID]entry
	nodes  map[proto.NodeID][]seal.KeyID // the newest last, at most two
	tokens map[proto.NodeID]entry        // by which the node came, the token made last
	thief  map[proto.KeyName]entry
	from   int64  // seconds: tokens made before, and not known, do not count
	last   uint64 // number of an entry
	gone   []string
}

const (
	// prefixVouched is of the entries in the store.
	prefixVouched = "vouched/"
	// slackLines are what a file may have beyond twice what counts.
	slackLines = 256
)

// entry is a line.
type entry struct {
	Number  uint64          `json:"number,omitempty"` // their order
	From    int64           `json:"from,omitempty"`   // nothing else: see register
	Made    int64           `json:"made,omitempty"`   // the token, seconds
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

// record is the entry's key in the store.
func (e *entry) record() string {
	switch {
	case e.From != 0:
		return prefixVouched + "from"
	case e.Thief != (proto.PublicKey{}):
		return prefixVouched + "thief/" + hex.EncodeToString(e.Token[:])
	}
	return prefixVouched + keyOf(e.Public)
}

// made is when the entry's token was, at the latest.
func (e *entry) made() int64 { return cmp.Or(e.Made, e.Since) }

// openRegister reads a register's file. A last line that was cut short was told to nobody.
func openRegister(name string) (*register, error) {
	_, missing := os.Stat(name)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, proto.Wrong("state", "a file that can be written", "%v", err)
	}
	r := &register{name: name, file: f, fresh: missing != nil, keys: map[seal.KeyID]entry{}, nodes: map[proto.NodeID][]seal.KeyID{}, tokens: map[proto.NodeID]entry{}, thief: map[proto.KeyName]entry{}}
	raw, err := os.ReadFile(name)
	whole := 0
	for line := range bytes.Lines(raw) {
		if !bytes.HasSuffix(line, []byte{'\n'}) {
			break
		}
		e, bad := readLine(line)
		if bad != nil {
			err = fmt.Errorf("%s: line %d: %w: put it back from a copy, or move it away: the store has what it had", name, r.lines+1, bad)
			break
		}
		r.take(e)
		r.lines++
		whole += len(line)
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
	r.gone = nil
	return r, nil
}

// take takes an entry into the tables. The caller has the lock.
func (r *register) take(e entry) {
	if e.Number == 0 && e.From == 0 {
		e.Number = r.last + 1
	}
	r.last = max(r.last, e.Number)
	switch {
	case e.From != 0:
		r.from = max(r.from, e.From)
		return
	case e.Thief != (proto.PublicKey{}):
		r.thief[e.Token] = e
		return
	}
	id := seal.IDOf(e.Public[:])
	r.keys[id] = e
	list := append(slices.DeleteFunc(r.nodes[e.Node], func(k seal.KeyID) bool { return k == id }), id)
	slices.SortStableFunc(list, func(a, b seal.KeyID) int { return cmp.Compare(r.keys[a].Number, r.keys[b].Number) })
	r.nodes[e.Node] = list
	was, ok := r.tokens[e.Node]
	if e.Token != (proto.KeyName{}) && (!ok || was.made() <= e.made()) {
		r.tokens[e.Node] = e
		if ok && was.Token != e.Token {
			if t, stolen := r.thief[was.Token]; stolen {
				delete(r.thief, was.Token)
				r.gone = append(r.gone, t.record())
			}
			if _, known := r.keys[seal.IDOf(was.Public[:])]; !known {
				r.gone = append(r.gone, was.record())
			}
		}
	}
	for len(r.nodes[e.Node]) > 2 {
		r.forget(e.Node)
	}
}

// forget forgets the oldest key of a node. The caller has the lock.
func (r *register) forget(n proto.NodeID) {
	list := r.nodes[n]
	e := r.keys[list[0]]
	delete(r.keys, list[0])
	r.nodes[n] = list[1:]
	if r.tokens[n].Public != e.Public {
		r.gone = append(r.gone, e.record())
	}
}

// counts are the entries that count, in their order. The caller has the lock.
func (r *register) counts() (list []entry) {
	if r.from != 0 {
		list = append(list, entry{From: r.from})
	}
	list = slices.AppendSeq(list, maps.Values(r.keys))
	for _, e := range r.tokens { // any order, as all here: sorted below
		if _, known := r.keys[seal.IDOf(e.Public[:])]; !known {
			list = append(list, e)
		}
	}
	list = slices.AppendSeq(list, maps.Values(r.thief))
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.Number, b.Number) })
	return list
}

// add has entries on disk, and then in the tables.
func (r *register) add(list ...entry) error {
	if len(list) == 0 {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var lines []byte
	for _, e := range list {
		b, err := e.line()
		if err != nil {
			return err
		}
		lines = append(lines, b...)
	}
	_, err := r.file.Write(lines)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		return err
	}
	for _, e := range list {
		r.take(e)
	}
	if r.lines += len(list); r.lines > slackLines+2*(len(r.keys)+len(r.tokens)+len(r.thief)) {
		return r.fold()
	}
	return nil
}

// fold writes the file anew with what counts, and puts it in the other's place. The caller
// has the lock.
func (r *register) fold() error {
	list := r.counts()
	f, err := os.OpenFile(r.name+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, e := range list {
		b, e := e.line()
		_, _ = w.Write(b) // Flush tells
		err = errors.Join(err, e)
	}
	if err = errors.Join(err, w.Flush(), f.Sync()); err == nil {
		err = os.Rename(r.name+".new", r.name)
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	err = r.file.Close()
	r.file, r.lines = f, len(list)
	return err
}

// numbered gives an entry its number, and what a store is to write for it.
func (r *register) numbered(e *entry) ([]planner.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.Number = r.last + 1
	b, err := e.line()
	out := []planner.Record{{Key: e.record(), Value: b}}
	for _, key := range r.gone {
		if key != out[0].Key {
			out = append(out, planner.Record{Key: key})
		}
	}
	r.gone = nil
	return out, err
}

// meet takes what a store has, and gives what that is to write: what it lacks, and has in
// vain. Only the leader writes it.
func (r *register) meet(st planner.State) (due []planner.Record, stored int, err error) {
	var news []entry
	has := map[string]bool{}
	r.mu.Lock()
	for _, rec := range st {
		if !strings.HasPrefix(rec.Key, prefixVouched) {
			continue
		}
		e, err := readLine(rec.Value)
		if err != nil {
			r.mu.Unlock()
			return nil, 0, fmt.Errorf("store: %s: %w", rec.Key, err)
		}
		has[rec.Key] = true
		known, ok := r.keys[seal.IDOf(e.Public[:])]
		if e.Thief != (proto.PublicKey{}) {
			known, ok = r.thief[e.Token]
		}
		if !ok || known.Number != e.Number {
			news = append(news, e)
		}
	}
	r.mu.Unlock()
	slices.SortFunc(news, func(a, b entry) int { return cmp.Compare(a.Number, b.Number) })
	if err := r.add(news...); err != nil {
		return nil, 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	stored = len(has)
	for _, e := range r.counts() {
		if key := e.record(); !has[key] {
			b, bad := e.line()
			err = errors.Join(err, bad)
			due = append(due, planner.Record{Key: key, Value: b})
		} else {
			delete(has, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(has)) {
		due = append(due, planner.Record{Key: key})
	}
	r.gone = nil
	return due, stored, err
}

func (r *register) find(id seal.KeyID) (entry, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.keys[id]
	return e, ok
}

// came is the entry of the token by which a node came, and another key that used it.
func (r *register) came(n proto.NodeID) (e entry, thief proto.PublicKey, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok = r.tokens[n]
	return e, r.thief[e.Token].Thief, ok
}

// before is when tokens were made that count only where they are known.
func (r *register) before() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.from
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
		r.forget(k.Holder.Node)
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
	for _, e := range r.tokens { // any order: sorted below
		if v := e.vouched(t.Fabric); t.Counts(&v) && r.thief[e.Token].Number != 0 {
			e.Thief = r.thief[e.Token].Thief
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b entry) int { return int(int64(a.Node) - int64(b.Node)) })
	return out
}
