package agenda

import "time"

// Queue is a heap by time. The zero Queue is empty.
type Queue[T any] struct {
	heap []entry[T]
	seq  uint64
}

type entry[T any] struct {
	at   time.Duration
	seq  uint64
	what T
}

// Len is how many things wait.
func (q *Queue[T]) Len() int { return len(q.heap) }

// First is what happens first of at least one, and when.
func (q *Queue[T]) First() (at time.Duration, what *T) { return q.heap[0].at, &q.heap[0].what }

func (q *Queue[T]) less(i, j int) bool {
	x, y := &q.heap[i], &q.heap[j]
	return x.at < y.at || x.at == y.at && x.seq < y.seq
}

// Push puts in what happens at a time.
func (q *Queue[T]) Push(at time.Duration, what T) {
	q.seq++
	q.heap = append(q.heap, entry[T]{at, q.seq, what})
	for i := len(q.heap) - 1; i > 0; {
		up := (i - 1) / 2
		if !q.less(i, up) {
			break
		}
		q.heap[i], q.heap[up] = q.heap[up], q.heap[i]
		i = up
	}
}

// Pop takes out what happens first of at least one.
func (q *Queue[T]) Pop() (at time.Duration, what T) {
	top := q.heap[0]
	n := len(q.heap) - 1
	q.heap[0] = q.heap[n]
	q.heap[n] = entry[T]{}
	q.heap = q.heap[:n]
	for i := 0; ; {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && q.less(child+1, child) {
			child++
		}
		if !q.less(child, i) {
			break
		}
		q.heap[i], q.heap[child] = q.heap[child], q.heap[i]
		i = child
	}
	return top.at, top.what
}
