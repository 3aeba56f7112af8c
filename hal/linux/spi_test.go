package linux

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"unsafe"

	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"

	"ringlight/hal"
)

// spidev is a fake kernel that answers every frame with its complement.
type spidev struct {
	mode  map[uintptr]uint32
	calls []int // frames of each call
	sent  []byte
	loose int // transfers after which the select did not rise
	hz    uint32
}

func (k *spidev) ioctl(fd, request uintptr, arg unsafe.Pointer) syscall.Errno {
	switch request {
	case spiReadMode32:
		*(*uint32)(arg) = k.mode[fd]
		return 0
	case spiWriteMode32:
		k.mode[fd] = *(*uint32)(arg)
		return 0
	}
	n := int(request>>16&0x3fff) / 32
	if request&0xc000ffff != spiMessage || unsafe.Sizeof(spiTransfer{}) != 32 {
		return syscall.ENOTTY
	}
	k.calls = append(k.calls, n)
	total := 0
	for i, x := range unsafe.Slice((*spiTransfer)(arg), n) {
		tx := bytesAt(&x.tx, x.length)
		k.sent = append(k.sent, tx...)
		if x.rx != 0 {
			for i, b := range tx {
				bytesAt(&x.rx, x.length)[i] = ^b
			}
		}
		// The select rises after a transfer that asks for it, and after the last
		// one that does not.
		if (x.csChange == 1) == (i == n-1) {
			k.loose++
		}
		total, k.hz = total+int(x.length), x.hz
	}
	if total > maxSPIBytes {
		return syscall.EMSGSIZE
	}
	return 0
}

func TestSPIFramesAreSplit(t *testing.T) {
	// Goal: a chip sees its select rise after every frame, in as few calls as the
	// kernel takes, in its own mode; flags of its select that
	// are not mode stay.
	const csHigh = 4
	k := &spidev{mode: map[uintptr]uint32{2: csHigh | 3, 3: 0}}
	opened := ""
	b, err := spiOf(hal.Bus{Device: "/dev/spidev1.", Speed: 20 * physic.MegaHertz}, func(sel uint16) uint8 { return map[uint16]uint8{2: 1}[sel] })
	if err != nil {
		t.Fatal(err)
	}
	b.open = func(path string) (spi.PortCloser, error) {
		opened += path + " "
		if path == "/dev/spidev1.9" {
			return nil, hal.ErrNoDevice
		}
		return &spiPort{fd: uintptr(path[len(path)-1] - '0'), shut: func() error { return nil }, call: k.ioctl}, nil
	}
	w := make([]byte, 3*(maxFrames+6))
	for i := range w {
		w[i] = byte(i)
	}
	m := &hal.Msg{Addr: 2, Frame: 3, W: w, R: make([]byte, len(w))}
	if err := b.transfer(m); err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(k.calls) != fmt.Sprint([]int{maxFrames, 6}) || string(k.sent) != string(w) || k.loose != 0 || b.read()[29] != ^byte(29) {
		t.Errorf("calls %v, %d bytes, %d selects that did not rise", k.calls, len(k.sent), k.loose)
	}
	if k.mode[2] != csHigh|1 || k.hz != 20_000_000 {
		t.Errorf("mode %d at %d Hz", k.mode[2], k.hz)
	}
	if err := b.transfer(&hal.Msg{Addr: 3, Frame: 3, W: w[:6]}); err != nil || k.mode[3] != 0 {
		t.Errorf("another select: %v, mode %d", err, k.mode[3])
	}
	if err := b.transfer(&hal.Msg{Addr: 2, Frame: 255, W: make([]byte, 20*255)}); err != nil || opened != "/dev/spidev1.2 /dev/spidev1.3 " {
		t.Errorf("long frames: %v, opened %s", err, opened)
	}
	for name, m := range map[string]hal.Msg{ // any order: independent rows
		"no frame": {Addr: 2, W: w}, "half a frame": {Addr: 2, Frame: 3, W: w[:4]}, "empty": {Addr: 2, Frame: 3},
		"short read": {Addr: 2, Frame: 3, W: w, R: make([]byte, 3)},
	} {
		if err := b.transfer(&m); !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := b.transfer(&hal.Msg{Addr: 9, Frame: 3, W: w[:3]}); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("absent select: %v", err)
	}
	if _, err := spiOf(hal.Bus{Device: "/dev/spidev1"}, nil); err == nil {
		t.Error("a device name without its dot was taken")
	}
}

// bytesAt follows an address that is a number.
func bytesAt(address *uint64, n uint32) []byte {
	return unsafe.Slice(*(**byte)(unsafe.Pointer(address)), n)
}
