package hostile

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"ringlight/proto"
)

// Attacks below the protocol: MQTT itself, descriptors, the agent's socket.

// packet is one MQTT packet of less than 2 MiB.
func packet(header byte, body ...[]byte) []byte {
	rest := bytes.Join(body, nil)
	b := []byte{header}
	n := len(rest)
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(append(b, byte(n)), rest...)
}

func text(s string) []byte { return append([]byte{byte(len(s) >> 8), byte(len(s))}, s...) }

func connect(id string) []byte {
	return packet(0x10, text("MQTT"), []byte{4, 2, 0, 60}, text(id))
}

// mutantsOfMQTT sends packets of every kind, some of them broken, until the
// broker ends the connection, and comes back.
func mutantsOfMQTT(ctx context.Context, s *stranger) (int, error) {
	topic := s.topics.Reported(proto.NodeID(s.cfg.Nodes - 1))
	genuine := [][]byte{
		packet(0x30, text(topic), []byte("payload")), packet(0x32, text(topic), []byte{0, 7, 0xa0}), packet(0x34, text(topic), []byte{0, 8, 0xa0}),
		packet(0x62, []byte{0, 8}), packet(0x40, []byte{0, 9}), packet(0x50, []byte{0, 9}), packet(0x70, []byte{0, 9}),
		packet(0x82, []byte{0, 1}, text("ocs/v1/+/#"), []byte{1}), packet(0xa2, []byte{0, 2}, text("ocs/v1/+/#")),
		packet(0xc0), packet(0xf0, []byte{0, 0}), connect("again"),
		packet(0x10, text("MQTT"), []byte{5, 0xc6, 0, 60, 5, 0x11, 0xff, 0xff, 0xff, 0xff}, text("v5"), []byte{5, 0x18, 0xff, 0xff, 0xff, 0xff}, text(topic), text("will")),
	}
	const batch = 200
	sent := 0
	for total := s.scaled(2_200_000); sent < total && ctx.Err() == nil; {
		var out bytes.Buffer
		if s.random.Below(8) > 0 {
			out.Write(connect(fmt.Sprintf("mutant-%d", s.random.Below(100))))
		}
		for range batch {
			b := genuine[s.random.Below(len(genuine))]
			if s.random.Below(4) == 0 {
				b = s.mutate(b)
			}
			out.Write(b)
		}
		c, err := s.dialRaw()
		if err != nil {
			return sent, fmt.Errorf("hostile: the broker is gone: %w", err)
		}
		c.SetDeadline(time.Now().Add(time.Second))
		c.Write(out.Bytes()) // until the broker has had enough of it
		c.Close()
		sent += batch
	}
	return sent, nil
}

// crowd is connections that stay.
type crowd struct {
	open    []net.Conn
	refused int
}

// join is one more, which says something, or which was not let in.
func (all *crowd) join(c net.Conn, err error, say []byte) {
	if err != nil {
		all.refused++
		return
	}
	c.SetWriteDeadline(time.Now().Add(time.Second))
	c.Write(say)
	all.open = append(all.open, c)
}

func (all *crowd) tried() int { return len(all.open) + all.refused }

func (all *crowd) leave() {
	for _, c := range all.open {
		c.Close()
	}
}

// descriptors takes every connection that the broker can have, in earnest.
func descriptors(ctx context.Context, s *stranger) (int, error) {
	var all crowd
	defer all.leave()
	for i := range s.scaled(900) {
		c, err := s.dialRaw()
		all.join(c, err, connect(fmt.Sprintf("taken-%d", i)))
	}
	pause(ctx, 15*time.Second)
	return all.tried(), nil
}

func halfConnects(ctx context.Context, s *stranger) (int, error) {
	var all crowd
	defer all.leave()
	for range s.scaled(900) {
		c, err := s.dialRaw()
		all.join(c, err, []byte{0x10, 0x20, 0x00, 0x04})
	}
	pause(ctx, 15*time.Second)
	still := 0
	for _, c := range all.open {
		c.SetReadDeadline(time.Now().Add(time.Millisecond))
		if _, err := c.Read(make([]byte, 1)); err != nil {
			if t, ok := err.(net.Error); ok && t.Timeout() {
				still++
			}
		}
	}
	if still > 0 {
		return len(all.open), fmt.Errorf("%w: %d of %d half connections are still open after 15 s", errFell, still, len(all.open))
	}
	return all.tried(), nil
}

func neverRead(ctx context.Context, s *stranger) (int, error) {
	filter := "ocs/v1/" + s.cfg.Fabric + "/#"
	var all crowd
	defer all.leave()
	for i := range 20 {
		c, err := s.dialRaw()
		if err != nil {
			return len(all.open), err
		}
		c.(*net.TCPConn).SetReadBuffer(4096)
		all.join(c, nil, append(connect(fmt.Sprintf("deaf-%d", i)), packet(0x82, []byte{0, 1}, text(filter), []byte{0})...))
	}
	w, err := s.speaker()
	if err != nil {
		return len(all.open), err
	}
	defer w.Close()
	long := bytes.Repeat([]byte{0xa0}, 60_000)
	for range s.scaled(3000) {
		w.say(ctx, s.topics.Health(0), long, 0, false)
	}
	pause(ctx, 5*time.Second)
	return len(all.open), nil
}

// The agent's socket: half questions, listeners that do not read, and more
// connections than it has descriptors. Meanwhile somebody asks it in earnest.

func halfQuestions(ctx context.Context, s *stranger) (int, error) {
	return s.hang(ctx, s.scaled(900), `{"verb":"host_`)
}

func deafListeners(ctx context.Context, s *stranger) (int, error) {
	return s.hang(ctx, s.scaled(900), `{"verb":"record"}`+"\n")
}

func deafAskers(ctx context.Context, s *stranger) (int, error) {
	return s.hang(ctx, s.scaled(900), `{"verb":"status"}`+"\n")
}

// hang opens connections to the agent's socket that say something and read
// nothing. The agent must answer somebody else while they hang there.
func (s *stranger) hang(ctx context.Context, count int, say string) (int, error) {
	if s.cfg.Socket == "" {
		return 0, fmt.Errorf("no -socket given, not tried")
	}
	var all crowd
	defer all.leave()
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var worst atomic.Int64
	failed := make(chan error, 1)
	go func() { failed <- s.askAgent(watching, &worst) }()
	for range count {
		c, err := net.DialTimeout("unix", s.cfg.Socket, time.Second)
		all.join(c, err, []byte(say))
	}
	pause(ctx, 15*time.Second)
	stop()
	if err := <-failed; err != nil {
		return len(all.open), fmt.Errorf("%w: %w", errFell, err)
	}
	return all.tried(), fmt.Errorf("the agent answered within %d ms", worst.Load())
}

// askAgent asks for the status on and on. An agent that is full says so by
// closing the connection; within answerPatience it must answer.
func (s *stranger) askAgent(ctx context.Context, worst *atomic.Int64) error {
	for ctx.Err() == nil {
		begin := time.Now()
		for {
			err := s.askOnce()
			if err == nil || ctx.Err() != nil {
				break
			}
			if time.Since(begin) > answerPatience {
				return fmt.Errorf("the agent does not answer: %w", err)
			}
			pause(ctx, 20*time.Millisecond)
		}
		worst.Store(max(worst.Load(), time.Since(begin).Milliseconds()))
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

func (s *stranger) askOnce() error {
	c, err := net.DialTimeout("unix", s.cfg.Socket, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(answerPatience))
	if _, err := c.Write([]byte(`{"verb":"status"}` + "\n")); err != nil {
		return err
	}
	_, err = c.Read(make([]byte, 1))
	return err
}
