package proto

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
)

// DigestOf is the digest of raw bytes: of a payload as it came, never of a
// re-encoding, since that would lose the keys one does not know.
func DigestOf(raw []byte) Digest {
	sum := sha256.Sum256(raw)
	return Digest(sum[:len(Digest{})])
}

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether the digest is absent.
func (d Digest) IsZero() bool { return d == Digest{} }

func (c Corr) String() string { return hex.EncodeToString(c[:]) }

// PlanDigest names a generation's plan: the digest of the canonical encodings
// of all its desired states in the order of their nodes, each with a zero
// Plan. The order of the argument does not matter.
func PlanDigest(desired []Desired) (Digest, error) {
	order := make([]int, len(desired))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return int(int64(desired[a].Node) - int64(desired[b].Node)) })
	hash := sha256.New()
	var buf []byte
	for _, i := range order {
		d := desired[i]
		d.Plan = Digest{}
		var err error
		if buf, err = AppendEncode(buf[:0], &d); err != nil {
			return Digest{}, err
		}
		hash.Write(buf)
	}
	return Digest(hash.Sum(nil)[:len(Digest{})]), nil
}
