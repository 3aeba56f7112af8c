package linux

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"ringlight/hal"
)

// Times of a text line. chosen: a box on the next switch answers a connect in
// milliseconds, and its slowest change in half a second.
const (
	dialTimeout = 2 * time.Second
	textTimeout = 10 * time.Second // of one transfer, where its bus names none
)

// textLine is a TCP connection to a box. It is opened by the first transfer and
// again by the first after an error, so that nothing that was sent before is
// ever taken for the answer to what is sent after.
type textLine struct {
	address string
	timeout time.Duration
	dial    func(time.Duration) (hal.LineConn, error)
	conn    hal.LineConn
	in      *bufio.Reader
	got     []byte
}

func openText(b *hal.Bus) (*textLine, error) {
	t := &textLine{address: b.Device, timeout: cmp.Or(b.Timeout, textTimeout), dial: b.Dial}
	if _, _, err := net.SplitHostPort(t.address); t.dial == nil && err != nil {
		return nil, fmt.Errorf("%w: %w", hal.ErrNoDevice, err)
	} else if t.dial == nil {
		t.dial = func(limit time.Duration) (hal.LineConn, error) { return net.DialTimeout("tcp", t.address, limit) }
	}
	return t, nil
}

func (t *textLine) transfer(m *hal.Msg) error {
	if len(m.W) == 0 && len(m.R) == 0 {
		return fmt.Errorf("empty message: %w", hal.ErrOutOfRange)
	}
	w := append([]byte(nil), m.W...)
	t.got = make([]byte, 0, len(m.R))
	err := t.exchange(w, m.Frame, cap(t.got))
	t.got = t.got[:cap(t.got)] // zeros behind what came
	if err != nil && t.conn != nil {
		t.conn.Close()
		t.conn = nil
	}
	return err
}

func (t *textLine) exchange(w []byte, last byte, room int) error {
	end := time.Now().Add(t.timeout)
	if last == 0 && len(w) > 0 && t.conn != nil {
		t.conn.Close()
		t.conn = nil
	}
	if t.conn == nil {
		conn, err := t.dial(min(dialTimeout, t.timeout))
		if err != nil {
			return textError(err)
		}
		t.conn, t.in = conn, bufio.NewReader(conn)
	}
	if err := t.conn.SetDeadline(end); err != nil {
		return textError(err)
	}
	if len(w) > 0 {
		if _, err := t.conn.Write(w); err != nil {
			return textError(err)
		}
	}
	for len(t.got) < room {
		b, err := t.in.ReadByte()
		if err == io.EOF && last == 0 {
			return nil
		}
		if err != nil {
			return textError(err)
		}
		if t.got = append(t.got, b); b == last || last == 0 && t.in.Buffered() == 0 {
			return nil
		}
	}
	return nil
}

// textError names the cause: a peer that is silent is not one that is gone.
func textError(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%w: %w", hal.ErrTimeout, err)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return fmt.Errorf("%w: %w", hal.ErrTimeout, err)
	}
	return fmt.Errorf("%w: %w", hal.ErrNoDevice, err)
}

func (t *textLine) read() []byte { return t.got }

func (t *textLine) close() error {
	if t.conn == nil {
		return nil
	}
	return t.conn.Close()
}
