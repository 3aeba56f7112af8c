package etcd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// page bounds the values of one answer. chosen: of small batches many, of the longest
	// 16 MiB.
	page = 16
	// pageAttempt bounds the wait for one. chosen: that of a slow line.
	pageAttempt = 5 * time.Second
)

// read takes everything as it was at one revision, and gives that.
func (s *Store) read(ctx context.Context) (at int64, err error) {
	for {
		if at, err = s.readOnce(ctx); err == nil || fatal(err) || ctx.Err() != nil {
			return at, err
		}
		s.pause(ctx)
	}
}

func (s *Store) get(ctx context.Context, wait time.Duration, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	r, err := s.client.Get(ctx, key, opts...)
	if err == nil {
		err = s.same(r.Header)
	}
	return r, err
}

func (s *Store) readOnce(ctx context.Context) (int64, error) {
	r, err := s.get(ctx, attempt, s.key("head"))
	if err != nil {
		return 0, err
	}
	at, h, rev := r.Header.Revision, head{Format: storeFormat}, int64(0)
	state := map[string][]byte{}
	have := s.last()
	if len(r.Kvs) > 0 {
		if h, err = parseHead(r.Kvs[0].Value); err != nil {
			return 0, fmt.Errorf("etcd: %w: %w", errDamaged, err)
		}
		rev = r.Kvs[0].ModRevision
	}
	if h.Seq == have.Seq && h.Sum == have.Sum && h.Seq > 0 { // nothing was missed
		s.locked(func() { s.headRev, s.head = rev, h })
		return at, nil
	}
	from, last := uint64(0), sum{}
	if p := h.Snapshot; p != nil {
		packed, err := s.values(ctx, s.key("snap/%016x/", p.Seq), p.Parts, at)
		if err != nil {
			return 0, err
		}
		if (sum{}).next(p.Seq, packed) != p.Own {
			return 0, fmt.Errorf("etcd: %w: snapshot %d is not what was written", errDamaged, p.Seq)
		}
		if err := lay(state, packed); err != nil {
			return 0, fmt.Errorf("etcd: %w: snapshot %d: %w", errDamaged, p.Seq, err)
		}
		from, last = p.Seq, p.Sum
	}
	if err := s.batches(ctx, from, h, at, func(seq uint64, packed []byte) error {
		last = last.next(seq, packed)
		return lay(state, packed)
	}); err != nil {
		return 0, err
	}
	if last != h.Sum {
		return 0, fmt.Errorf("etcd: %w: batches %d to %d are not those that were written", errDamaged, from+1, h.Seq)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state, s.head, s.headRev = state, h, rev
	clear(s.parts)
	s.standing.Batches, s.standing.Election = h.Seq, s.number()
	s.told()
	return at, nil
}

// lay puts a batch over a state.
func lay(state map[string][]byte, packed []byte) error {
	records, err := unpack(packed)
	if err != nil {
		return err
	}
	(&Store{state: state}).apply(records)
	return nil
}

// values reads the parts of one thing, as they were at a revision.
func (s *Store) values(ctx context.Context, prefix string, parts int, at int64) ([]byte, error) {
	var out []byte
	err := s.each(ctx, prefix, clientv3.GetPrefixRangeEnd(prefix), at, func(kv *mvccpb.KeyValue) error {
		if parts > 0 {
			out = append(out, kv.Value...)
			parts--
		}
		return nil
	})
	if err == nil && parts > 0 {
		err = fmt.Errorf("etcd: %w: %s lacks %d parts", errDamaged, prefix, parts)
	}
	return out, err
}

// each reads all keys of a range as they were at a revision.
func (s *Store) each(ctx context.Context, from, end string, at int64, f func(*mvccpb.KeyValue) error) error {
	for {
		r, err := s.get(ctx, pageAttempt, from, clientv3.WithRange(end), clientv3.WithRev(at), clientv3.WithLimit(page))
		if err != nil {
			return err
		}
		for _, kv := range r.Kvs {
			if err := f(kv); err != nil {
				return err
			}
			from = string(kv.Key) + "\x00"
		}
		if !r.More {
			return nil
		}
	}
}

// batches hands on those after one, in order, up to the head. Parts that no head was
// moved to were written by one that died, or is about to move it.
func (s *Store) batches(ctx context.Context, after uint64, h head, at int64, f func(seq uint64, packed []byte) error) error {
	seq, packed := after, []byte(nil)
	flush := func() error {
		if seq == after {
			return nil
		}
		if err := f(seq, packed); err != nil {
			return fmt.Errorf("etcd: %w: batch %d: %w", errDamaged, seq, err)
		}
		return nil
	}
	counted, parts := 0, 0
	err := s.each(ctx, s.walKey(after+1, 0), s.walKey(h.Seq+1, 0), at, func(kv *mvccpb.KeyValue) error {
		var n uint64
		var part int
		if _, err := fmt.Sscanf(strings.TrimPrefix(string(kv.Key), s.key("wal/")), "%x/%x", &n, &part); err != nil {
			return fmt.Errorf("etcd: %w: key %q", errDamaged, kv.Key)
		}
		if n != seq {
			if err := flush(); err != nil {
				return err
			}
			seq, packed, counted = n, nil, 0
		}
		if part == 0 {
			parts = partsOf(kv.Value)
		}
		if part == counted && part < parts && partsOf(kv.Value) == parts {
			packed = append(packed, kv.Value[partHeader:]...)
			counted++
		}
		return nil
	})
	if err != nil {
		return err
	}
	return flush()
}

// A part says of how many its batch is, so that what one that died has left behind
// beyond them is not taken for more of it.
const partHeader = 2

func withParts(part []byte, of int) string {
	return string(append([]byte{byte(of >> 8), byte(of)}, part...))
}

func partsOf(value []byte) int {
	if len(value) < partHeader {
		return 0
	}
	return int(value[0])<<8 | int(value[1])
}

// follow takes what is written, from a revision on, until the store is closed. What
// breaks is read again.
func (s *Store) follow(at int64) {
	defer s.done.Done()
	for s.ctx.Err() == nil {
		err := s.watch(at)
		if s.ctx.Err() != nil {
			return
		}
		s.away(err)
		for err != nil && s.ctx.Err() == nil {
			if at, err = s.read(s.ctx); fatal(err) {
				s.broken(err)
				return
			}
		}
		s.away(nil)
	}
}

// watch takes what is written after a revision until that breaks.
func (s *Store) watch(at int64) error {
	ctx, cancel := context.WithCancel(clientv3.WithRequireLeader(s.ctx))
	defer cancel()
	prefix := s.key("")
	for r := range s.client.Watch(ctx, prefix, clientv3.WithPrefix(), clientv3.WithRev(at+1), clientv3.WithFragment()) {
		if err := r.Err(); err != nil {
			return err
		}
		if err := s.same(r.Header); err != nil {
			return err
		}
		for _, e := range r.Events {
			if err := s.wrote(strings.TrimPrefix(string(e.Kv.Key), prefix), e); err != nil {
				return err
			}
		}
	}
	return errors.New("etcd: the watch ended")
}

// wrote takes one key that somebody wrote.
func (s *Store) wrote(key string, e *clientv3.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case key == "leader":
		s.standing.Leader = string(e.Kv.Value)
		if e.Type == mvccpb.DELETE {
			select {
			case s.vacant <- struct{}{}:
			default:
			}
		}
		s.told()
	case e.Type == mvccpb.DELETE:
	case strings.HasPrefix(key, "wal/"):
		s.parts[key] = e.Kv.Value
	case key == "head":
		h, err := parseHead(e.Kv.Value)
		if err != nil {
			return fmt.Errorf("etcd: %w: %w", errDamaged, err)
		}
		return s.moved(h, e.Kv.ModRevision)
	}
	return nil
}

// moved takes a batch that head was moved to. It is called with mu held.
func (s *Store) moved(h head, rev int64) error {
	switch {
	case h.Sum == s.written: // our own, which Commit takes
		return nil
	case h.Seq <= s.head.Seq: // a snapshot
		if h.Seq == s.head.Seq && h.Sum == s.head.Sum && s.reign == 0 {
			s.head, s.headRev = h, rev
		}
		s.forget(h.Seq)
		return nil
	case h.Seq != s.head.Seq+1:
		return fmt.Errorf("etcd: batch %d came after %d", h.Seq, s.head.Seq)
	}
	var packed bytes.Buffer
	for i := range h.Parts {
		part, ok := s.parts[fmt.Sprintf("wal/%016x/%04x", h.Seq, i)]
		if !ok || partsOf(part) != h.Parts {
			return fmt.Errorf("etcd: batch %d came without part %d", h.Seq, i)
		}
		packed.Write(part[partHeader:])
	}
	if s.head.Sum.next(h.Seq, packed.Bytes()) != h.Sum {
		return fmt.Errorf("etcd: batch %d is not what was written", h.Seq)
	}
	records, err := unpack(packed.Bytes())
	if err != nil {
		return fmt.Errorf("etcd: batch %d: %w", h.Seq, err)
	}
	s.apply(records)
	s.head, s.headRev = h, rev
	s.forget(h.Seq)
	s.standing.Batches = h.Seq
	if s.reign != 0 {
		s.dethroned() // somebody else wrote it
	}
	s.told()
	return nil
}

// forget lets go of the parts of batches up to one. It is called with mu held.
func (s *Store) forget(seq uint64) {
	last := fmt.Sprintf("wal/%016x/~", seq)
	for k := range s.parts { // any order: all that are older
		if k <= last {
			delete(s.parts, k)
		}
	}
}

// away notes why the store is not reached, nil when it is.
func (s *Store) away(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if (s.standing.Away == nil) == (err == nil) {
		return
	}
	s.standing.Away = err
	s.told()
}

// broken ends all that this process does with the store.
func (s *Store) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dethroned()
	s.standing.Broken = err
	s.told()
}
