package gnmi

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	wire "google.golang.org/protobuf/proto"
)

// crowd are subscribers to all of the fabric, each with a connection.
type crowd struct {
	since atomic.Int64 // nanoseconds since 1970; what is older does not count
	mu    sync.Mutex
	// worst is how long after an event's time a kernel had it for a subscriber, and how long
	// until that had read it.
	worst, read      time.Duration
	messages, events int // that were told, to all of them
	holes            int
}

// socket tells when the kernel had what was read from it last: so what readers cost is told
// apart from a planner that is late.
type socket struct {
	*net.TCPConn
	raw syscall.RawConn
	at  time.Time
}

func (s *socket) Read(p []byte) (n int, err error) {
	var failed error
	err = s.raw.Read(func(fd uintptr) bool {
		var oob [64]byte
		var control int
		n, control, _, _, failed = syscall.Recvmsg(int(fd), p[:min(len(p), 4096)], oob[:], 0)
		if list, err := syscall.ParseSocketControlMessage(oob[:max(control, 0)]); failed == nil && err == nil && len(list) > 0 {
			stamp := list[0].Data
			s.at = time.Unix(int64(binary.NativeEndian.Uint64(stamp)), int64(binary.NativeEndian.Uint64(stamp[8:])))
		}
		return failed != syscall.EAGAIN && failed != syscall.EINTR
	})
	switch {
	case failed != nil:
		return 0, failed
	case err == nil && n == 0:
		err = io.EOF
	}
	return n, err
}

// listen subscribes over HTTP/2 of its own, which costs a reader little, and hears until
// the connection ends.
func (c *crowd) listen(b *bench, synced func(), end <-chan struct{}) error {
	conn, err := net.Dial("tcp", b.addr)
	if err != nil {
		return err
	}
	s := &socket{TCPConn: conn.(*net.TCPConn)}
	if s.raw, err = s.SyscallConn(); err != nil {
		return err
	}
	if err := s.raw.Control(func(fd uintptr) {
		err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_TIMESTAMPNS, 1)
	}); err != nil {
		return err
	}
	t := tls.Client(s, b.tls("bob"))
	ended := false
	go func() { <-end; s.Close() }()
	f := http2.NewFramer(t, t)
	if err := callSubscribe(t, f, subscribe(pb.SubscriptionList_STREAM, pb.SubscriptionMode_ON_CHANGE, pb.Encoding_PROTO, "fabric")); err != nil {
		return err
	}
	var in bytes.Buffer
	h := &hearer{crowd: c, socket: s, synced: synced}
	for err == nil {
		var frame http2.Frame
		if frame, err = f.ReadFrame(); err != nil {
			break
		}
		switch x := frame.(type) {
		case *http2.SettingsFrame:
			if !x.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.PingFrame:
			if !x.IsAck() {
				err = f.WritePing(true, x.Data)
			}
		case *http2.DataFrame:
			in.Write(x.Data())
			for err == nil && in.Len() >= 5 && in.Len() >= 5+int(binary.BigEndian.Uint32(in.Bytes()[1:])) {
				err = h.hear(in.Next(5 + int(binary.BigEndian.Uint32(in.Bytes()[1:])))[5:])
			}
		case *http2.RSTStreamFrame, *http2.GoAwayFrame:
			err = fmt.Errorf("%v", x)
		}
	}
	select {
	case <-end:
		ended = true
	default:
	}
	if ended {
		return nil
	}
	return err
}

// callSubscribe begins HTTP/2, with room for all that comes, and a call of Subscribe.
func callSubscribe(conn io.Writer, f *http2.Framer, r *pb.SubscribeRequest) error {
	if _, err := io.WriteString(conn, http2.ClientPreface); err != nil {
		return err
	}
	if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 30}); err != nil {
		return err
	}
	if err := f.WriteWindowUpdate(0, 1<<30); err != nil {
		return err
	}
	var block bytes.Buffer
	head := hpack.NewEncoder(&block)
	for _, x := range [][2]string{{":method", "POST"}, {":scheme", "https"}, {":path", "/gnmi.gNMI/Subscribe"}, {":authority", "127.0.0.1"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
		if err := head.WriteField(hpack.HeaderField{Name: x[0], Value: x[1]}); err != nil {
			return err
		}
	}
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	raw, err := wire.Marshal(r)
	if err != nil {
		return err
	}
	return f.WriteData(1, false, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(raw))), raw...))
}

// hearer is what one subscriber has heard.
type hearer struct {
	*crowd
	*socket
	synced func()
	last   uint64
}

func (h *hearer) hear(raw []byte) error {
	var r pb.SubscribeResponse
	if err := wire.Unmarshal(raw, &r); err != nil {
		return err
	}
	since, n := h.since.Load(), r.GetUpdate()
	if r.GetSyncResponse() {
		h.synced()
	}
	if since == 0 { // the first ones come by their names
		for _, no := range eventsOf(n) {
			h.last = max(h.last, no)
		}
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.messages++
	for _, no := range eventsOf(n) {
		if no != h.last+1 {
			h.holes++
		}
		h.last = no
		told := time.Unix(0, n.GetTimestamp())
		h.events, h.worst, h.read = h.events+1, max(h.worst, h.at.Sub(told)), max(h.read, time.Since(told))
	}
	return nil
}

// power switches a node's board at the agents' control socket.
func (b *bench) power(word string) {
	conn, err := net.Dial("unix", os.Getenv("RINGLIGHT_GNMI_CONTROL"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if _, err = fmt.Fprintln(conn, word); err == nil {
		_, err = conn.Read(make([]byte, 64))
	}
	if err != nil {
		b.t.Error(err)
	}
}

// Goal: a thousand who stream cost the planner's steps nothing that counts, and all are told
// soon, without a hole. Method: its own measures beside none, beside all quiet; then nodes
// lose their power.
func TestManySubscribers(t *testing.T) {
	b := atBench(t)
	n, _ := strconv.Atoi(os.Getenv("RINGLIGHT_SUBSCRIBERS"))
	before := b.load(5 * time.Second)
	var ready, told sync.WaitGroup
	var failed sync.Once
	c, end, room := &crowd{}, make(chan struct{}), make(chan struct{}, 32)
	for range n {
		room <- struct{}{} // a handshake that waits for a processor is cut off
		ready.Add(1)
		synced := sync.OnceFunc(func() { ready.Done(); <-room })
		told.Go(func() {
			defer synced()
			if err := c.listen(b, synced, end); err != nil {
				failed.Do(func() { t.Errorf("a subscriber, and maybe others: %v", err) })
			}
		})
	}
	ready.Wait()
	during := b.load(5 * time.Second)
	t.Logf("ok      none streams: %s", before)
	t.Logf("ok      %d stream all of the fabric: %s", n, during)
	for _, node := range []string{"5", "9"} {
		c.mu.Lock()
		c.worst, c.read, c.messages, c.events = 0, 0, 0, 0
		c.mu.Unlock()
		cpu, own := b.measure("process_cpu_seconds_total"), spent(t)
		c.since.Store(time.Now().UnixNano())
		b.power("power off " + node)
		<-time.After(5 * time.Second)
		cpu, own = b.measure("process_cpu_seconds_total")-cpu, spent(t)-own
		c.mu.Lock()
		t.Logf("ok      node %s dies: %d events in %d messages to each of %d: at its socket at most %d ms after its time, read after %d; the planner used %.0f ms of %d processors, they %d",
			node, c.events/n, c.messages/n, n, c.worst.Milliseconds(), c.read.Milliseconds(), cpu*1e3, runtime.NumCPU(), own.Milliseconds())
		if c.holes > 0 || c.events < n || c.events%n != 0 {
			t.Errorf("%d events, %d holes", c.events, c.holes)
		}
		c.mu.Unlock()
	}
	close(end)
	told.Wait()
}

// spent is the processor time of this process.
func spent(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
