package seal

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math"
)

// KeyID names a key: the first eight bytes of its SHA-256.
type KeyID [8]byte

func (k KeyID) String() string { return hex.EncodeToString(k[:]) }

// IDOf is the name of a public key.
func IDOf(key ed25519.PublicKey) (id KeyID) {
	sum := sha256.Sum256(key)
	copy(id[:], sum[:])
	return id
}

// Overhead is how much longer a sealed message is, at the most.
const Overhead = len(head) + len(KeyID{}) + 1 + 5 + len(signatureHead) + ed25519.SignatureSize

const (
	// head: tag 18, an array of four; a protected header of 13 bytes, a map of two:
	// algorithm (1) EdDSA (-8), key id (4) of eight bytes, which follow.
	head = "\xd2\x84\x4d\xa2\x01\x27\x04\x48"
	// The protected header alone begins behind tag and array.
	protectedAt = 2
	noHeaders   = 0xa0 // nothing unprotected
	// signed: an array of four, "Signature1" first.
	signed        = "\x84\x6aSignature1"
	signatureHead = "\x58\x40" // 64 bytes
)

// IsSealed tells a sealed message from a plain one, which is a map.
func IsSealed(b []byte) bool { return len(b) > 0 && b[0] == head[0] }

// Sign seals a message for a topic.
func Sign(key ed25519.PrivateKey, topic string, payload []byte) []byte {
	id := IDOf(key.Public().(ed25519.PublicKey))
	out := make([]byte, 0, len(payload)+Overhead)
	out = append(append(append(out, head...), id[:]...), noHeaders)
	out = append(appendHead(out, len(payload)), payload...)
	out = append(out, signatureHead...)
	return append(out, ed25519.Sign(key, toBeSigned(id, topic, payload))...)
}

// toBeSigned is the Sig_structure of RFC 9052 sec 4.4, the topic as external data.
func toBeSigned(id KeyID, topic string, payload []byte) []byte {
	b := make([]byte, 0, len(signed)+len(head)+len(id)+len(topic)+len(payload)+10)
	b = append(append(append(b, signed...), head[protectedAt:]...), id[:]...)
	b = append(appendHead(b, len(topic)), topic...)
	return append(appendHead(b, len(payload)), payload...)
}

// appendHead appends the head of a byte string, the shortest there is.
func appendHead(b []byte, n int) []byte {
	switch {
	case n < 24:
		return append(b, 0x40|byte(n))
	case n <= math.MaxUint8:
		return append(b, 0x58, byte(n))
	case n <= math.MaxUint16:
		return append(b, 0x59, byte(n>>8), byte(n))
	}
	return append(b, 0x5a, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
}

// Sealed is a sealed message that was taken apart. Nothing is believed of it yet.
type Sealed struct {
	Key       KeyID
	Payload   []byte
	signature []byte
}

// ErrForm is what a message is that was not sealed by Sign.
var ErrForm = errors.New("seal: not a COSE_Sign1 of the agreed form")

// Open takes a sealed message apart, without judging it; rest is what follows.
func Open(b []byte) (s Sealed, rest []byte, err error) {
	b, ok := bytes.CutPrefix(b, []byte(head))
	if !ok || len(b) < len(s.Key)+2 || b[len(s.Key)] != noHeaders {
		return s, nil, ErrForm
	}
	copy(s.Key[:], b)
	b = b[len(s.Key)+1:]
	size, n := 0, 1
	switch b[0] {
	case 0x58:
		n = 2
	case 0x59:
		n = 3
	case 0x5a:
		n = 5
	default:
		size = int(b[0]) - 0x40
	}
	if len(b) < n {
		return s, nil, ErrForm
	}
	for _, c := range b[1:n] {
		size = size<<8 | int(c)
	}
	if size < 0 || size > len(b)-n || !bytes.Equal(b[:n], appendHead(nil, size)) {
		return s, nil, ErrForm
	}
	s.Payload = b[n : n+size]
	if b, ok = bytes.CutPrefix(b[n+size:], []byte(signatureHead)); !ok || len(b) < ed25519.SignatureSize {
		return s, nil, ErrForm
	}
	s.signature = b[:ed25519.SignatureSize]
	return s, b[ed25519.SignatureSize:], nil
}

// By reports whether the holder of a key sealed the message, for this topic.
func (s *Sealed) By(key ed25519.PublicKey, topic string) bool {
	return len(key) == ed25519.PublicKeySize && IDOf(key) == s.Key && ed25519.Verify(key, toBeSigned(s.Key, topic, s.Payload), s.signature)
}
