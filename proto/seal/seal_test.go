package seal

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"os"
	"strconv"
	"strings"
	"testing"
)

func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

func public(k ed25519.PrivateKey) ed25519.PublicKey { return k.Public().(ed25519.PublicKey) }

// Goal: messages are sealed as somebody else's code seals them, byte for byte.
// Method: vectors that bridge/cose wrote with veraison/go-cose. Their negative
// twins: each with every single bit turned, cut at every byte, under another key,
// on another topic.
func TestVectorsOfAnother(t *testing.T) {
	text, err := os.ReadFile("testdata/cose.txt")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if f[0] == "#" {
			continue
		}
		seed, _ := strconv.Atoi(f[0])
		payload, _ := hex.DecodeString(f[2])
		want, _ := hex.DecodeString(f[3])
		key, topic := keyOf(byte(seed)), f[1]
		if got := Sign(key, topic, payload); !bytes.Equal(got, want) || len(got) > len(payload)+Overhead {
			t.Fatalf("%s: sealed as %x", line, got)
		}
		s, rest, err := Open(want)
		if err != nil || len(rest) != 0 || !bytes.Equal(s.Payload, payload) || !s.By(public(key), topic) || !IsSealed(want) {
			t.Fatalf("%s: not taken: %v", line, err)
		}
		if s.By(public(key), topic+"0") || s.By(public(keyOf(byte(seed+1))), topic) || s.By(nil, topic) {
			t.Errorf("%s: taken for another topic or key", line)
		}
		for cut := range want {
			if _, _, err := Open(want[:cut]); err == nil {
				t.Fatalf("%s: taken when cut at %d", line, cut)
			}
		}
		if n++; n > 4 { // some 1,000 verifications each
			continue
		}
		for bit := range 8 * len(want) {
			bad := bytes.Clone(want)
			bad[bit/8] ^= 1 << (bit % 8)
			if s, rest, err := Open(bad); err == nil && len(rest) == 0 && s.By(public(key), topic) {
				t.Fatalf("%s: taken with bit %d turned", line, bit)
			}
		}
	}
	if n < 10 {
		t.Errorf("%d vectors", n)
	}
}

// Goal: a message has one form. Method: lengths that are not the shortest, headers
// beside or instead of ours; what follows is told apart.
func TestOneForm(t *testing.T) {
	key := keyOf(1)
	good := Sign(key, "t", []byte("payload"))
	at := len(head) + len(KeyID{}) + 1
	for name, bad := range map[string][]byte{
		"long length":    append(append(bytes.Clone(good[:at]), 0x58, 7), good[at+1:]...),
		"longer length":  append(append(bytes.Clone(good[:at]), 0x59, 0, 7), good[at+1:]...),
		"no byte string": append(append(bytes.Clone(good[:at]), 0x67), good[at+1:]...),
		"huge length":    append(append(bytes.Clone(good[:at]), 0x5a, 0xff, 0xff, 0xff, 0xff), good[at+1:]...),
		"headers":        append(append(bytes.Clone(good[:at-1]), 0xa1, 1, 2), good[at:]...),
		"no tag":         good[1:],
		"nothing":        nil,
	} {
		if _, _, err := Open(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	s, rest, err := Open(append(bytes.Clone(good), "more"...))
	if err != nil || string(rest) != "more" || !s.By(public(key), "t") {
		t.Errorf("followed by more: %v, %q", err, rest)
	}
}

// Goal: no input makes Open panic or give what By could not judge. Method: fuzzing.
func FuzzOpen(f *testing.F) {
	f.Add(Sign(keyOf(1), "t", []byte("payload")))
	f.Add(Sign(keyOf(1), "t", make([]byte, 70000)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, rest, err := Open(b)
		if err != nil {
			return
		}
		again := append(append([]byte(head), s.Key[:]...), noHeaders)
		again = append(append(appendHead(again, len(s.Payload)), s.Payload...), signatureHead...)
		if again = append(append(again, s.signature...), rest...); !bytes.Equal(again, b) {
			t.Errorf("read as %x", again)
		}
	})
}
