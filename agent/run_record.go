package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"time"

	busrec "ringlight/hal/record"
	"ringlight/proto"
)

const verbRecord = "record"

// stream writes the recording to a connection until it ends, the agent does,
// or the listener is too slow.
func (d *desk) stream(conn net.Conn, over chan struct{}) error {
	if d.record == nil || d.record.rec == nil {
		return &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: "the recorder is off"}
	}
	t := &tap{blocks: make(chan []byte, maxTapBlocks), gone: make(chan struct{})}
	select {
	case d.record.tapped <- t:
	default:
		return &proto.Error{Code: proto.Busy, Limit: fmt.Sprintf("%d listeners at once", cap(d.record.tapped))}
	}
	defer func() { // the agent forgets it when it next looks
		close(t.gone)
		select {
		case d.record.tapped <- t:
		default:
		}
	}()
	conn.SetDeadline(time.Time{})
	hung := make(chan struct{})
	go func() { // a listener says nothing more; when it goes, the read ends
		defer close(hung)
		_, _ = io.Copy(io.Discard, conn)
	}()
	for {
		select {
		case b, ok := <-t.blocks:
			if !ok {
				return nil
			}
			conn.SetWriteDeadline(time.Now().Add(askTimeout))
			if _, err := conn.Write(b); err != nil {
				return nil
			}
		case <-hung:
			return nil
		case <-over:
			return nil
		}
	}
}

// RecordSocket writes the recording of the agent that listens at path to w,
// from the oldest that it still has, until ctx ends or the agent does. said is
// told the bytes so far, now and then; it may be nil.
func RecordSocket(ctx context.Context, path string, w io.Writer, said func(bytes int64)) error {
	conn, err := net.Dial("unix", path)
	if err != nil {
		return fmt.Errorf("%w at %s: %w", ErrNoAgent, path, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Now()) })
	defer stop()
	raw, err := json.Marshal(Question{Verb: verbRecord})
	if err != nil {
		return err
	}
	if _, err := conn.Write(append(raw, '\n')); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	total := int64(0)
	for {
		n, err := conn.Read(buf)
		if n > 0 && total == 0 && !bytes.HasPrefix(buf[:n], []byte(busrec.Magic)) {
			var ans Answer
			if jerr := json.Unmarshal(buf[:n], &ans); jerr == nil && ans.Err != nil {
				return ans.Err
			}
			return fmt.Errorf("agent at %s: %w", path, busrec.ErrFormat)
		}
		if _, werr := w.Write(buf[:n]); werr != nil {
			return werr
		}
		if total += int64(n); said != nil {
			said(total)
		}
		switch {
		case err == nil:
		case ctx.Err() != nil, err == io.EOF:
			return nil
		default:
			return err
		}
	}
}
