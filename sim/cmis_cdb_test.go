package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal/cmis"
)

// A host of the command data block, for the module's side of it: it knows no more than
// the commands.

// Why a command fails.
var (
	errCDBFailed  = errors.New("command failed")
	errCDBTimeout = errors.New("command not done within its advertised time")
	errCDBReply   = errors.New("reply damaged")
)

// cdb runs commands through a port, one at a time, by requests: Next gives
// one, Done takes its result.
type cdb struct {
	Reading cmis.CheckReading
	// Patience is how long a command may take.
	Patience time.Duration

	id      uint16
	payload []byte
	stage   cdbStage
	retried bool
	limit   time.Duration
	due     time.Duration
	header  [8]byte
	status  [1]byte
	reply   [2]byte
	data    [cmis.CDBPayloadBytes]byte
	err     error
}

type cdbStage uint8

const (
	cdbIdle cdbStage = iota
	cdbPayload
	cdbHeader
	cdbTrigger
	cdbPoll
	cdbReplyHead
	cdbReplyData
)

// cdbPollEvery is the time between two looks at the status. chosen: commands
// take milliseconds.
const cdbPollEvery = 5 * time.Millisecond

// Start begins a command.
func (c *cdb) Start(id uint16, payload []byte) error {
	if len(payload) > cmis.CDBPayloadBytes {
		return fmt.Errorf("%w: payload of %d bytes: at most %d", cmis.ErrRange, len(payload), cmis.CDBPayloadBytes)
	}
	c.id, c.payload, c.retried, c.err = id, payload, false, nil
	c.begin()
	return nil
}

func (c *cdb) begin() {
	c.stage, c.due = cdbHeader, 0
	if len(c.payload) > 0 {
		c.stage = cdbPayload
	}
	h := c.header[:]
	binary.BigEndian.PutUint16(h, c.id)
	h[2], h[3], h[4], h[5], h[6], h[7] = 0, 0, byte(len(c.payload)), 0, 0, 0
	sum := append(append([]byte(nil), h...), c.payload...)
	h[5] = cmis.CheckCode(sum, c.Reading)
}

// Busy reports whether a command is under way.
func (c *cdb) Busy() bool { return c.stage != cdbIdle }

// Due is when Next may be asked.
func (c *cdb) Due() time.Duration { return c.due }

// Next is the request to run now. The command id is written last and alone: it
// starts the command.
func (c *cdb) Next() cmis.Request {
	switch c.stage {
	case cdbPayload:
		return cmis.Request{Write: true, Page: cmis.PageCDB, Offset: cmis.CDBPayload, Data: c.payload}
	case cdbHeader:
		return cmis.Request{Write: true, Page: cmis.PageCDB, Offset: cmis.CDBEPLLength, Data: c.header[2:]}
	case cdbTrigger:
		return cmis.Request{Write: true, Page: cmis.PageCDB, Offset: cmis.CDBCommand, Data: c.header[:2], Patience: c.Patience}
	case cdbPoll:
		return cmis.Request{Offset: cmis.CDBStatus1, Data: c.status[:]}
	case cdbReplyHead:
		return cmis.Request{Page: cmis.PageCDB, Offset: cmis.CDBReplyLength, Data: c.reply[:]}
	}
	return cmis.Request{Page: cmis.PageCDB, Offset: cmis.CDBPayload, Data: c.data[:c.reply[0]]}
}

// Done takes the result of the request.
func (c *cdb) Done(now time.Duration, err error) {
	if err != nil {
		c.end(err)
		return
	}
	c.due = now
	switch c.stage {
	case cdbPayload, cdbHeader:
		c.stage++
	case cdbTrigger:
		c.stage, c.limit = cdbPoll, now+c.Patience
	case cdbPoll:
		c.polled(now)
	case cdbReplyHead:
		switch n := c.reply[0]; {
		case int(n) > len(c.data):
			c.end(fmt.Errorf("%w: %d bytes", errCDBReply, n))
		case n == 0:
			c.end(nil)
		default:
			c.stage = cdbReplyData
		}
	case cdbReplyData:
		if got, want := c.reply[1], cmis.CheckCode(c.data[:c.reply[0]], c.Reading); got != want {
			c.end(fmt.Errorf("%w: check code %02x, want %02x", errCDBReply, got, want))
			return
		}
		c.end(nil)
	}
}

func (c *cdb) polled(now time.Duration) {
	s := c.status[0]
	switch {
	case s&cmis.CDBBusy != 0 && now >= c.limit:
		c.end(fmt.Errorf("%w: %v, status %02x", errCDBTimeout, c.Patience, s))
	case s&cmis.CDBBusy != 0:
		c.due = min(now+cdbPollEvery, c.limit)
	case s == cmis.CDBBadCheckCode && !c.retried:
		c.retried = true
		c.Reading ^= 1
		c.begin()
	case s&cmis.CDBFailed != 0:
		c.end(fmt.Errorf("%w: command %04xh, status %02x", errCDBFailed, c.id, s))
	default:
		c.stage = cdbReplyHead
	}
}

func (c *cdb) end(err error) { c.stage, c.err = cdbIdle, err }

// Result is the reply's payload; it is valid until the next Start.
func (c *cdb) Result() ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.data[:c.reply[0]], nil
}
