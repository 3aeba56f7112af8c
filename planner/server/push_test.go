package server

import (
	"crypto/ed25519"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/proto/seal"
	"ringlight/sim/freeport"
)

// signing seals with one key, and judges nothing.
type signing struct{ ed25519.PrivateKey }

func (s signing) Open(*proto.Packet) proto.Passage { return proto.Passes }
func (s signing) Seal(p *proto.Packet) {
	if p.Kind == proto.Publish {
		p.Payload = seal.Sign(s.PrivateKey, p.Topic, p.Payload)
	}
}

// pushed is how many states go to a fabric of the largest size.
const pushed = 10_000

// BenchmarkPush brings 10,000 desired states, plain and sealed, through a broker to one
// who reads them all: the time, and the processor's share of it a state, of both ends
// and of the broker.
func BenchmarkPush(b *testing.B) {
	embedded, err := StartBroker("127.0.0.1:0", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer embedded.Close()
	b.Run("embedded", func(b *testing.B) { push(b, embedded.URL(), 0) })
	b.Run("mosquitto", func(b *testing.B) {
		url, pid := mosquitto(b)
		push(b, url, pid)
	})
}

func mosquitto(b *testing.B) (url string, pid int) {
	binary, err := exec.LookPath("mosquitto")
	if err != nil {
		if binary = "/usr/sbin/mosquitto"; exec.Command("test", "-x", binary).Run() != nil {
			b.Skip("there is no mosquitto")
		}
	}
	at := freeport.Address()
	file := filepath.Join(b.TempDir(), "m.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, "listener %s 127.0.0.1\nallow_anonymous true\nmax_queued_messages 20000\n", strings.TrimPrefix(at, "127.0.0.1:")), 0o600); err != nil {
		b.Fatal(err)
	}
	c := exec.Command(binary, "-c", file)
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() }) // it has nothing to keep
	return "mqtt://" + at, c.Process.Pid
}

// processor is the time that this process, and another, have had.
func processor(pid int) time.Duration {
	var use syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &use) // fails for another name alone
	all := time.Duration(use.Utime.Nano() + use.Stime.Nano())
	if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); pid != 0 && err == nil {
		var user, sys int64
		f := strings.Fields(string(raw[strings.LastIndex(string(raw), ")")+1:]))
		fmt.Sscan(f[11], &user)
		fmt.Sscan(f[12], &sys)
		all += time.Duration(user+sys) * 10 * time.Millisecond
	}
	return all
}

func push(b *testing.B, url string, pid int) {
	for _, how := range []string{"plain", "sealed"} {
		b.Run(how, func(b *testing.B) {
			at := proto.Topics{Fabric: how} // what the broker keeps of one is not for the other
			from, to := mqtt.Config{Broker: url, ClientID: "from", Ordered: true, Queue: pushed}, mqtt.Config{Broker: url, ClientID: "to", Ordered: true, Queue: 2 * pushed, Subscriptions: []string{at.EveryNode(proto.TopicDesired)}}
			if how == "sealed" {
				from.Guard = signing{ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))}
			}
			links := make([]*mqtt.Link, 2)
			for i, cfg := range []mqtt.Config{to, from} {
				l, err := mqtt.Dial(cfg)
				if err != nil {
					b.Fatal(err)
				}
				defer l.Close()
				for p := range l.Recv() {
					if p.Kind == proto.LinkUp {
						break
					}
				}
				links[i] = l
			}
			used := processor(pid)
			for b.Loop() {
				go func() {
					for id := range proto.NodeID(pushed) {
						d := proto.Desired{Version: proto.Version, Node: id, Term: 7, Generation: 4711, Plan: proto.Digest{1}, Life: 1 << 60, Decisions: []proto.RingID{3}, BypassSeq: 7,
							Rings: []proto.RingAssignment{{Ring: 3, Generation: 4711, Position: 5, Size: 16, Envelope: proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500},
								Left: []proto.Candidate{{Path: proto.External1, Peer: id + 1}}, Right: []proto.Candidate{{Bundle: 1, Path: proto.External1, Peer: id + 2}}}}}
						raw, err := proto.Encode(&d)
						if err != nil {
							panic(err)
						}
						if err := links[1].Send(proto.Packet{Kind: proto.Publish, Topic: at.Desired(id), Payload: raw, QoS: 1, Retain: true}); err != nil {
							panic(err)
						}
					}
				}()
				for n := 0; n < pushed; {
					if p := <-links[0].Recv(); p.Kind == proto.Publish {
						n++
					}
				}
			}
			used = processor(pid) - used
			b.ReportMetric(float64(used.Microseconds())/float64(b.N*pushed), "cpu-us/state")
			b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*pushed), "us/state")
		})
	}
}
