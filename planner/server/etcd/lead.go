package etcd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"ringlight/planner"
	"ringlight/planner/server"
)

// campaign stands for election until the store is closed.
func (s *Store) campaign() {
	defer s.done.Done()
	for s.ctx.Err() == nil {
		err := s.elect()
		switch {
		case err == nil:
			s.rule()
		case fatal(err):
			s.broken(err)
			return
		case s.ctx.Err() == nil && !errors.Is(err, errTaken):
			s.away(err)
		}
		// A deletion that the watch missed is noticed at the next try.
		select {
		case <-s.vacant:
		case <-time.After(lease / 2):
		case <-s.ctx.Done():
		}
	}
}

var errTaken = errors.New("etcd: another process leads")

// elect tries once to become the leader, and catches up with all that was written
// before.
func (s *Store) elect() error {
	ctx, cancel := context.WithTimeout(s.ctx, attempt)
	defer cancel()
	key := s.key("leader")
	if r, err := s.get(ctx, attempt, key); err != nil {
		return err
	} else if len(r.Kvs) > 0 {
		s.led(string(r.Kvs[0].Value))
		return errTaken
	}
	sent := time.Now()
	l, err := s.client.Grant(ctx, int64(lease/time.Second))
	if err != nil {
		return err
	}
	r, err := s.client.Txn(ctx).If(clientv3.Compare(clientv3.CreateRevision(key), "=", 0)).
		Then(clientv3.OpPut(key, s.cfg.Who, clientv3.WithLease(l.ID))).Commit()
	if err == nil {
		err = s.same(r.Header)
	}
	if err == nil && !r.Succeeded {
		err = errTaken
	}
	if err != nil {
		s.revoke(l.ID)
		return err
	}
	// What the one before wrote is there now, and nothing more of it will come.
	until, stop := context.WithDeadline(s.ctx, sent.Add(lease))
	defer stop()
	if _, err := s.read(until); err != nil {
		s.revoke(l.ID)
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reign, s.leaseID = r.Header.Revision, l.ID
	s.standing.Reign, s.standing.Until, s.standing.Leader, s.standing.Away = uint64(r.Header.Revision), sent.Add(lease), s.cfg.Who, nil
	if s.cfg.unguarded {
		s.standing.Until = time.Time{}
	}
	s.told()
	return nil
}

func (s *Store) led(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standing.Leader != who || s.standing.Away != nil {
		s.standing.Leader, s.standing.Away = who, nil
		s.told()
	}
}

// rule keeps the lease until it is lost.
func (s *Store) rule() {
	for s.ctx.Err() == nil {
		select {
		case <-time.After(lease / 3):
		case <-s.ctx.Done():
			return
		}
		for s.ruling() {
			sent := time.Now()
			err := s.renew()
			if err == nil {
				s.mu.Lock()
				if s.reign != 0 && !s.cfg.unguarded {
					s.standing.Until = sent.Add(lease)
					s.told()
				}
				writes := s.unwritten == nil
				s.mu.Unlock()
				if writes {
					s.away(nil)
				}
				break
			}
			s.away(err)
			if errors.Is(err, rpctypes.ErrLeaseNotFound) {
				s.locked(s.dethroned)
			}
			s.pause(s.ctx)
		}
		if !s.ruling() {
			return
		}
	}
}

func (s *Store) renew() error {
	var id clientv3.LeaseID
	s.locked(func() { id = s.leaseID })
	ctx, cancel := context.WithTimeout(s.ctx, attempt)
	defer cancel()
	r, err := s.client.KeepAliveOnce(ctx, id)
	if err != nil {
		return err
	}
	return s.same(r.ResponseHeader)
}

// ruling: this process leads as far as it can know.
func (s *Store) ruling() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reign != 0 && !s.cfg.unguarded && time.Now().After(s.standing.Until) {
		s.dethroned()
	}
	return s.reign != 0
}

// dethroned ends the reign. It is called with mu held.
func (s *Store) dethroned() {
	if s.reign == 0 || s.cfg.unguarded {
		return
	}
	s.reign, s.standing.Reign, s.standing.Until = 0, 0, time.Time{}
	s.told()
}

func (s *Store) revoke(id clientv3.LeaseID) {
	ctx, cancel := context.WithTimeout(s.ctx, attempt)
	defer cancel()
	_, _ = s.client.Revoke(ctx, id) // else it runs out
}

// resign ends the reign at once, for the next one to begin.
func (s *Store) resign() error {
	s.writing.Lock()
	defer s.writing.Unlock()
	s.mu.Lock()
	reign, id := s.reign, s.leaseID
	s.dethroned()
	s.mu.Unlock()
	if reign == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, attempt)
	defer cancel()
	_, err := s.client.Revoke(ctx, id) // and the key with it
	return err
}

// guard holds while this process leads, and head is where it left it.
func (s *Store) guard() ([]clientv3.Cmp, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.unguarded {
		return nil, true
	}
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.CreateRevision(s.key("leader")), "=", s.reign),
		clientv3.Compare(clientv3.ModRevision(s.key("head")), "=", s.headRev),
	}, s.reign != 0
}

// Commit writes a batch. It returns server.ErrNotLeading when this process does not
// lead, or no more.
func (s *Store) Commit(records []planner.Record) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	last := s.last()
	packed := pack(records)
	parts := split(packed)
	h := head{Format: storeFormat, Seq: last.Seq + 1, Term: last.Term, Parts: len(parts), Snapshot: last.Snapshot}
	h.Sum = last.Sum.next(h.Seq, packed)
	for _, r := range records {
		if r.Key == "term" {
			_, _ = fmt.Sscan(string(r.Value), &h.Term) // for people
		}
	}
	s.locked(func() { s.written = h.Sum })
	for i, part := range parts[:len(parts)-1] {
		if err := s.write(h, false, clientv3.OpPut(s.walKey(h.Seq, i), withParts(part, len(parts)))); err != nil {
			return err
		}
	}
	i := len(parts) - 1
	if err := s.write(h, true, clientv3.OpPut(s.walKey(h.Seq, i), withParts(parts[i], len(parts))), clientv3.OpPut(s.key("head"), h.encode())); err != nil {
		return err
	}
	s.locked(func() {
		s.apply(records)
		s.head, s.standing.Batches = h, h.Seq
	})
	if h.Seq%s.cfg.every == 0 {
		return s.snapshot()
	}
	return nil
}

// write makes a guarded transaction, again for as long as the reign lasts: a leader
// whose lease is renewed and who cannot write for as long as one lasts gives it up, as
// where the cluster has no space. moves: it moves head to h, by which it is known
// whether one that timed out was made.
func (s *Store) write(h head, moves bool, ops ...clientv3.Op) error {
	defer s.fails(nil)
	for began := time.Now(); ; {
		guard, may := s.guard()
		if !may || !s.ruling() && !s.cfg.unguarded {
			return server.ErrNotLeading
		}
		r, err := s.try(guard, ops...)
		if err == nil && r.Succeeded {
			if moves {
				s.locked(func() { s.headRev = r.Header.Revision })
			}
			return nil
		}
		if fatal(err) {
			return err
		}
		if err != nil {
			s.fails(err)
		}
		done, lost, looked := s.look(h)
		switch {
		case fatal(looked):
			return looked
		case moves && done:
			return nil
		case lost || time.Since(began) >= lease && !s.cfg.unguarded:
			var id clientv3.LeaseID
			s.locked(func() { id = s.leaseID; s.dethroned() })
			if !lost {
				s.revoke(id)
			}
			return server.ErrNotLeading
		}
		s.pause(s.ctx)
		if s.ctx.Err() != nil {
			return server.ErrNotLeading
		}
	}
}

// fails notes why the write that is under way does not succeed.
func (s *Store) fails(err error) {
	s.locked(func() { s.unwritten = err })
	if err != nil {
		s.away(err)
	}
}

// try makes a transaction once.
func (s *Store) try(guard []clientv3.Cmp, ops ...clientv3.Op) (*clientv3.TxnResponse, error) {
	ctx, cancel := context.WithTimeout(s.ctx, attempt)
	defer cancel()
	r, err := s.client.Txn(ctx).If(guard...).Then(ops...).Commit()
	if err == nil {
		err = s.same(r.Header)
	}
	return r, err
}

// look reads head after an attempt that did not end well: done, it was made after all;
// lost, another process leads.
func (s *Store) look(h head) (done, lost bool, err error) {
	r, err := s.try(nil, clientv3.OpGet(s.key("head")), clientv3.OpGet(s.key("leader")))
	if err != nil {
		return false, false, err
	}
	heads, leaders := r.Responses[0].GetResponseRange().Kvs, r.Responses[1].GetResponseRange().Kvs
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(heads) > 0 {
		if string(heads[0].Value) == h.encode() {
			s.headRev = heads[0].ModRevision
			return true, false, nil
		}
		lost = heads[0].ModRevision != s.headRev
	}
	return false, lost || len(leaders) == 0 || leaders[0].CreateRevision != s.reign, nil
}

// snapshot writes everything in one piece and lets go of what led to it.
func (s *Store) snapshot() error {
	state, err := s.Load()
	if err != nil {
		return err
	}
	h := s.last()
	packed := pack(state)
	parts := split(packed)
	for i, part := range parts {
		if err := s.write(h, false, clientv3.OpPut(s.key("snap/%016x/%04x", h.Seq, i), string(part))); err != nil {
			return err
		}
	}
	h.Snapshot = &snapshot{Seq: h.Seq, Sum: h.Sum, Own: (sum{}).next(h.Seq, packed), Parts: len(parts)}
	if err := s.write(h, true, clientv3.OpPut(s.key("head"), h.encode()),
		clientv3.OpDelete(s.walKey(0, 0), clientv3.WithRange(s.walKey(h.Seq+1, 0))),
		clientv3.OpDelete(s.key("snap/"), clientv3.WithRange(s.key("snap/%016x/", h.Seq)))); err != nil {
		return err
	}
	s.locked(func() { s.head = h })
	return nil
}
