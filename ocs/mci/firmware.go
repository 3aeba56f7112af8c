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

// ErrImage is firmware that a module does not come back with.
var ErrImage = errors.New("module does not run the image")

// A module that was reset has bootsWithin to answer; before that it has runsAfter to say
// that it was asked. chosen: SONiC's host waits 15 s.
const (
	runsAfter   = 200 * time.Millisecond
	bootsWithin = 20 * time.Second
	bootsAgain  = 100 * time.Millisecond
)

// maxRuns bounds what is tried. chosen: back, to the new image, and its commit.
const maxRuns = 3

// upgrade is the way of one dark module to a firmware version, from wherever an earlier
// life left it:
//
//	ask --> [back to the committed image] --> download --> run --> bring up --> commit
//
// What runs is not written to, and what does not bring the module up is never committed:
// without power it starts with the image that it had.
type upgrade struct {
	m        *Module
	want     cmis.Version
	image    []byte
	features cmis.FirmwareFeatures
	at       int // bytes written behind the head
	tries    int // of the block under way
	runs     int // of images, and commits
	ran      bool
	wait     time.Duration // for the module to be back
	then     func(now time.Duration, err error)
	failed   error
}

// Upgrade begins it; then follows with the end: hal.ErrUnsupported of a module that takes
// no firmware.
func (s *Set) Upgrade(module int, want cmis.Version, image []byte, then func(now time.Duration, err error)) {
	u := &upgrade{m: &s.Modules[module], want: want, image: image, then: then}
	u.m.command(cmis.CommandFirmwareFeatures, nil, 0, 0, func(now time.Duration, reply []byte, err error) {
		if err == nil {
			u.features, err = cmis.ParseFirmwareFeatures(reply)
		}
		if err != nil {
			u.then(now, fmt.Errorf("%w: %w", hal.ErrUnsupported, err))
			return
		}
		u.look()
	})
}

// look asks what the module holds and does what comes next.
func (u *upgrade) look() {
	u.m.command(cmis.CommandFirmwareInfo, nil, 0, 0, func(now time.Duration, reply []byte, err error) {
		var f cmis.Firmware
		if err == nil {
			f, err = cmis.ParseFirmware(reply)
		}
		switch {
		case err != nil && now < u.wait: // it starts
			u.m.Forget()
			u.m.Wait(now+bootsAgain, func(time.Duration) { u.look() })
		case err != nil:
			u.end(now, err)
		case f.Running < 0:
			u.end(now, fmt.Errorf("%w: no image runs", ErrState))
		default:
			u.next(now, f)
		}
	})
}

func (u *upgrade) next(now time.Duration, f cmis.Firmware) {
	other := f.Running ^ 1
	switch is := f.Version[f.Running]; {
	case u.failed != nil:
		u.then(now, u.failed)
	case is == u.want && f.Committed == f.Running:
		u.then(now, nil)
	case u.ran && is != u.want, u.runs == maxRuns: // back to the committed image
		u.failed = fmt.Errorf("%w: it runs %v, was to run %v; bank %d is committed", ErrImage, is, u.want, f.Committed)
		if f.Committed == f.Running {
			u.then(now, u.failed)
			return
		}
		u.run()
	case is == u.want:
		u.runs++
		s := u.m.set
		s.up, s.down, s.left = u.up, u.down, 1
		u.m.staged, u.m.tries = false, 0
		u.m.bringUp()
	case f.Committed != f.Running: // an earlier life's, which is not what is wanted any more
		u.run()
	case f.Valid[other] && f.Version[other] == u.want:
		u.ran = true
		u.run()
	default:
		u.start()
	}
}

// start begins a download; what an earlier life began is given up.
func (u *upgrade) start() {
	n := min(u.features.Head, len(u.image))
	in := binary.BigEndian.AppendUint32(nil, uint32(len(u.image)))
	in = append(append(in, 0, 0, 0, 0), u.image[:n]...)
	u.at, u.image = 0, u.image[n:]
	u.m.command(cmis.CommandFirmwareStart, in, 0, u.features.Start, u.block)
}

// block sends the next one.
func (u *upgrade) block(now time.Duration, _ []byte, err error) {
	switch {
	case err != nil:
		u.abort(now, err)
		return
	case u.at == len(u.image):
		u.m.command(cmis.CommandFirmwareComplete, nil, 0, u.features.Complete, u.complete)
		return
	}
	address := binary.BigEndian.AppendUint32(nil, uint32(u.at))
	if !u.features.EPL {
		part := u.part(cmis.FirmwareLPLBytes)
		u.m.command(cmis.CommandFirmwareWriteLPL, append(address, part...), 0, u.features.Write, u.block)
		return
	}
	part := u.part(min(u.features.Block, cmis.EPLPages*128))
	var queue []cmis.Request
	for i := 0; i < len(part); i += 128 {
		queue = append(queue, cmis.Request{Write: true, Page: uint8(cmis.PageEPL + i/128), Offset: 128, Data: part[i:min(i+128, len(part))]})
	}
	u.m.Ask(hal.ClassHousekeeping, func(now time.Duration, err error) {
		if u.tries++; err != nil && u.tries < work.MaxTries {
			u.m.Forget()
			u.at -= len(part)
			u.block(now, nil, nil)
			return
		}
		if err != nil {
			u.abort(now, err)
			return
		}
		u.tries = 0
		u.m.command(cmis.CommandFirmwareWriteEPL, address, len(part), u.features.Write, u.block)
	}, queue...)
}

func (u *upgrade) part(most int) []byte {
	part := u.image[u.at:min(u.at+most, len(u.image))]
	u.at += len(part)
	return part
}

// complete runs what is whole; whether it is, the module says.
func (u *upgrade) complete(now time.Duration, _ []byte, err error) {
	if err != nil {
		u.abort(now, err)
		return
	}
	u.ran = true
	u.run()
}

// abort gives a download up.
func (u *upgrade) abort(now time.Duration, err error) {
	u.m.command(cmis.CommandFirmwareAbort, nil, 0, u.features.Start, func(now time.Duration, _ []byte, _ error) { u.then(now, err) })
}

// run lets the other image run. Asked twice it would undo itself: what came of it the
// module tells.
func (u *upgrade) run() {
	u.runs++
	u.m.port.Cache.Clear()
	in := []byte{0, cmis.RunOther, 0, 0}
	binary.BigEndian.PutUint16(in[2:], uint16(runsAfter/time.Millisecond))
	u.m.command(cmis.CommandFirmwareRun, in, 0, 0, func(now time.Duration, _ []byte, err error) {
		if errors.Is(err, ErrRefused) {
			u.end(now, err)
			return
		}
		u.wait = now + bootsWithin
		u.m.Wait(now+2*runsAfter, func(time.Duration) {
			u.m.Forget()
			u.look()
		})
	})
}

// up commits what brought the module up.
func (u *upgrade) up(now time.Duration) {
	u.m.command(cmis.CommandFirmwareCommit, nil, 0, 0, func(now time.Duration, _ []byte, err error) {
		if err != nil {
			u.end(now, err)
			return
		}
		u.look()
	})
}

// down goes back to the image that did.
func (u *upgrade) down(_ time.Duration, _ int, err error) {
	u.failed = fmt.Errorf("%w: it does not come up with it: %w", ErrImage, err)
	u.run()
}

func (u *upgrade) end(now time.Duration, err error) {
	if u.failed != nil {
		err = u.failed
	}
	u.then(now, err)
}
