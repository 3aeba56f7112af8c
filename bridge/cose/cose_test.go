package cose

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/veraison/go-cose"

	"ringlight/proto/seal"
)

var update = flag.Bool("update", false, "rewrite the vectors that the main module is held to")

const vectors = "../../proto/seal/testdata/cose.txt"

// theirs is a message as go-cose seals it.
func theirs(t *testing.T, key ed25519.PrivateKey, topic string, payload []byte) []byte {
	t.Helper()
	signer, err := cose.NewSigner(cose.AlgorithmEdDSA, key)
	if err != nil {
		t.Fatal(err)
	}
	id := seal.IDOf(key.Public().(ed25519.PublicKey))
	m := cose.NewSign1Message()
	m.Headers.Protected = cose.ProtectedHeader{cose.HeaderLabelAlgorithm: cose.AlgorithmEdDSA, cose.HeaderLabelKeyID: id[:]}
	m.Payload = payload
	if err := m.Sign(nil, []byte(topic), signer); err != nil {
		t.Fatal(err)
	}
	b, err := m.MarshalCBOR()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func keyOf(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// Goal: a sealed message is COSE_Sign1 to somebody else's code, byte for byte.
// Method: keys, topics and payloads of all lengths at which the form changes, sealed
// by both and read by both.
func TestSealsAreCOSE(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var out strings.Builder
	fmt.Fprintln(&out, "# key seed byte, topic, payload, sealed by github.com/veraison/go-cose; go test ./bridge/cose -update")
	sizes := []int{1, 23, 24, 95, 255, 256, 300, 65535, 65536}
	for i := range 400 {
		size := sizes[i%len(sizes)]
		if i >= len(sizes) {
			size = 1 + random.IntN(2000)
		}
		payload := make([]byte, size)
		for j := range payload {
			payload[j] = byte(random.Uint32())
		}
		key, topic := keyOf(byte(i)), fmt.Sprintf("ocs/v1/f%d/n/%d/desired", i, random.IntN(20000))
		if i%7 == 0 {
			topic = strings.Repeat("t", 1+i)
		}
		want, got := theirs(t, key, topic, payload), seal.Sign(key, topic, payload)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d bytes for %s: ours\n%x, theirs\n%x", size, topic, got, want)
		}
		s, rest, err := seal.Open(want)
		if err != nil || len(rest) > 0 || !bytes.Equal(s.Payload, payload) || !s.By(key.Public().(ed25519.PublicKey), topic) {
			t.Fatalf("%d bytes: theirs is not read by ours: %v", size, err)
		}
		var m cose.Sign1Message
		verifier, err := cose.NewVerifier(cose.AlgorithmEdDSA, key.Public())
		if err != nil {
			t.Fatal(err)
		}
		if err := m.UnmarshalCBOR(got); err != nil {
			t.Fatal(err)
		}
		if err := m.Verify([]byte(topic), verifier); err != nil {
			t.Fatal(err)
		}
		if err := m.Verify([]byte(topic+"x"), verifier); err == nil {
			t.Fatal("theirs takes ours for another topic")
		}
		if size <= 300 && i < 40 {
			fmt.Fprintf(&out, "%d %s %s %s\n", i, topic, hex.EncodeToString(payload), hex.EncodeToString(got))
		}
	}
	if *update {
		if err := os.WriteFile(vectors, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(vectors); err != nil || string(have) != out.String() {
		t.Errorf("%s is not what go-cose makes (%v)", vectors, err)
	}
}
