// Package etcd keeps the planner's store in etcd, where several copies of the planner
// have it open: its election chooses the one that writes, and the others read along.
// It implements the store of package planner/server.
//
// What is written is batches, not keys: one commit of the planner is one value under
// wal/ (in parts where it is long), and it is written when a transaction has moved the
// key head to it. So a commit is one round however many records it has, and all or
// nothing whatever its length. Each batch's sum covers the one before: a batch that is
// missing, or of another history, is noticed. A snapshot now and then lets go of the
// batches before it.
//
// Every transaction of a leader is guarded: it holds only while the key leader is the
// one that its election made, and head is where this leader left it. So a leader that
// was stopped for a while and does not know that another one leads writes nothing. The
// revision of that election is a guard and nothing more: a cluster that was restored
// counts from an older one. The planner's term is a counter among its records.
//
// An attempt takes a second at most. Then head is read, since what timed out may have
// been written all the same, and it is tried again for as long as the lease lasts.
//
// The store remembers in which cluster it is, and is refused in another one: a client
// of etcd does not notice that its endpoints are of two clusters.
package etcd
