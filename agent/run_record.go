package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"time"

	busrec "ringlight/hal/record"
	"ringlight/proto"
	"ringlight/proto/limit"
)

const verbRecord = "record"

// recording is the recorder of a running agent, and those who listen to it.
// Only the agent's own goroutine uses it and sends to the listeners.
type recording struct {
	*Recorder
	log       *slog.Logger
	whole     func(block []byte) error // RunConfig.Record; nil: nobody
	flushed   time.Duration
	listeners map[chan []byte]bool // closed when the listener is too slow
}

const (
	// maxListenerBlocks is how far a listener may lag behind. chosen: a
	// megabyte.
	maxListenerBlocks = 256
	// maxListeners at once. chosen: a person, a script, and one that was left
	// behind; each is given a copy of what is kept.
	maxListeners = 4
	// flushEvery is how long a listener waits for a block that does not fill.
	flushEvery = time.Second
)

// newRecording is nil where nothing is to be recorded.
func newRecording(cfg *RunConfig, journal *Journal, log *slog.Logger) (*recording, error) {
	memory := cfg.RecordBytes
	switch {
	case memory < 0 && cfg.Record == nil:
		return nil, nil
	case memory < 0:
		memory = 0 // all of it goes to Record, nothing is kept
	case memory == 0:
		memory = busrec.DefaultRing
	}
	rec, err := newRecorder(&cfg.Agent, journal, memory)
	if err != nil {
		return nil, err
	}
	p := &recording{Recorder: rec, log: log, whole: cfg.Record, listeners: map[chan []byte]bool{}}
	rec.out = p.pour
	if p.whole != nil {
		return p, p.whole(rec.head)
	}
	return p, nil
}

// pour gives a block to all who listen.
func (p *recording) pour(block []byte) {
	if p.whole != nil {
		if err := p.whole(block); err != nil {
			p.log.Error("recording ends", "error", err)
			p.whole = nil
		}
	}
	for l := range p.listeners { // any order: each has its own channel
		select {
		case l <- block:
		default:
			p.log.Warn("a listener to the recording is too slow and is let go")
			close(l)
			delete(p.listeners, l)
		}
	}
}

// flush gives listeners what has been recorded, now and then.
func (p *recording) flush(now time.Duration) {
	if now-p.flushed >= flushEvery && (len(p.listeners) > 0 || p.whole != nil) {
		p.flushed = now
		p.Flush()
	}
}

// join adds a listener, who first gets what is kept. One beyond maxListeners is
// closed at once.
func (p *recording) join(l chan []byte) {
	if len(p.listeners) >= maxListeners {
		close(l)
		return
	}
	l <- bytes.Join(p.So(), nil)
	p.listeners[l] = true
}

// stream writes the recording to a connection until it ends, the agent does,
// or the listener is too slow.
func (r *runner) stream(ctx context.Context, conn *limit.Conn) error {
	if r.recording == nil {
		return &proto.Error{Code: proto.Unsupported, Field: "verb", Reason: "the recorder is off"}
	}
	blocks := make(chan []byte, maxListenerBlocks)
	r.call(ctx, func() { r.recording.join(blocks) })
	defer r.call(ctx, func() { delete(r.recording.listeners, blocks) })
	hung := make(chan struct{})
	go func() { // a listener says nothing more; when it goes, the read ends
		defer close(hung)
		_, _ = io.Copy(io.Discard, conn)
	}()
	for begun := false; ; begun = true {
		select {
		case b, ok := <-blocks:
			if !ok && !begun {
				return &proto.Error{Code: proto.Busy, Field: "verb", Limit: fmt.Sprintf("%d listeners to the recording", maxListeners)}
			}
			if !ok {
				return nil
			}
			if _, err := conn.Write(b); err != nil {
				return nil
			}
		case <-hung:
			return nil
		case <-ctx.Done():
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
