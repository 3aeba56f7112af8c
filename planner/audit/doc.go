// Package audit is a chain of records: what operators asked for, what they were
// answered, and what the planner decided that changes light. A record is a line of
// JSON that holds the SHA-256 of the line before it, so that any standard tool can
// follow the chain, and none of its lines can be changed, left out or moved without
// the next one saying so. The newest line's hash is the head.
//
// It bears out what it says against whoever changes lines. Whoever may write the
// whole store can write the whole chain anew: only a head that is kept elsewhere
// shows that.
//
// It keeps nothing by itself and decides nothing: the journal stores what it is given.
package audit
