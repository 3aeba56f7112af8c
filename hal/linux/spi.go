package linux

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"periph.io/x/conn/v3"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"

	"ringlight/hal"
)

// From the kernel's uapi/linux/spi/spidev.h and spi.h.
const (
	spiReadMode32  = 0x80046b05
	spiWriteMode32 = 0x40046b05
	spiMessage     = 0x40006b00 // and the size of the transfers from bit 16 on
	spiBits        = 8
	// What one call may carry: spidev copies through a buffer of one page, unless
	// its module is told otherwise.
	maxFrames   = 64
	maxSPIBytes = 4096
)

// spiTransfer is struct spi_ioc_transfer. Its addresses are numbers: what they
// point at must be held elsewhere.
type spiTransfer struct {
	tx, rx      uint64
	length, hz  uint32
	delayMicros uint16
	bits        uint8
	csChange    uint8 // raise the select after this one, too
	_           [4]uint8
}

// spiPort is one /dev/spidevN.M: an spi.PortCloser, and the spi.Conn that it gives.
// As with i2cBus, all that the kernel sees lies on the heap and hangs on it.
type spiPort struct {
	device    string
	fd        uintptr
	shut      func() error
	call      ioctl
	mu        sync.Mutex
	hz        uint32 // limit first, then clock
	connected bool
	transfers [maxFrames]spiTransfer
	packets   [maxFrames]spi.Packet // what the numbers in transfers point at
	flags     uint32
}

func openSPI(device string) (spi.PortCloser, error) {
	fd, closer, err := openFile(device)
	if err != nil {
		return nil, err
	}
	return &spiPort{device: device, fd: fd, shut: closer, call: realIoctl}, nil
}

// openFile opens a device. What cannot be opened is no device to us, whatever
// the errno is.
func openFile(path string) (uintptr, func() error, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("%w (%w)", hal.ErrNoDevice, err)
	}
	return f.Fd(), f.Close, nil
}

// LimitSpeed bounds what Connect may ask for.
func (p *spiPort) LimitSpeed(f physic.Frequency) error {
	p.hz = uint32(f / physic.Hertz)
	return nil
}

// Connect sets the clock's polarity and phase; the other flags of a chip select are
// how the board is wired and stay as found. A clock of 0 is the device tree's.
func (p *spiPort) Connect(f physic.Frequency, mode spi.Mode, bits int) (spi.Conn, error) {
	if p.connected || mode&^spi.Mode3 != 0 || bits != spiBits {
		return nil, fmt.Errorf("%s: %w: mode %v, words of %d bits: want mode 0 to 3, 8 bits, once", p.device, hal.ErrUnsupported, mode, bits)
	}
	if hz := uint32(f / physic.Hertz); p.hz == 0 || hz != 0 && hz < p.hz {
		p.hz = hz
	}
	e := p.call(p.fd, spiReadMode32, unsafe.Pointer(&p.flags))
	if e == 0 {
		p.flags = p.flags&^uint32(spi.Mode3) | uint32(mode)
		e = p.call(p.fd, spiWriteMode32, unsafe.Pointer(&p.flags))
	}
	if e != 0 {
		return nil, fmt.Errorf("mode %d: %w", mode, wrapErrno(e))
	}
	p.connected = true
	return p, nil
}

// Tx is one frame.
func (p *spiPort) Tx(w, r []byte) error { return p.TxPackets([]spi.Packet{{W: w, R: r}}) }

// TxPackets sends packets in one call of the kernel, the chip select raised after each
// but those that keep it.
func (p *spiPort) TxPackets(packets []spi.Packet) error {
	total := 0
	for i := range packets {
		k := &packets[i]
		total += max(len(k.W), len(k.R))
		if k.BitsPerWord != 0 && k.BitsPerWord != spiBits || len(k.W) == 0 && len(k.R) == 0 || len(k.W) > 0 && len(k.R) > 0 && len(k.W) != len(k.R) {
			return fmt.Errorf("%w: packet %d: %d bytes out, %d back, words of %d bits", hal.ErrOutOfRange, i, len(k.W), len(k.R), k.BitsPerWord)
		}
	}
	if len(packets) == 0 || len(packets) > maxFrames || total > maxSPIBytes {
		return fmt.Errorf("%w: %d packets of %d bytes: want 1 to %d of at most %d", hal.ErrOutOfRange, len(packets), total, maxFrames, maxSPIBytes)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	copy(p.packets[:], packets)
	for i := range packets {
		k := &p.packets[i]
		t := spiTransfer{tx: addressOf(k.W), rx: addressOf(k.R), length: uint32(max(len(k.W), len(k.R))), hz: p.hz, bits: spiBits}
		// After the last it rises by itself; asked for there, it would stay low.
		if k.KeepCS == (i == len(packets)-1) {
			t.csChange = 1
		}
		p.transfers[i] = t
	}
	size := uintptr(len(packets)) * unsafe.Sizeof(spiTransfer{})
	e := p.call(p.fd, spiMessage|size<<16, unsafe.Pointer(&p.transfers[0]))
	runtime.KeepAlive(p)
	clear(p.packets[:len(packets)])
	return wrapErrno(e)
}

func addressOf(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// MaxTxSize is how many bytes one call may carry.
func (p *spiPort) MaxTxSize() int { return maxSPIBytes }

func (p *spiPort) Duplex() conn.Duplex { return conn.Full }

func (p *spiPort) String() string { return p.device }

// Close lets go of the device.
func (p *spiPort) Close() error { return p.shut() }
