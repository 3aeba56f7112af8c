package mci

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"ringlight/hal"
	"ringlight/hal/cmis"
	"ringlight/ocs/work"
)

// ErrRefused is a command that a module does not carry out; the text has its status.
var ErrRefused = errors.New("module refuses the command")

// command is one of a module's command data block.
type command struct {
	m        *Module
	id       uint16
	payload  []byte
	header   [8]byte
	patience time.Duration
	limit    time.Duration // of its execution
	tries    int
	reply    [2 + cmis.CDBPayloadBytes]byte // length and check code before it
	then     func(now time.Duration, reply []byte, err error)
}

// command has a module carry out a command, with so many bytes of extended payload that
// are there already; then follows with the reply, or with why there is none. What the bus
// disturbs is asked again.
func (m *Module) command(id uint16, payload []byte, extended int, takes time.Duration, then func(now time.Duration, reply []byte, err error)) {
	c := &command{m: m, id: id, payload: payload, patience: max(takes, m.Advert.CDB) + cmis.DefaultLimits().CDB, then: then}
	binary.BigEndian.PutUint16(c.header[:], id)
	binary.BigEndian.PutUint16(c.header[2:], uint16(extended))
	c.header[4] = byte(len(payload))
	if id == cmis.CommandFirmwareRun {
		c.tries = work.MaxTries // twice is not the same
	}
	c.header[5] = cmis.CheckCode(append(c.header[:5:5], payload...), cmis.OnesComplement)
	c.send()
}

func (c *command) send() {
	queue := make([]cmis.Request, 0, 3)
	if len(c.payload) > 0 {
		queue = append(queue, cmis.Request{Write: true, Page: cmis.PageCDB, Offset: cmis.CDBPayload, Data: c.payload})
	}
	c.ask(func(now time.Duration) error {
		c.limit = now + c.patience
		c.poll()
		return nil
	}, append(queue, cmis.Request{Write: true, Page: cmis.PageCDB, Offset: cmis.CDBEPLLength, Data: c.header[2:]},
		cmis.Request{Write: true, Page: cmis.PageCDB, Offset: cmis.CDBCommand, Data: c.header[:2], Patience: c.patience})...)
}

// ask is a part of it.
func (c *command) ask(then func(now time.Duration) error, queue ...cmis.Request) {
	c.m.Ask(hal.ClassHousekeeping, func(now time.Duration, err error) {
		if err == nil {
			err = then(now)
		}
		switch {
		case err == nil:
		case errors.Is(err, ErrRefused):
			c.then(now, nil, err)
		default:
			if c.tries++; c.tries < work.MaxTries {
				c.m.Forget()
				c.send()
				return
			}
			c.then(now, nil, err)
		}
	}, queue...)
}

func (c *command) poll() {
	c.ask(func(now time.Duration) error {
		switch s := c.m.head[0]; {
		case s&cmis.CDBBusy != 0:
			if now >= c.limit {
				return fmt.Errorf("%w: command %04xh is not done within %v", ErrState, c.id, c.patience)
			}
			c.m.Wait(now+askAgain, func(time.Duration) { c.poll() })
		case s != cmis.CDBSuccess:
			return fmt.Errorf("%w: command %04xh: status %02xh", ErrRefused, c.id, s)
		default:
			c.answer()
		}
		return nil
	}, cmis.Request{Offset: cmis.CDBStatus1, Data: c.m.head[:1]})
}

func (c *command) answer() {
	c.ask(func(now time.Duration) error {
		n := int(c.reply[0])
		if n > cmis.CDBPayloadBytes {
			return fmt.Errorf("%w: reply of %d bytes", ErrState, n)
		}
		reply := c.reply[2 : 2+n]
		if c.reply[1] != cmis.CheckCode(reply, cmis.OnesComplement) {
			return fmt.Errorf("%w: reply damaged", ErrState)
		}
		c.then(now, reply, nil)
		return nil
	}, cmis.Request{Page: cmis.PageCDB, Offset: cmis.CDBReplyLength, Data: c.reply[:]})
}
