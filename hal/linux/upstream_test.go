package linux

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
	"periph.io/x/conn/v3/gpio"
	"periph.io/x/host/v3/gpioioctl"
	"periph.io/x/host/v3/sysfs"
)

// Reproductions of docs/upstream.md against periph.io/x/host/v3 as go.mod names it. Each
// passes while the fault is there, and is skipped, with a word, once it is mended.

// set gives a field of a struct of another package a value, as its own tests would.
func set(t *testing.T, of any, field string, value any) {
	t.Helper()
	f := reflect.ValueOf(of).Elem().FieldByName(field)
	if !f.IsValid() {
		t.Skipf("%T has no field %s any more", of, field)
	}
	reflect.NewAt(f.Type(), unsafe.Pointer(f.UnsafeAddr())).Elem().Set(reflect.ValueOf(value).Convert(f.Type()))
}

// sysfsKernel is what a sysfs.I2C talks to. The first call waits to be let go; each says
// whether the pointer that it was given is on the stack of the goroutine that calls.
type sysfsKernel struct {
	errno            syscall.Errno
	entered, release chan struct{}
	calls            int
	stale            bool
}

func (k *sysfsKernel) Close() error { return nil }

func (k *sysfsKernel) Ioctl(_ uint, data uintptr) error {
	var here byte
	if k.calls++; k.calls == 1 && k.entered != nil {
		k.entered <- struct{}{}
		<-k.release
	}
	// Tx is the caller: what it points at lies a few hundred bytes above.
	k.stale = data-uintptr(unsafe.Pointer(&here)) > 16<<10
	if k.errno != 0 {
		return k.errno
	}
	return nil
}

func TestUpstreamI2CPointsIntoAStackThatMoved(t *testing.T) {
	// Goal: sysfs.I2C.Tx makes numbers of pointers into its own stack and then waits for
	// its lock; when the stack shrinks meanwhile, the kernel is given the old place.
	// Method: one transfer holds the lock; a second, on a stack that was deep, waits for it
	// while the collector runs.
	k := &sysfsKernel{entered: make(chan struct{}), release: make(chan struct{})}
	bus := &sysfs.I2C{}
	set(t, bus, "f", k)
	ended := make(chan error, 2)
	transfer := func() { ended <- bus.Tx(0x50, []byte{0}, make([]byte, 1)) }
	go transfer()
	<-k.entered
	go func() {
		deep(100)
		transfer()
	}()
	for trace := make([]byte, 1<<20); ; runtime.Gosched() {
		if s := string(trace[:runtime.Stack(trace, true)]); strings.Count(s, "sysfs.(*I2C).Tx") == 2 && strings.Contains(s, "sync.Mutex.Lock") {
			break
		}
	}
	for range 6 { // each halves a stack that is hardly used
		runtime.GC()
	}
	close(k.release)
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	if !k.stale {
		t.Skip("mended: the kernel was given a place that had not moved")
	}
}

func TestUpstreamI2CLosesTheErrno(t *testing.T) {
	// Goal: an address that nobody acknowledges cannot be told from a bus that hangs: the
	// errno is printed into the error and not wrapped.
	bus := &sysfs.I2C{}
	set(t, bus, "f", &sysfsKernel{errno: syscall.ENXIO})
	err := bus.Tx(0x50, []byte{0}, nil)
	if err == nil || !strings.Contains(err.Error(), syscall.ENXIO.Error()) {
		t.Fatal(err)
	}
	if errors.Is(err, syscall.ENXIO) {
		t.Skip("mended: the errno is wrapped")
	}
}

// gpioLine is a line of gpioioctl that waits for edges, and the other end of its file.
func gpioLine(t *testing.T) (*gpioioctl.GPIOLine, *os.File) {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	w := os.NewFile(uintptr(ends[1]), "kernel")
	line := &gpioioctl.GPIOLine{}
	set(t, line, "fd", ends[0])
	set(t, line, "edge", gpio.BothEdges)
	set(t, line, "direction", gpioioctl.LineInput)
	t.Cleanup(func() {
		line.Close()
		w.Close()
	})
	return line, w
}

func TestUpstreamGPIODropsTheStampOfAnEdge(t *testing.T) {
	// Goal: the kernel's stamp and number of an edge are read and forgotten: nothing that
	// a line keeps has them.
	line, kernel := gpioLine(t)
	const stamp, number = 7_123_456_789_012, 987_654
	event := unix.GPIOV2LineEvent{Timestamp_ns: stamp, Id: unix.GPIO_V2_LINE_EVENT_RISING_EDGE, Seqno: number, Line_seqno: number}
	if err := binary.Write(kernel, binary.NativeEndian, []uint64{event.Timestamp_ns, uint64(event.Id), uint64(event.Seqno) | uint64(event.Line_seqno)<<32, 0, 0, 0}); err != nil {
		t.Fatal(err)
	}
	if !line.WaitForEdge(time.Minute) {
		t.Fatal("no edge")
	}
	if kept := fmt.Sprintf("%+v", reflect.ValueOf(line).Elem()); strings.Contains(kept, fmt.Sprint(uint64(stamp))) || strings.Contains(kept, fmt.Sprint(number)) {
		t.Skip("mended: a line knows of its last edge")
	}
}

func TestUpstreamGPIODoesNotWaitForEver(t *testing.T) {
	// Goal: a negative timeout is to wait without end (gpio.PinIn), and returns at once.
	line, kernel := gpioLine(t)
	waited := make(chan bool, 1)
	go func() { waited <- line.WaitForEdge(-1) }()
	select {
	case came := <-waited:
		if came {
			t.Error("an edge that nobody made")
		}
	case <-time.After(20 * time.Second):
		kernel.Close()
		t.Skip("mended: it waits")
	}
}
