package seal

import (
	"crypto/ed25519"
	"encoding/binary"
	"testing"

	"ringlight/proto"
)

// What seals cost. .ci/seal.sh runs these on amd64, and under user-mode QEMU on arm64
// and arm, where only the ratio to something else that runs there says anything:
// BenchmarkHash is that.

var benchTopics = proto.Topics{Fabric: "f1"}

// desired is the state of a node in a ring of 16 with K 3, as planners send it.
func desired(tb testing.TB, id proto.NodeID) []byte {
	list := func(b proto.BundleID, step int) (out []proto.Candidate) {
		for k := range 3 {
			out = append(out, proto.Candidate{Bundle: b + proto.BundleID(k/2*2), Path: proto.External1 + proto.Path(k%2), Peer: proto.NodeID(int(id) + step*(k+1)), Others: true})
		}
		return out
	}
	d := proto.Desired{Version: proto.Version, Node: id, Term: 7, Generation: 4711, Plan: proto.DigestOf([]byte("plan")), Life: 1 << 60,
		Rings: []proto.RingAssignment{{Ring: 3, Generation: 4711, Position: 5, Size: 16, Policy: proto.PolicyBypass,
			Envelope: proto.Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500},
			Left:     list(0, -1), Right: list(1, 1)}}, Decisions: []proto.RingID{3}, BypassSeq: 7}
	raw, err := proto.Encode(&d)
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

func BenchmarkSign(b *testing.B) {
	key, raw, topic := keyOf(1), desired(b, 1000), benchTopics.Desired(1000)
	for b.Loop() {
		Sign(key, topic, raw)
	}
}

func BenchmarkVerify(b *testing.B) {
	key, topic := keyOf(1), benchTopics.Desired(1000)
	sealed := Sign(key, topic, desired(b, 1000))
	for b.Loop() {
		if s, _, err := Open(sealed); err != nil || !s.By(public(key), topic) {
			b.Fatal("not verified")
		}
	}
}

// BenchmarkHash is a yardstick: a digest of the same message.
func BenchmarkHash(b *testing.B) {
	raw := desired(b, 1000)
	for b.Loop() {
		proto.DigestOf(raw)
	}
}

// BenchmarkPush is 10,000 desired states, plain and sealed: what a planner does for
// the largest fabric, and the bytes of one.
func BenchmarkPush(b *testing.B) {
	for _, sealed := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "sealed"}[sealed]
		b.Run(name, func(b *testing.B) {
			key, total := keyOf(1), 0
			for b.Loop() {
				total = 0
				for id := range proto.NodeID(10_000) {
					raw := desired(b, id+100)
					if sealed {
						raw = Sign(key, benchTopics.Desired(id+100), raw)
					}
					total += len(raw)
				}
			}
			b.ReportMetric(float64(total)/10_000, "bytes/state")
		})
	}
}

// BenchmarkStart is what a start reads: the trust document, with no nodes for an
// agent, with the keys of 10,000 for a planner.
func BenchmarkStart(b *testing.B) {
	for name, n := range map[string]int{"agent": 0, "planner": 10_000} { // any order: independent
		b.Run(name, func(b *testing.B) {
			nodes := make([]Key, n)
			for i := range nodes {
				var seed [ed25519.SeedSize]byte
				binary.BigEndian.PutUint32(seed[:], uint32(i+1))
				copy(nodes[i].Public[:], public(ed25519.NewKeyFromSeed(seed[:])))
				nodes[i].Holder = benchTopics.NodeHolder(proto.NodeID(i))
			}
			var planner proto.PublicKey
			copy(planner[:], public(keyOf(1)))
			t, err := WriteTrust(proto.Trust{Fabric: "f1", Edition: 1, Keys: []proto.TrustedKey{{Public: planner, Name: "f1/planner/a", Role: proto.RolePlanner}}}, nodes, keyOf(9))
			if err != nil {
				b.Fatal(err)
			}
			file := t.File()
			b.ReportMetric(float64(len(file)), "bytes")
			for b.Loop() {
				if _, err := ReadTrust(file); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
