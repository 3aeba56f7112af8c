package linux

import (
	"errors"
	"fmt"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"ringlight/hal"
)

// fakeGPIO is a kernel with two chips of eight lines. The second one's last two
// lines have the same name.
type fakeGPIO struct {
	names   [2][8]string
	used    [8]bool // of the first
	holder  string
	refuse  syscall.Errno
	levels  uint64 // of a request
	config  uint64 // last set
	request unix.GPIOV2LineRequest
	edges   int // write end of the last request
	seq     uint32
}

func newFakeGPIO() *fakeGPIO {
	g := &fakeGPIO{}
	g.names[0] = [8]string{"", "I2C0_SCL", "I2C0_SDA", "LOS_LOOP0", "LOS_EXT1_0", "LOS_EXT2_0"}
	g.names[1] = [8]string{6: "TWICE", 7: "TWICE"}
	return g
}

func (g *fakeGPIO) gpio() *gpioChips {
	return &gpioChips{paths: func() []string { return []string{"0", "1"} }, call: g.ioctl,
		open: func(path string) (uintptr, func() error, error) {
			return uintptr(path[0] - '0'), func() error { return nil }, nil
		}}
}

func (g *fakeGPIO) ioctl(fd, request uintptr, arg unsafe.Pointer) syscall.Errno {
	switch request {
	case unix.GPIO_GET_CHIPINFO_IOCTL:
		info := (*unix.GPIOChipInfo)(arg)
		info.Lines = 8
		copy(info.Name[:], fmt.Sprintf("gpiochip%d", fd))
		copy(info.Label[:], [...]string{"1e780000.gpio", "expander"}[fd])
	case unix.GPIO_V2_GET_LINEINFO_IOCTL:
		info := (*unix.GPIOV2LineInfo)(arg)
		copy(info.Name[:], g.names[fd][info.Offset])
		if fd == 0 && g.used[info.Offset] {
			info.Flags = lineUsed
			copy(info.Consumer[:], g.holder)
		}
	case unix.GPIO_V2_GET_LINE_IOCTL:
		if g.refuse != 0 {
			return g.refuse
		}
		r := (*unix.GPIOV2LineRequest)(arg)
		g.request = *r
		var ends [2]int
		if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
			return syscall.EMFILE
		}
		r.Fd, g.edges = int32(ends[0]), ends[1]
	case unix.GPIO_V2_LINE_GET_VALUES_IOCTL:
		v := (*unix.GPIOV2LineValues)(arg)
		v.Bits = g.levels & v.Mask
	case gpioSetConfig:
		g.config = (*unix.GPIOV2LineConfig)(arg).Flags
	default:
		return syscall.ENOTTY
	}
	return 0
}

// edge is an edge as the kernel notes it; after so many that it had no room for.
func (g *fakeGPIO) edge(t testing.TB, offset uint32, rising bool, at time.Duration, lineSeq uint32, lost uint32) {
	t.Helper()
	g.seq += 1 + lost
	ev := unix.GPIOV2LineEvent{Timestamp_ns: uint64(at), Id: unix.GPIO_V2_LINE_EVENT_FALLING_EDGE, Offset: offset, Seqno: g.seq, Line_seqno: lineSeq}
	if rising {
		ev.Id = unix.GPIO_V2_LINE_EVENT_RISING_EDGE
	}
	if _, err := unix.Write(g.edges, unsafe.Slice((*byte)(unsafe.Pointer(&ev)), unsafe.Sizeof(ev))); err != nil {
		t.Fatal(err)
	}
}

func TestLinesAreFoundByNameAndChip(t *testing.T) {
	g := newFakeGPIO()
	for _, tc := range []struct {
		line   hal.Line
		path   string
		offset uint32
		err    error
	}{
		{line: hal.Line{Chip: "gpiochip0", Offset: 4}, path: "0", offset: 4},
		{line: hal.Line{Chip: "expander", Offset: 7}, path: "1", offset: 7},
		{line: hal.Line{Name: "LOS_LOOP0"}, path: "0", offset: 3},
		{line: hal.Line{Name: "LOS_LOOP0", Chip: "1e780000.gpio"}, path: "0", offset: 3},
		{line: hal.Line{Name: "LOS_LOOP0", Chip: "expander"}, err: hal.ErrNoDevice},
		{line: hal.Line{Name: "NOBODY"}, err: hal.ErrNoDevice},
		{line: hal.Line{Name: "TWICE"}, err: hal.ErrOutOfRange},
		{line: hal.Line{Chip: "gpiochip2"}, err: hal.ErrNoDevice},
		{line: hal.Line{Chip: "gpiochip1", Offset: 8}, err: hal.ErrOutOfRange},
		{line: hal.Line{Chip: "gpiochip1", Offset: -1}, err: hal.ErrOutOfRange},
	} {
		at, err := g.gpio().find(tc.line)
		if !errors.Is(err, tc.err) || err == nil && (at.path != tc.path || at.offset != tc.offset) {
			t.Errorf("%+v: %+v, %v, want %+v", tc.line, at, err, tc)
		}
	}
}

// watched is a request for three lines of a chip, the last of them active low.
func watched(t *testing.T) (*fakeGPIO, *lines, *time.Duration) {
	t.Helper()
	g, now := newFakeGPIO(), new(time.Duration)
	g.levels = 0b011 // all that are active low or high are active... the third, turned over, too
	all, err := g.gpio().watch([]hal.Line{{Name: "LOS_LOOP0"}, {Name: "LOS_EXT1_0"}, {Name: "LOS_EXT2_0", ActiveLow: true}},
		func() time.Duration { return *now }, new(foreign))
	if err != nil || len(all) != 1 {
		t.Fatalf("%d requests, %v", len(all), err)
	}
	t.Cleanup(all[0].close)
	return g, all[0], now
}

func TestAnEdgeCarriesTheKernelsStamp(t *testing.T) {
	// Goal: an edge has the moment of its interrupt on the board's clock and the
	// level of the line as the board means it; one request holds all lines of a
	// chip, with both edges and nothing else asked of the pins.
	g, w, now := watched(t)
	if g.request.Num_lines != 3 || g.request.Config.Flags != lineInput|lineRising|lineFalling || text(g.request.Consumer[:]) != consumer {
		t.Errorf("request %+v", g.request)
	}
	const epoch = 90 * time.Second
	*now = 2 * time.Second
	g.edge(t, 3, false, epoch+time.Second, 1, 0)
	g.edge(t, 5, true, epoch+1500*time.Millisecond, 1, 0)
	got, err := w.take(func() time.Duration { return *now }, epoch, nil)
	want := []edge{{0, false, time.Second}, {2, false, 1500 * time.Millisecond}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestALostEdgeIsNoticed(t *testing.T) {
	// Goal: where the kernel's numbers have a gap, the levels are read again and
	// what they say is told; what was lost of a line that tells again is told as
	// the moment that it was; what was read before its edge comes is not told
	// twice.
	const epoch = 0
	for _, tc := range []struct {
		what   string
		edges  func(g *fakeGPIO, t *testing.T)
		levels uint64
		want   []edge
		lost   uint64
	}{
		{"nothing lost", func(g *fakeGPIO, t *testing.T) { g.edge(t, 3, false, 10, 1, 0) }, 0b010, []edge{{0, false, 10}}, 0},
		{"of another line, for good", func(g *fakeGPIO, t *testing.T) { g.edge(t, 3, false, 10, 1, 1) }, 0b000,
			[]edge{{0, false, 10}, {1, false, 50}}, 1},
		{"of the line itself, its fall", func(g *fakeGPIO, t *testing.T) { g.edge(t, 3, true, 10, 2, 1) }, 0b011,
			[]edge{{0, false, 10}, {0, true, 10}}, 1},
		{"a fall and a rise before a fall", func(g *fakeGPIO, t *testing.T) { g.edge(t, 3, false, 10, 3, 2) }, 0b010,
			[]edge{{0, false, 10}, {0, true, 10}, {0, false, 10}}, 2},
		{"more than one read takes", func(g *fakeGPIO, t *testing.T) {
			for i := range uint32(2*eventsAtOnce + 1) {
				g.edge(t, 4, i%2 == 1, 10, 1+i, 0)
			}
			g.edge(t, 3, false, 20, 1, 2)
		}, 0b001, append(alternate(1, 2*eventsAtOnce+1, 10), edge{0, false, 20}, edge{0, true, 50}), 2},
	} {
		g, w, now := watched(t)
		*now = 50
		tc.edges(g, t)
		g.levels = tc.levels
		got, err := w.take(func() time.Duration { return *now }, epoch, nil)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(tc.want) || w.lost != tc.lost {
			t.Errorf("%s: %v, lost %d, %v\nwant %v, lost %d", tc.what, got, w.lost, err, tc.want, tc.lost)
		}
		for i := range w.inputs {
			if want := (tc.levels>>i&1 != 0) != w.inputs[i].invert; w.inputs[i].high != want {
				t.Errorf("%s: line %d is at %v", tc.what, i, w.inputs[i].high)
			}
		}
	}
	// An edge that the levels, read after a gap, already had.
	g, w, now := watched(t)
	*now = 50
	g.edge(t, 4, false, 10, 1, 1)
	g.levels = 0b000
	if _, err := w.take(func() time.Duration { return *now }, epoch, nil); err != nil {
		t.Fatal(err)
	}
	g.seq--
	g.edge(t, 3, false, 49, 1, 0)
	if got, err := w.take(func() time.Duration { return *now }, epoch, nil); err != nil || len(got) != 0 {
		t.Errorf("told again: %v, %v", got, err)
	}
}

// alternate is so many edges of a line that is high at first.
func alternate(line hal.LineID, n int, at time.Duration) (out []edge) {
	for i := range n {
		out = append(out, edge{line, i%2 == 1, at})
	}
	return out
}
