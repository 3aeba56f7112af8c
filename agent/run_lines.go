package agent

import (
	"bufio"
	"context"
	"net"
	"sync"
	"time"
)

// Limits of a visitor's connection. chosen: the longest line of hal/scpi, a
// script that waits for a person, and a page of answers that nobody reads.
const (
	maxScriptLine  = 16 << 10
	visitorTimeout = time.Hour
	writeTimeout   = 10 * time.Second
	maxReplies     = 64
)

// visitors are the TCP connections of scripts to a switch.
type visitors struct {
	to chan<- Input

	mu   sync.Mutex
	last uint64
	out  map[uint64]chan []byte
}

func newVisitors(to chan<- Input) *visitors {
	return &visitors{to: to, out: map[uint64]chan []byte{}}
}

// answer hands a reply to its visitor; one who does not read, or who is not
// wanted, is sent away.
func (v *visitors) answer(id uint64, reply []byte) {
	v.mu.Lock()
	defer v.mu.Unlock()
	ch := v.out[id]
	if ch == nil {
		return
	}
	if reply != nil {
		select {
		case ch <- reply:
			return
		default:
		}
	}
	delete(v.out, id)
	close(ch)
}

// listen takes visitors at address until stop is called.
func (v *visitors) listen(ctx context.Context, address string) (stop func(), err error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			v.mu.Lock()
			v.last++
			id, replies := v.last, make(chan []byte, maxReplies)
			v.out[id] = replies
			v.mu.Unlock()
			all.Go(func() { v.write(conn, replies) })
			all.Go(func() { v.read(ctx, conn, id) })
		}
	})
	return func() {
		l.Close()
		cancel()
		v.mu.Lock()
		for id, ch := range v.out { // any order: all go
			delete(v.out, id)
			close(ch)
		}
		v.mu.Unlock()
		all.Wait()
	}, nil
}

// write sends replies until there are no more to come.
func (v *visitors) write(conn net.Conn, replies <-chan []byte) {
	defer conn.Close()
	for reply := range replies {
		conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := conn.Write(reply); err != nil {
			break
		}
	}
}

// read hands lines to the agent, and at last the end of the visit.
func (v *visitors) read(ctx context.Context, conn net.Conn, id uint64) {
	in := bufio.NewReaderSize(conn, maxScriptLine)
	for {
		conn.SetReadDeadline(time.Now().Add(visitorTimeout))
		line, err := in.ReadSlice('\n')
		if err != nil {
			break // gone, or a line without an end
		}
		select {
		case v.to <- Input{Kind: InLine, ID: id, Line: append([]byte{}, line...)}:
		case <-ctx.Done():
			return
		}
	}
	select {
	case v.to <- Input{Kind: InLine, ID: id}:
	case <-ctx.Done():
	}
	v.answer(id, nil)
}
