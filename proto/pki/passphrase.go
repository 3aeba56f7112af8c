package pki

import (
	"bytes"
	"crypto/ed25519"
	"encoding/pem"
	"os"

	"github.com/youmark/pkcs8"

	"ringlight/proto"
)

// Passphrase gives the passphrase of the roots' keys; it is asked once, when
// they are needed. Where there is none a key lies in its file as it is.
type Passphrase func() ([]byte, error)

const (
	encryptedType = "ENCRYPTED PRIVATE KEY" // RFC 7468, 11
	// chosen: long enough to be no word; a thief of the file can try without limit.
	leastPassphrase = 12
)

// kept is how a root's key is encrypted: PKCS 8 with PBES2, scrypt and AES-256 (RFC 8018, RFC 7914),
// which openssl reads and changes. chosen: scrypt at 32 MiB, its readers' usual limit.
var kept = &pkcs8.Opts{Cipher: pkcs8.AES256CBC, KDFOpts: pkcs8.ScryptOpts{SaltSize: 16, CostParameter: 1 << 14, BlockSize: 8, ParallelizationParameter: 1}}

// words asks for the passphrase, the first time that it is needed.
func (f *Folder) words() ([]byte, error) {
	if f.passphrase != nil || f.ask == nil {
		return f.passphrase, nil
	}
	words, err := f.ask()
	if err == nil && len(words) < leastPassphrase {
		err = proto.Wrong("passphrase", "at least 12 bytes", "%d", len(words))
	}
	if err == nil {
		f.passphrase = words
	}
	return f.passphrase, err
}

// rootPEM is a root's key as it is kept: as the root before it was.
func (f *Folder) rootPEM() ([]byte, error) {
	if f.passphrase == nil {
		return privatePEM(f.root)
	}
	der, err := pkcs8.MarshalPrivateKey(f.root, f.passphrase, kept)
	return pem.EncodeToMemory(&pem.Block{Type: encryptedType, Bytes: der}), err
}

// readRoot reads a root's key.
func (f *Folder) readRoot(file string) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(file)
	b, _ := pem.Decode(raw)
	if err != nil || b == nil || b.Type != encryptedType {
		return ReadKey(file)
	}
	words, err := f.words()
	if err != nil {
		return nil, err
	}
	if words == nil {
		return nil, proto.Wrong("passphrase", "the words that the root's key is kept under", "%s is encrypted", file)
	}
	key, _, err := pkcs8.ParsePrivateKey(b.Bytes, words)
	if err != nil {
		return nil, proto.Wrong("passphrase", "the words that the root's key is kept under", "%s: %v", file, err)
	}
	root, ok := key.(ed25519.PrivateKey)
	if !ok {
		return nil, proto.Wrong("key", "an Ed25519 key", "%s is none", file)
	}
	return bytes.Clone(root), nil
}
