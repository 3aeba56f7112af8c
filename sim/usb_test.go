package sim

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ringlight/hal"
)

// A simulated bus as an I2C adapter of the kernel that runs this test: a USB
// device of the i2c-tiny-usb kind, which the kernel's own driver makes an
// adapter of, over USB/IP from this process (vhci_hcd). So the kernel's chip
// drivers drive the simulator's register models.

// kernelBus is a simulated bus that a driver of the kernel uses.
type kernelBus struct {
	t     testing.TB
	mu    *sync.Mutex // of the world, which several buses may share
	r     *rig
	board BoardID
	bus   hal.BusID
	last  time.Time
	// spoil is a defect of a chip's model as the bus shows it: it may change what
	// is written, before, and what was read, after.
	spoil func(w, r []byte)
}

// usbAdapter is one such device.
type usbAdapter struct {
	kernelBus
	wire  io.ReadWriter
	begun []byte // written, waiting for the read that follows without a stop
	nak   bool
	path  string // of the adapter in sysfs
}

// do carries a message out, the world brought up to the wall's time before: the
// kernel's time goes by for the chips too.
func (k *kernelBus) do(msg hal.Msg) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.r.run(now.Sub(k.last))
	k.last = now
	if k.spoil != nil {
		k.spoil(msg.W, nil)
	}
	c := k.r.do(k.board, k.bus, msg)
	if k.spoil != nil {
		k.spoil(msg.W, msg.R)
	}
	return c.Err
}

// USB/IP on the wire, all numbers big-endian.
const (
	usbipSubmit, usbipUnlink            = 1, 2
	usbipSubmitted, usbipUnlinked       = 3, 4
	usbipHeader                         = 48
	usbFullSpeed                        = 2
	usbGetDescriptor                    = 6
	usbDirectionIn                      = 0x80
	usbTypeMask, usbVendor              = 0x60, 0x40
	tinyFunctions, tinyStatus           = 1, 3
	tinyTransfer, tinyBegin             = 4, 1
	tinyEnd, tinyRead                   = 2, 1
	tinyAcknowledged, tinyNot           = 1, 2
	i2cPlain, i2cEmulated               = 0x1, 0x0EFF0008 // I2C_FUNC_I2C, SMBUS_EMUL without block reads
	connectionReset               int32 = -104
)

var usbDescriptors = map[byte][]byte{
	1: {18, 1, 0x10, 0x01, 0xFF, 0, 0, 8, 0x03, 0x04, 0x31, 0xC6, 0x05, 0x02, 0, 0, 0, 1},
	2: {9, 2, 18, 0, 1, 1, 0, 0x80, 50, 9, 4, 0, 0, 0, 0xFF, 0, 0, 0},
}

// plugUSB gives the kernel an adapter for a bus.
func plugUSB(t testing.TB, mu *sync.Mutex, r *rig, board BoardID, bus hal.BusID, port int) *usbAdapter {
	t.Helper()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	a := &usbAdapter{kernelBus: kernelBus{t: t, mu: mu, r: r, board: board, bus: bus, last: time.Now()}, wire: os.NewFile(uintptr(pair[1]), "usb")}
	go a.serve()
	before := adapters()
	attach := fmt.Sprintf("%d %d %d %d", port, pair[0], 1<<16|uint32(port)+2, usbFullSpeed)
	if err := os.WriteFile("/sys/devices/platform/vhci_hcd.0/attach", []byte(attach), 0); err != nil {
		t.Fatal(err)
	}
	kernelDoes(t, "an adapter of it", func() bool {
		for name := range adapters() { // any order: one is new
			if !before[name] {
				a.path = filepath.Join("/sys/bus/i2c/devices", name)
			}
		}
		return a.path != ""
	})
	return a
}

// kernelDoes waits until the kernel has made something of what it was asked, in
// its own time.
func kernelDoes(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); {
		if time.Now().After(end) {
			t.Fatalf("the kernel made no %s", what)
		}
	}
}

// adapters are the names of the kernel's I2C adapters.
func adapters() map[string]bool {
	all := map[string]bool{}
	list, _ := filepath.Glob("/sys/bus/i2c/devices/i2c-*")
	for _, p := range list {
		all[filepath.Base(p)] = true
	}
	return all
}

// serve answers the kernel until it lets go.
func (a *usbAdapter) serve() {
	for {
		var h [usbipHeader]byte
		if _, err := io.ReadFull(a.wire, h[:]); err != nil {
			return
		}
		word := func(i int) uint32 { return binary.BigEndian.Uint32(h[4*i:]) }
		var out [usbipHeader]byte
		put := func(i int, v uint32) { binary.BigEndian.PutUint32(out[4*i:], v) }
		put(1, word(1))
		if word(0) == usbipUnlink {
			put(0, usbipUnlinked)
			reset := connectionReset
			put(5, uint32(reset))
			a.wire.Write(out[:])
			continue
		}
		in, n := word(3) == 1, int(word(6))
		var data []byte
		if !in {
			data = make([]byte, n)
			if _, err := io.ReadFull(a.wire, data); err != nil {
				return
			}
		}
		reply := a.control(h[40:48], data)
		put(0, usbipSubmitted)
		if in {
			reply = reply[:min(len(reply), n)]
			put(6, uint32(len(reply)))
		} else {
			reply = nil
			put(6, uint32(n))
		}
		if _, err := a.wire.Write(append(out[:], reply...)); err != nil {
			return
		}
	}
}

// control carries a control transfer out.
func (a *usbAdapter) control(setup, data []byte) []byte {
	value, index, length := binary.LittleEndian.Uint16(setup[2:]), binary.LittleEndian.Uint16(setup[4:]), binary.LittleEndian.Uint16(setup[6:])
	switch request := setup[1]; {
	case setup[0]&usbTypeMask != usbVendor:
		if request == usbGetDescriptor {
			return usbDescriptors[byte(value>>8)]
		}
		return make([]byte, length)
	case request == tinyFunctions:
		return binary.LittleEndian.AppendUint32(nil, i2cPlain|i2cEmulated)
	case request == tinyStatus:
		if a.nak {
			return []byte{tinyNot}
		}
		return []byte{tinyAcknowledged}
	case request&tinyTransfer != 0:
		return a.transfer(index, value&tinyRead != 0, request&tinyEnd != 0, data, int(length))
	}
	return nil
}

// transfer is one message of a transaction. A write that no stop follows waits
// for the read that does.
func (a *usbAdapter) transfer(addr uint16, read, end bool, data []byte, n int) []byte {
	if !read && !end {
		a.begun, a.nak = data, false
		return nil
	}
	msg := hal.Msg{Addr: addr, W: append(a.begun, data...)}
	if read {
		msg.R = make([]byte, n)
	}
	a.begun = nil
	a.nak = a.do(msg) != nil
	return msg.R
}

// bind has the kernel bind a driver to an address of the adapter at path.
func bind(t testing.TB, path, driver string, addr uint16) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(path, "new_device"), fmt.Appendf(nil, "%s %#x", driver, addr), 0); err != nil {
		t.Fatal(err)
	}
	dev := filepath.Join("/sys/bus/i2c/devices", fmt.Sprintf("%s-%04x", strings.TrimPrefix(filepath.Base(path), "i2c-"), addr))
	if _, err := os.Readlink(filepath.Join(dev, "driver")); err != nil {
		t.Fatalf("%s at %#x: no driver of the kernel took it: %v", driver, addr, err)
	}
	return dev
}

// attribute is the text of a file that matches, once the driver has it.
func attribute(t testing.TB, pattern string) (text string) {
	t.Helper()
	kernelDoes(t, pattern, func() bool {
		list, _ := filepath.Glob(pattern)
		if len(list) == 0 {
			return false
		}
		var err error
		text, err = readAttribute(list[0])
		return err == nil && text != ""
	})
	return text
}

// readAttribute reads past the runtime, whose poller would wait for an event that
// a file of sysfs never has.
func readAttribute(path string) (string, error) {
	fd, err := syscall.Open(path, syscall.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	defer syscall.Close(fd)
	b := make([]byte, 4096)
	n, err := syscall.Read(fd, b)
	return strings.TrimSpace(string(b[:max(n, 0)])), err
}
