package agent

import (
	"bufio"
	"context"
	"log/slog"
	"net"
	"sync"
	"time"

	"ringlight/proto/limit"
)

// Limits of a script's connection. chosen: the longest line of hal/scpi, a
// script that waits for a person, and a page of answers that nobody reads.
const (
	maxScriptLine = 16 << 10
	scriptTimeout = time.Hour
	maxReplies    = 64
)

// scriptLimits: a person at a terminal takes a while until the first line.
var scriptLimits = limit.Connections{Max: 32, First: time.Minute, Write: 10 * time.Second}

// scriptServer takes TCP connections of scripts to a switch.
type scriptServer struct {
	tell func(context.Context, Input) // to the agent
	log  *slog.Logger
	// requests are those of tools that speak RESTCONF.
	requests *Requests

	mu   sync.Mutex
	last uint64
	out  map[uint64]chan []byte // replies, by connection
}

// answer hands a reply to its script; one that does not read, or is not wanted
// (nil), is sent away.
func (v *scriptServer) answer(id uint64, reply []byte) {
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

// listen serves connections at address until stop is called.
func (v *scriptServer) listen(ctx context.Context, address string, serve func(context.Context, *limit.Conn)) (stop func(), err error) {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	return accept(ctx, limit.Listen(l, scriptLimits, v.log), serve), nil
}

// open gives a connection a number, and where its replies come.
func (v *scriptServer) open() (id uint64, replies chan []byte) {
	replies = make(chan []byte, maxReplies)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.last++
	v.out[v.last] = replies
	return v.last, replies
}

// serve hands lines to the agent, and at last the end of the script; replies
// go out meanwhile.
func (v *scriptServer) serve(ctx context.Context, conn *limit.Conn) {
	id, replies := v.open()
	var writer sync.WaitGroup
	writer.Go(func() {
		defer conn.Close()
		for reply := range replies {
			if _, err := conn.Write(reply); err != nil {
				break
			}
		}
	})
	in := bufio.NewReaderSize(conn, maxScriptLine)
	for idle := time.AfterFunc(scriptTimeout, func() { conn.Close() }); ; idle.Reset(scriptTimeout) {
		line, err := in.ReadSlice('\n')
		if err != nil {
			idle.Stop()
			break // gone, or a line without an end
		}
		conn.Admit()
		if ctx.Err() != nil { // admitted, it has lost the deadline that ctx gave it
			idle.Stop()
			break
		}
		v.tell(ctx, Input{Kind: InLine, ID: id, Line: append([]byte{}, line...)})
	}
	v.tell(ctx, Input{Kind: InLine, ID: id})
	v.answer(id, nil)
	writer.Wait()
}
