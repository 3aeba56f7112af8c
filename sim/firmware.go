package sim

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"ringlight/hal/cmis"
)

// firmware is a controller's two banks, which stay without power, and a download, which
// does not.
type firmware struct {
	bank      [2]fwImage
	running   int // bank
	committed int
	next      int // bank from 1 that the reset under way starts, 0: the committed one
	load      *fwLoad
}

type fwImage struct {
	valid   bool
	version cmis.Version
}

// fwLoad is a download: blocks come in order, or once more.
type fwLoad struct {
	head fwHead
	sum  uint32 // of the bytes before at
	at   uint32
	last uint32 // where the block before began, and the sum before it
	was  uint32
}

// fwHead is how the file of an image begins; the module looks at it before it gives up
// what its other bank has.
type fwHead struct {
	version cmis.Version
	length  uint32 // of what follows
	sum     uint32 // its CRC-32
}

const (
	fwHeadBytes = 16
	fwBlock     = 2048
	// fwMost bounds an image. chosen.
	fwMost = 4 << 20
	// fwWatchdog is after what time an image that does not start is left for the
	// committed one. chosen.
	fwWatchdog = 2 * time.Second
)

const fwMagic = "OCSF"

// FirmwareVersion is that of an image.
type FirmwareVersion = cmis.Version

// FirmwareImage makes the file of a version for simulated modules, with so many bytes
// behind its head.
func FirmwareImage(v cmis.Version, length int) []byte {
	body := make([]byte, length)
	for i := range body {
		body[i] = byte(derive(uint64(v.Build), uint64(i)))
	}
	b := binary.BigEndian.AppendUint16(append([]byte(fwMagic), v.Major, v.Minor), v.Build)
	b = binary.BigEndian.AppendUint32(b, uint32(length))
	return append(binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(body)), body...)
}

func (f *firmware) info() (x cmis.Firmware) {
	x.Running, x.Committed = f.running, f.committed
	for i, b := range f.bank {
		x.Valid[i], x.Version[i] = b.valid, b.version
	}
	return x
}

// start is the module's start: from the bank that it was told, else the committed one.
// One that is not whole is its end.
func (f *firmware) start() (alive bool) {
	f.running = f.committed
	if f.next > 0 {
		f.running = f.next - 1
	}
	f.next, f.load = 0, nil
	return f.bank[f.running].valid
}

// version puts what runs where a host without commands looks.
func (c *mci) version() {
	run, other := c.fw.bank[c.fw.running].version, c.fw.bank[c.fw.running^1].version
	c.lower[cmis.ActiveFirmware], c.lower[cmis.ActiveFirmware+1] = run.Major, run.Minor
	c.pages[cmis.PageAdvertise][0], c.pages[cmis.PageAdvertise][1] = other.Major, other.Minor
}

// undo is what the beginning of a command takes away, should its end never come.
func (c *mci) undo() {
	p := c.pages[cmis.PageCDB]
	id, in, _, err := cmis.ParseCDBCommand(p[:])
	if err != nil || c.timing.NoFirmware {
		return
	}
	switch id {
	case cmis.CommandFirmwareStart:
		if _, status := startOf(in); status == cmis.CDBSuccess {
			c.fw.bank[c.fw.running^1].valid = false
		}
	case cmis.CommandFirmwareCopy:
		if from := c.fw.copyOf(in); from >= 0 {
			c.fw.bank[from^1].valid = false
		}
	}
}

// startOf reads a start and looks whether it may be.
func startOf(in []byte) (h fwHead, status byte) {
	if len(in) != 8+fwHeadBytes || string(in[8:12]) != fwMagic {
		return h, cmis.CDBBadValue
	}
	at := in[12:]
	h = fwHead{cmis.Version{Major: at[0], Minor: at[1], Build: binary.BigEndian.Uint16(at[2:])}, binary.BigEndian.Uint32(at[4:]), binary.BigEndian.Uint32(at[8:])}
	if h.length == 0 || h.length > fwMost || binary.BigEndian.Uint32(in) != fwHeadBytes+h.length {
		return h, cmis.CDBBadValue
	}
	return h, cmis.CDBSuccess
}

// copyOf is the bank that a copy may be made of, -1: it may not.
func (f *firmware) copyOf(in []byte) int {
	if len(in) == 1 && in[0] == [2]byte{cmis.CopyAToB, cmis.CopyBToA}[f.running] {
		return f.running
	}
	return -1
}

// upgrade carries out a command of firmware.
func (c *mci) upgrade(id uint16, in []byte) (reply []byte, status byte) {
	f := &c.fw
	other := &f.bank[f.running^1]
	status = cmis.CDBSuccess
	switch id {
	case cmis.CommandFirmwareFeatures:
		t := c.timing.Command
		reply = cmis.FirmwareFeatures{Abort: true, Copy: true, Head: fwHeadBytes, EPL: !c.timing.NoEPL, Block: fwBlock, Start: t, Write: t, Complete: t}.Bytes()
	case cmis.CommandFirmwareInfo:
		reply = f.info().Bytes()
	case cmis.CommandFirmwareStart:
		h, s := startOf(in)
		if status = s; s == cmis.CDBSuccess {
			f.load, other.version = &fwLoad{head: h}, cmis.Version{}
		}
	case cmis.CommandFirmwareAbort:
		f.load = nil
	case cmis.CommandFirmwareWriteLPL, cmis.CommandFirmwareWriteEPL:
		status = c.block(id, in)
	case cmis.CommandFirmwareComplete:
		x := f.load
		f.load = nil
		switch {
		case x == nil:
			status = cmis.CDBNotNow
		case x.at != x.head.length || x.sum != x.head.sum:
			status = cmis.CDBBadImage
		default:
			*other = fwImage{true, x.head.version}
		}
	case cmis.CommandFirmwareCopy:
		from := c.fw.copyOf(in)
		if status = cmis.CDBNotNow; from >= 0 {
			f.bank[from^1], status = f.bank[from], cmis.CDBSuccess
		}
	case cmis.CommandFirmwareRun:
		status = c.runs(in)
	case cmis.CommandFirmwareCommit:
		if !c.timing.NoCommit {
			f.committed = f.running
		}
	default:
		return nil, cmis.CDBUnknown
	}
	c.version()
	return reply, status
}

// block takes one of an image.
func (c *mci) block(id uint16, in []byte) byte {
	x := c.fw.load
	if x == nil {
		return cmis.CDBNotNow
	}
	if len(in) < 4 {
		return cmis.CDBBadValue
	}
	at, data := binary.BigEndian.Uint32(in), in[4:]
	if id == cmis.CommandFirmwareWriteEPL {
		length := int(binary.BigEndian.Uint16(c.pages[cmis.PageCDB][cmis.CDBEPLLength-128:]))
		if len(data) != 0 || length > fwBlock || c.timing.NoEPL {
			return cmis.CDBBadValue
		}
		for page := uint8(cmis.PageEPL); len(data) < length; page++ {
			if c.pages[page] == nil {
				return cmis.CDBBadValue // nobody wrote it
			}
			data = append(data, c.pages[page][:min(128, length-len(data))]...)
		}
	}
	if at == x.last && at < x.at { // its answer was lost
		x.at, x.sum = at, x.was
	}
	if at != x.at || len(data) == 0 || uint64(at)+uint64(len(data)) > uint64(x.head.length) {
		return cmis.CDBBadValue
	}
	x.last, x.was = at, x.sum
	x.sum, x.at = crc32.Update(x.sum, crc32.IEEETable, data), at+uint32(len(data))
	return cmis.CDBSuccess
}

// runs takes a command to run an image; the reset comes when the host had the time to
// read the answer.
func (c *mci) runs(in []byte) byte {
	if len(in) != 4 || in[1] > cmis.RunSameTry {
		return cmis.CDBBadValue
	}
	bank := c.fw.running
	if in[1] <= cmis.RunOtherTry {
		bank ^= 1
	}
	if !c.fw.bank[bank].valid {
		return cmis.CDBNotNow
	}
	c.later(time.Duration(binary.BigEndian.Uint16(in[2:]))*time.Millisecond, mciRun, byte(bank))
	return cmis.CDBSuccess
}

// boots leaves what runs for a bank. One that does not start on this module is left for
// the committed one.
func (c *mci) boots(bank int) {
	after := c.timing.PowerUp
	c.fw.next = bank + 1
	if p := c.m.planted; p != nil && p.firmware != 0 && p.firmware == int(c.fw.bank[bank].version.Build) {
		after, c.fw.next = fwWatchdog, 0
	}
	c.todo = c.todo[:0]
	c.busy = int64(c.m.board.now + after)
	c.m.dim()
	c.m.changed()
	c.later(after, mciReset, 0)
}

// extended brings a page of the extended payload about.
func (c *mci) extended(page uint8) {
	if page >= cmis.PageEPL && page < cmis.PageEPL+cmis.EPLPages && c.pages[page] == nil && !c.timing.NoEPL && !c.timing.NoFirmware {
		c.pages[page] = new([128]byte)
	}
}
