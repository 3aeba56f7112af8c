package cmis

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// Offsets on page 9Fh, the command data block.
const (
	CDBCommand      = 128
	CDBEPLLength    = 130
	CDBLPLLength    = 132
	CDBCheck        = 133
	CDBReplyLength  = 134
	CDBReplyCheck   = 135
	CDBPayload      = 136
	CDBPayloadBytes = 120
)

// Commands that every module with a CDB has.
const (
	CommandQueryStatus = 0x0000
	CommandFeatures    = 0x0040
)

// Bits and codes of the CDB status, byte 37.
const (
	CDBBusy         = 1 << 7
	CDBFailed       = 1 << 6
	CDBSuccess      = 0x01
	CDBCapturing    = CDBBusy | 0x01
	CDBChecking     = CDBBusy | 0x02
	CDBExecuting    = CDBBusy | 0x03
	CDBUnknown      = CDBFailed | 0x01
	CDBBadParameter = CDBFailed | 0x02
	CDBBadCheckCode = CDBFailed | 0x05
)

// Why a command fails.
var (
	ErrCDBFailed  = errors.New("command failed")
	ErrCDBTimeout = errors.New("command not done within its advertised time")
	ErrCDBReply   = errors.New("reply damaged")
)

// CheckReading is one of two ways to read the specification's check code.
type CheckReading uint8

const (
	OnesComplement CheckReading = iota // inverted sum: public host implementations
	TwosComplement                     // negated sum: so an example of CMIS 5.0 can be read
)

// CheckCode is the check code over the bytes of a command or reply. The two
// readings differ by one; a CDB takes the first, and on a module that refuses it
// for its check code the second, and keeps what worked.
func CheckCode(b []byte, as CheckReading) byte {
	sum := byte(0)
	for _, v := range b {
		sum += v
	}
	if as == TwosComplement {
		return -sum
	}
	return ^sum
}

// CDB runs commands through a port, one at a time, by requests: Next gives
// one, Done takes its result.
type CDB struct {
	Reading CheckReading
	// Patience is how long a command may take: Limits.CDB.
	Patience time.Duration
	// Bytes of one write, Advert.CDBBytes.
	Bytes int

	id      uint16
	payload []byte
	stage   cdbStage
	retried bool
	limit   time.Duration
	due     time.Duration
	header  [8]byte
	status  [1]byte
	reply   [2]byte
	data    [CDBPayloadBytes]byte
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
func (c *CDB) Start(id uint16, payload []byte) error {
	if len(payload) > CDBPayloadBytes {
		return fmt.Errorf("%w: payload of %d bytes: at most %d", ErrRange, len(payload), CDBPayloadBytes)
	}
	c.id, c.payload, c.retried, c.err = id, payload, false, nil
	c.begin()
	return nil
}

func (c *CDB) begin() {
	c.stage, c.due = cdbHeader, 0
	if len(c.payload) > 0 {
		c.stage = cdbPayload
	}
	h := c.header[:]
	binary.BigEndian.PutUint16(h, c.id)
	h[2], h[3], h[4], h[5], h[6], h[7] = 0, 0, byte(len(c.payload)), 0, 0, 0
	sum := append(append([]byte(nil), h...), c.payload...)
	h[5] = CheckCode(sum, c.Reading)
}

// Busy reports whether a command is under way.
func (c *CDB) Busy() bool { return c.stage != cdbIdle }

// Due is when Next may be asked.
func (c *CDB) Due() time.Duration { return c.due }

// Next is the request to run now. The command id is written last and alone: it
// starts the command.
func (c *CDB) Next() Request {
	switch c.stage {
	case cdbPayload:
		return Request{Write: true, Page: PageCDB, Offset: CDBPayload, Data: c.payload}
	case cdbHeader:
		return Request{Write: true, Page: PageCDB, Offset: CDBEPLLength, Data: c.header[2:]}
	case cdbTrigger:
		return Request{Write: true, Page: PageCDB, Offset: CDBCommand, Data: c.header[:2], Patience: c.Patience}
	case cdbPoll:
		return Request{Offset: CDBStatus1, Data: c.status[:]}
	case cdbReplyHead:
		return Request{Page: PageCDB, Offset: CDBReplyLength, Data: c.reply[:]}
	}
	return Request{Page: PageCDB, Offset: CDBPayload, Data: c.data[:c.reply[0]]}
}

// Done takes the result of the request.
func (c *CDB) Done(now time.Duration, err error) {
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
			c.end(fmt.Errorf("%w: %d bytes", ErrCDBReply, n))
		case n == 0:
			c.end(nil)
		default:
			c.stage = cdbReplyData
		}
	case cdbReplyData:
		if got, want := c.reply[1], CheckCode(c.data[:c.reply[0]], c.Reading); got != want {
			c.end(fmt.Errorf("%w: check code %02x, want %02x", ErrCDBReply, got, want))
			return
		}
		c.end(nil)
	}
}

func (c *CDB) polled(now time.Duration) {
	s := c.status[0]
	switch {
	case s&CDBBusy != 0 && now >= c.limit:
		c.end(fmt.Errorf("%w: %v, status %02x", ErrCDBTimeout, c.Patience, s))
	case s&CDBBusy != 0:
		c.due = min(now+cdbPollEvery, c.limit)
	case s == CDBBadCheckCode && !c.retried:
		c.retried = true
		c.Reading ^= 1
		c.begin()
	case s&CDBFailed != 0:
		c.end(fmt.Errorf("%w: command %04xh, status %02x", ErrCDBFailed, c.id, s))
	default:
		c.stage = cdbReplyHead
	}
}

func (c *CDB) end(err error) { c.stage, c.err = cdbIdle, err }

// Result is the reply's payload; it is valid until the next Start.
func (c *CDB) Result() ([]byte, error) {
	if c.err != nil {
		return nil, c.err
	}
	return c.data[:c.reply[0]], nil
}

// ParseCDBCommand reads a command as a module does: the 8 bytes of the header
// and the payload behind it.
func ParseCDBCommand(b []byte) (id uint16, payload []byte, reading CheckReading, err error) {
	if len(b) < 8 {
		return 0, nil, 0, fmt.Errorf("cmis: command of %d bytes: %w", len(b), ErrShort)
	}
	n := int(b[4])
	if n > CDBPayloadBytes || len(b) < 8+n {
		return 0, nil, 0, fmt.Errorf("cmis: command with a payload of %d bytes in %d: %w", n, len(b), ErrShort)
	}
	sum := append([]byte(nil), b[:8+n]...)
	sum[5], sum[6], sum[7] = 0, 0, 0
	for _, as := range []CheckReading{OnesComplement, TwosComplement} {
		if CheckCode(sum, as) == b[5] {
			return binary.BigEndian.Uint16(b), sum[8:], as, nil
		}
	}
	return 0, nil, 0, fmt.Errorf("cmis: command %04xh: check code %02x: %w", binary.BigEndian.Uint16(b), b[5], ErrChecksum)
}
