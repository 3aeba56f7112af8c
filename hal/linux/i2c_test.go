package linux

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"periph.io/x/conn/v3/i2c"
	"periph.io/x/conn/v3/physic"
	"periph.io/x/conn/v3/spi"

	"ringlight/hal"
	"ringlight/hal/boardfile"
)

// kernel is a fake i2c-dev: an EEPROM with one-byte addresses at 0x50, an
// errno per other address.
type kernel struct {
	errnos map[uint16]syscall.Errno
	memory [256]byte
	calls  int
}

func (k *kernel) ioctl(fd, request uintptr, arg unsafe.Pointer) syscall.Errno {
	if request != ioctlRDWR {
		return syscall.ENOTTY
	}
	k.calls++
	data := (*i2cRDWR)(arg)
	msgs := unsafe.Slice((*i2cMsg)(data.msgs), data.count)
	at := 0
	for _, m := range msgs {
		if m.addr != 0x50 {
			return k.errnos[m.addr]
		}
		b := unsafe.Slice((*byte)(m.buf), m.length)
		if m.flags&flagRead != 0 {
			copy(b, k.memory[at:])
			continue
		}
		at = int(b[0])
		copy(k.memory[at:], b[1:])
	}
	return 0
}

func TestI2CMessagesReachTheKernel(t *testing.T) {
	k := &kernel{}
	b := &i2cWire{bus: &i2cBus{call: k.ioctl}}
	if err := b.transfer(&hal.Msg{Addr: 0x50, W: []byte{7, 1, 2, 3}}); err != nil {
		t.Fatal(err)
	}
	m := &hal.Msg{Addr: 0x50, W: []byte{8}, R: make([]byte, 2)}
	if err := b.transfer(m); err != nil || !bytes.Equal(b.read(), []byte{2, 3}) {
		t.Errorf("read %v, %v", b.read(), err)
	}
	if k.calls != 2 {
		t.Errorf("%d calls for two messages", k.calls)
	}
	for _, m := range []hal.Msg{{Addr: 0x50}, {Addr: 0x400, W: []byte{1}}, {Addr: 1, W: make([]byte, maxTransfer+1)}} {
		if err := b.transfer(&m); !errors.Is(err, hal.ErrOutOfRange) {
			t.Errorf("%+v: %v, want out of range", m.Addr, err)
		}
	}
	if err := b.bus.SetSpeed(physic.MegaHertz); !errors.Is(err, hal.ErrUnsupported) {
		t.Errorf("the clock of an adapter was set: %v", err)
	}
}

// printed is a bus whose driver prints errnos into its errors, as that of periph's host
// does, or wraps them.
type printed struct {
	errno syscall.Errno
	verb  string
}

func (b printed) String() string                    { return "printed" }
func (b printed) Close() error                      { return nil }
func (b printed) SetSpeed(physic.Frequency) error   { return nil }
func (b printed) Tx(uint16, []byte, []byte) error   { return fmt.Errorf("somebody's: "+b.verb, b.errno) }
func (b printed) LimitSpeed(physic.Frequency) error { return nil }
func (b printed) Connect(physic.Frequency, spi.Mode, int) (spi.Conn, error) {
	return nil, fmt.Errorf("somebody's: "+b.verb, b.errno)
}

func TestEveryErrnoHasOneCause(t *testing.T) {
	// Goal: the cause of a failed transfer and the errno itself survive, on either
	// kind of bus, through our own driver and through one that prints or wraps it.
	for e, want := range map[syscall.Errno]error{ // any order: independent rows
		syscall.ENXIO: hal.ErrAddressNACK, syscall.EREMOTEIO: hal.ErrAddressNACK,
		syscall.EIO: hal.ErrByteNACK, syscall.EPROTO: hal.ErrByteNACK,
		syscall.ETIMEDOUT: hal.ErrTimeout, syscall.EAGAIN: hal.ErrArbitrationLost,
		syscall.EBUSY: hal.ErrBusStuck, syscall.EBADMSG: hal.ErrCRC,
		syscall.EINVAL: hal.ErrOutOfRange, syscall.EMSGSIZE: hal.ErrOutOfRange,
		syscall.EOPNOTSUPP: hal.ErrUnsupported, syscall.ENODEV: hal.ErrNoDevice,
	} {
		k := &kernel{errnos: map[uint16]syscall.Errno{0x33: e}}
		for name, bus := range map[string]i2c.BusCloser{"ours": &i2cBus{call: k.ioctl}, "printed": printed{e, "%v"}, "wrapped": printed{e, "%w"}} { // any order: independent rows
			err := (&i2cWire{bus: bus}).transfer(&hal.Msg{Addr: 0x33, W: []byte{1}})
			if !errors.Is(err, want) || !errors.Is(err, e) {
				t.Errorf("%s, %v: %v, want %v and the errno", name, e, err, want)
			}
		}
		refusing := &spiPort{call: func(uintptr, uintptr, unsafe.Pointer) syscall.Errno { return e }}
		for name, chip := range map[string]*spiChip{"ours": {port: refusing, conn: refusing, most: 8}, "printed": nil} { // any order: independent rows
			w := &spiWire{ports: map[uint16]*spiChip{1: chip}, mode: func(uint16) uint8 { return 0 },
				open: func(string) (spi.PortCloser, error) { return printed{e, "%v"}, nil }}
			if err := w.transfer(&hal.Msg{Addr: 1, Frame: 1, W: []byte{1}}); !errors.Is(err, want) || !errors.Is(err, e) {
				t.Errorf("SPI %s, %v: %v, want %v and the errno", name, e, err, want)
			}
		}
	}
	if wrapErrno(0) != nil || caused(nil) != nil {
		t.Error("no error became one")
	}
	if err := caused(errors.New("somebody's: the cable is out")); !errors.Is(err, hal.ErrNoDevice) {
		t.Errorf("an error without an errno: %v", err)
	}
}

func TestI2CSurvivesTheCollector(t *testing.T) {
	// Goal: what the kernel reads and writes stays where it is while stacks
	// move, the fault that periph's back end has.
	// Method: many goroutines with deep stacks on one bus while the collector
	// runs; every read must bring the bytes of its own address.
	k := &kernel{}
	for i := range k.memory {
		k.memory[i] = byte(i)
	}
	var wg sync.WaitGroup
	answers := make([]chan hal.Event, 8)
	o := newOwner(0, "fake", &i2cWire{bus: &i2cBus{call: k.ioctl}}, sinceStart(), func(ev hal.Event) {
		answers[ev.Completion.Op.Token] <- ev
	})
	defer stop(o)
	for g := range answers {
		answers[g] = make(chan hal.Event, 1)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 200 {
				deep(40)
				at := byte(g*16 + i%8)
				op := &hal.Op{Token: uint64(g), Msgs: []hal.Msg{{Addr: 0x50, W: []byte{at}, R: make([]byte, 4)}}}
				if err := o.submit(op, nil); err != nil {
					t.Error(err)
					return
				}
				if ev := <-answers[g]; ev.Completion.Err != nil || !bytes.Equal(op.Msgs[0].R, []byte{at, at + 1, at + 2, at + 3}) {
					t.Errorf("address %d: %v, %v", at, op.Msgs[0].R, ev.Completion.Err)
				}
				if i%20 == 0 {
					runtime.GC()
				}
			}
		}()
	}
	wg.Wait()
}

func deep(n int) byte {
	var b [512]byte
	if n > 0 {
		b[n%512] = deep(n - 1)
	}
	return b[(n*7)%512]
}

func TestOpenNamesEverythingThatIsMissing(t *testing.T) {
	board, err := boardfile.Default(4, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range board.Buses {
		board.Buses[i].Device = strings.Replace(board.Buses[i].Device, "/dev/", "/nowhere/", 1)
	}
	for i := range board.Lines {
		board.Lines[i].Chip = "nochip"
	}
	_, err = Open(&board, func(hal.Event) {})
	if !errors.Is(err, hal.ErrNoDevice) {
		t.Fatalf("%v, want no such device", err)
	}
	for _, want := range []string{"bus 0 /nowhere/i2c-0", "bus 1 /nowhere/spidev0.", "bus 4", "line 0", "line 2"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %q:\n%v", want, err)
		}
	}
}
