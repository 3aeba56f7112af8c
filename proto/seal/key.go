package seal

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
)

// ParseKey reads an Ed25519 key from PEM, PKCS 8.
func ParseKey(text []byte) (ed25519.PrivateKey, error) {
	b, _ := pem.Decode(text)
	if b == nil {
		return nil, errors.New("no PEM")
	}
	key, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	if err != nil {
		return nil, err
	}
	ed, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("not an Ed25519 key")
	}
	return ed, nil
}

// IDOfCertificate is the name of a certificate's key; false: it is not an Ed25519 key.
func IDOfCertificate(c *x509.Certificate) (KeyID, bool) {
	key, ok := c.PublicKey.(ed25519.PublicKey)
	return IDOf(key), ok
}
