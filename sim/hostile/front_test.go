package hostile

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// front is a broker that is not to be trusted: it stands before a good one, and all
// that goes to a client goes through its hands. While it is calm it hands it on. What
// goes to the good broker it leaves alone: it could not say more with it.
//
// All is handed on with QoS 0, and the good broker is told at once that it came: what
// is lost here is lost.
type front struct {
	listener net.Listener
	to       string // the good broker, host:port
	planners string // how their client ids begin

	// still is held while nothing that a planner says is heard: its repair comes so soon
	// that it would hide a bypass.
	still sync.RWMutex

	mu     sync.Mutex
	wires  map[string]*wire // by client id
	random *detmath.Random
	whims  bool
	pool   []proto.Packet             // of what may be swapped in
	kept   map[proto.TopicKind]*whims // what became of messages, by kind
}

// whims counts what became of messages on their way.
type whims struct{ dropped, delayed, doubled, overtaken, moved int }

// wire is a client's connection.
type wire struct {
	id   string
	conn net.Conn

	mu  sync.Mutex // of writes
	out *bufio.Writer
}

const (
	packetPublish = 3
	packetPuback  = 4
	// wirePatience is how long a client may take to read. chosen: it is thrown out
	// then, as brokers do.
	wirePatience = 10 * time.Second
)

// newFront listens with the certificate that a broker has; none of a client is asked for:
// whoever is the broker lets in whom he likes.
func newFront(s *Seals, fabric, to string, seed uint64) (*front, error) {
	pair, err := tls.LoadX509KeyPair(s.ListenCert, s.ListenKey)
	if err != nil {
		return nil, err
	}
	l, err := tls.Listen("tcp", s.Listen, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13})
	if err != nil {
		return nil, err
	}
	f := &front{listener: l, to: to, planners: fabric + "-planner-", wires: map[string]*wire{}, random: detmath.Stream(seed, 1<<32), kept: map[proto.TopicKind]*whims{}}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go f.serve(c)
		}
	}()
	return f, nil
}

// serve carries one client's packets until either side ends.
func (f *front) serve(c net.Conn) {
	defer c.Close()
	up, err := net.DialTimeout("tcp", f.to, 5*time.Second)
	if err != nil {
		return
	}
	defer up.Close()
	in := bufio.NewReader(c)
	_, connect, err := readPacket(in)
	id, ok := clientID(connect)
	if err != nil || !ok {
		return
	}
	w := &wire{id: id, conn: c, out: bufio.NewWriterSize(c, 64<<10)}
	f.mu.Lock()
	f.wires[id] = w
	f.mu.Unlock()
	if _, err := up.Write(connect); err != nil {
		return
	}
	go func() {
		defer up.Close() // either end says it to the other by closing
		for buf := make([]byte, 64<<10); ; {
			n, err := in.Read(buf)
			if f.isPlanner(id) {
				f.still.RLock() // waits while the planner is held
				//lint:ignore SA2001 nothing is guarded but the moment
				f.still.RUnlock()
			}
			if _, bad := up.Write(buf[:n]); err != nil || bad != nil {
				return
			}
		}
	}()
	for from := bufio.NewReader(up); err == nil; {
		var kind byte
		var raw []byte
		if kind, raw, err = readPacket(from); err != nil {
			break
		}
		if kind>>4 != packetPublish {
			err = w.write(raw)
			continue
		}
		p, number, ok := parsePublish(kind, raw)
		if !ok {
			break
		}
		if number != 0 {
			if _, err = up.Write([]byte{packetPuback << 4, 2, byte(number >> 8), byte(number)}); err != nil {
				break
			}
		}
		f.pass(w, p)
	}
	f.mu.Lock()
	if f.wires[id] == w {
		delete(f.wires, id)
	}
	f.mu.Unlock()
}

// pass hands a message on, at once or as the mood is.
func (f *front) pass(w *wire, p proto.Packet) {
	t, err := proto.ParseTopic(p.Topic)
	f.mu.Lock()
	if err != nil || !f.whims {
		f.mu.Unlock()
		_ = w.deliver(p)
		return
	}
	k := f.kept[t.Kind]
	if k == nil {
		k = &whims{}
		f.kept[t.Kind] = k
	}
	var after []time.Duration
	switch n := f.random.Below(100); {
	case n < 5:
		k.dropped++
	case n < 15: // by a second to two minutes
		k.delayed++
		after = append(after, time.Second<<f.random.Below(7)+time.Duration(f.random.Below(56_000))*time.Millisecond)
	case n < 25:
		k.doubled++
		after = append(after, 0, time.Duration(f.random.Below(10_000))*time.Millisecond)
	case n < 35:
		k.overtaken++
		after = append(after, time.Duration(f.random.Below(300))*time.Millisecond)
	case n < 40 && len(f.pool) > 0: // another's in its place, and it on another's
		k.moved++
		p.Topic = f.pool[f.random.Below(len(f.pool))].Topic
		after = append(after, 0)
	default:
		after = append(after, 0)
	}
	f.mu.Unlock()
	for _, d := range after {
		if d == 0 {
			_ = w.deliver(p)
			continue
		}
		time.AfterFunc(d, func() { f.inject(w.id, p) })
	}
}

// mood lets it do as it likes with what passes, or hand it on.
func (f *front) mood(wild bool, pool []proto.Packet) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.whims, f.pool = wild, pool
}

// inject says something to a client as if it had come. It reports whether the client
// is there.
func (f *front) inject(id string, p proto.Packet) bool {
	f.mu.Lock()
	w := f.wires[id]
	f.mu.Unlock()
	return w != nil && w.deliver(p) == nil
}

func (f *front) isPlanner(id string) bool { return strings.HasPrefix(id, f.planners) }

// planner is the client id of a planner that is there.
func (f *front) planner() (id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name := range f.wires { // any order: there is one
		if f.isPlanner(name) {
			id = name
		}
	}
	return id
}

func (w *wire) deliver(p proto.Packet) error { return w.write(publishPacket(p)) }

func (w *wire) write(raw []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.conn.SetWriteDeadline(time.Now().Add(wirePatience))
	if err == nil {
		_, err = w.out.Write(raw)
	}
	if err == nil {
		err = w.out.Flush()
	}
	if err != nil {
		w.conn.Close()
	}
	return err
}

// readPacket reads one packet of MQTT, whole.
func readPacket(r *bufio.Reader) (kind byte, raw []byte, err error) {
	if kind, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	raw = append(raw, kind)
	n, shift := 0, 0
	for more := true; more; shift += 7 {
		b, err := r.ReadByte()
		if err != nil || shift > 21 {
			return 0, nil, errors.Join(err, errors.New("hostile: no MQTT"))
		}
		raw = append(raw, b)
		n |= int(b&0x7f) << shift
		more = b&0x80 != 0
	}
	head := len(raw)
	raw = append(raw, make([]byte, n)...)
	_, err = io.ReadFull(r, raw[head:])
	return kind, raw, err
}

// body is what follows the length of a packet.
func body(raw []byte) []byte {
	i := 1
	for i < len(raw) && raw[i]&0x80 != 0 {
		i++
	}
	return raw[min(i+1, len(raw)):]
}

// mqttText takes a string with its length before it.
func mqttText(b []byte) (s string, rest []byte, ok bool) {
	if len(b) < 2 || len(b) < 2+int(binary.BigEndian.Uint16(b)) {
		return "", nil, false
	}
	n := 2 + int(binary.BigEndian.Uint16(b))
	return string(b[2:n]), b[n:], true
}

func clientID(connect []byte) (id string, ok bool) {
	_, rest, ok := mqttText(body(connect))
	if !ok || len(rest) < 4 {
		return "", false
	}
	id, _, ok = mqttText(rest[4:]) // behind level, flags and keepalive
	return id, ok && id != ""
}

func parsePublish(kind byte, raw []byte) (p proto.Packet, number uint16, ok bool) {
	topic, rest, ok := mqttText(body(raw))
	if !ok {
		return p, 0, false
	}
	if kind>>1&3 != 0 {
		if len(rest) < 2 {
			return p, 0, false
		}
		number, rest = binary.BigEndian.Uint16(rest), rest[2:]
	}
	return proto.Packet{Kind: proto.Publish, Topic: topic, Payload: bytes.Clone(rest), Retain: kind&1 != 0}, number, true
}

// publishPacket is a message with QoS 0.
func publishPacket(p proto.Packet) []byte {
	kind := byte(packetPublish << 4)
	if p.Retain {
		kind |= 1
	}
	n := 2 + len(p.Topic) + len(p.Payload)
	out := []byte{kind}
	for left := n; ; {
		b := byte(left & 0x7f)
		if left >>= 7; left == 0 {
			out = append(out, b)
			break
		}
		out = append(out, b|0x80)
	}
	out = binary.BigEndian.AppendUint16(out, uint16(len(p.Topic)))
	return append(append(out, p.Topic...), p.Payload...)
}

// close ends it, and with it every connection.
func (f *front) close() {
	_ = f.listener.Close() // nothing is kept in it
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.wires { // any order: all of them
		w.conn.Close()
	}
}
