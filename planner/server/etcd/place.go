package etcd

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"ringlight/planner"
	"ringlight/proto"
)

// Place is where a store is, or may be made, for those who do not stand for election.
type Place Config

// Read reads a store whole, as it is at one moment; a planner may go on writing it.
func (p Place) Read(ctx context.Context) (st planner.State, err error) {
	err = p.with(ctx, look, func(s *Store) error {
		if _, err := s.read(ctx); err != nil {
			return err
		}
		if s.head.Seq == 0 {
			return proto.Wrong("store", "a store that is there", "there is none in etcd under %s", s.key(""))
		}
		st, err = s.Load()
		return err
	})
	return st, err
}

// Make makes a new store of one batch, whole or not at all.
func (p Place) Make(ctx context.Context, st planner.State) error {
	return p.with(ctx, found, func(s *Store) error {
		if _, err := s.read(ctx); err != nil {
			return err
		}
		if s.head.Seq > 0 {
			return proto.Wrong("store", "a place where no store is yet", "there is one in etcd under %s", s.key(""))
		}
		term, err := st.Number("term")
		if err != nil {
			return err
		}
		packed := pack(st)
		parts := split(packed)
		h := head{Format: storeFormat, Seq: 1, Term: term, Parts: len(parts), Sum: (sum{}).next(1, packed)}
		alone := []clientv3.Cmp{clientv3.Compare(clientv3.CreateRevision(s.key("head")), "=", 0), clientv3.Compare(clientv3.CreateRevision(s.key("leader")), "=", 0)}
		for i, part := range parts {
			ops := []clientv3.Op{clientv3.OpPut(s.walKey(1, i), withParts(part, len(parts)))}
			if i == len(parts)-1 {
				ops = append(ops, clientv3.OpPut(s.key("head"), h.encode()))
			}
			r, err := s.try(alone, ops...)
			if err == nil && !r.Succeeded {
				err = proto.Wrong("store", "a place where no store is yet", "a planner has begun one in etcd under %s meanwhile", s.key(""))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Adopt makes a store that was restored or copied on purpose one of this cluster.
func Adopt(ctx context.Context, cfg Config) error {
	return Place(cfg).with(ctx, adopt, func(*Store) error { return nil })
}

// with connects for a while. A cluster that does not answer in time is a failure, not
// bad input.
func (p Place) with(ctx context.Context, how admission, f func(*Store) error) error {
	s, err := dial(ctx, Config(p))
	if err == nil {
		defer s.stop()
		if err = s.admit(ctx, how); err == nil {
			err = f(s)
		}
	}
	if err != nil && !errors.As(err, new(*proto.Error)) {
		return fmt.Errorf("etcd: %w", err)
	}
	return err
}
