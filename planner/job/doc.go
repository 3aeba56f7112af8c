// Package job lets somebody ask for rings, or for circuits of a core. A job is a
// wish, an answer and a life: so many rings of so many GPUs; the rings it got and
// the order in which light meets their GPUs; and from waiting over ready, which
// means that light is confirmed on every link, to released. The life is one; what
// differs between rings and circuits is an allocator.
//
// A job is kept from the moment it is acknowledged, in every state: a planner
// that is killed takes it up where the store says it stood. Whatever happens to
// it is an event with a number of the job's own; whoever watches gets each once
// and in order, over the planner's death too.
//
// It chooses no node or server and moves no light: hbd and core do. It never ends a job by
// itself, and it holds what a job has until it is released, whoever dies.
package job
