package guard

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// ErrNoHolder is a certificate whose name or key is none of ocsctl pki's.
var ErrNoHolder = errors.New("guard: the certificate names no holder")

// Sealer seals what an operator asks, and judges nothing.
type Sealer struct{ key ed25519.PrivateKey }

// NewSealer reads whose certificate it is, and the key.
func NewSealer(certFile, keyFile string) (*Sealer, proto.Holder, error) {
	raw, err := readFile(certFile, maxKey)
	if err != nil {
		return nil, proto.Holder{}, proto.Wrong("cert", "a readable PEM file", "%v", err)
	}
	b, _ := pem.Decode(raw)
	if b == nil {
		return nil, proto.Holder{}, ErrNoHolder
	}
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return nil, proto.Holder{}, ErrNoHolder
	}
	h, err := proto.ParseHolder(c.Subject.CommonName)
	if err != nil {
		return nil, h, ErrNoHolder
	}
	if raw, err = readFile(keyFile, maxKey); err != nil {
		return nil, h, proto.Wrong("key", "a readable PEM file", "%v", err)
	}
	key, err := seal.ParseKey(raw)
	if err != nil {
		return nil, h, ErrNoHolder
	}
	return &Sealer{key}, h, nil
}

// Open lets everything through.
func (s *Sealer) Open(*proto.Packet) proto.Passage { return proto.Passes }

// Seal seals questions.
func (s *Sealer) Seal(p *proto.Packet) {
	if t, err := proto.ParseTopic(p.Topic); err == nil && t.Kind == proto.TopicRequest && p.Kind == proto.Publish && !seal.IsSealed(p.Payload) {
		p.Payload = seal.Sign(s.key, p.Topic, p.Payload)
	}
}
