package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// Files of the folder, besides root-ID.key of each root that there was.
const (
	caName    = "ca.pem"
	heirsName = "heirs.pem" // certificates of roots by the one before, the newest first
	TrustName = "trust.cose"
)

// Validity of certificates.
const (
	rootYears = 20 // chosen: its expiry would end all, and its key is offline
	// early is how far before now a certificate begins. chosen: clocks of
	// controllers differ by minutes.
	early = time.Hour
)

// Folder is an open folder. It is for one process at a time.
type Folder struct {
	Dir    string
	Trust  *seal.Trust
	root   ed25519.PrivateKey
	ca     *x509.Certificate
	issued register
	now    func() time.Time

	ask        Passphrase // nil: keys of roots are not encrypted
	passphrase []byte     // once it was asked for
}

// Init makes a folder with a new root that trusts nobody yet. domain is that of
// the names in the certificates, spiffe://domain/f1/n/7; under, where there is one,
// that under which the root's key is kept.
func Init(dir, fabric, domain string, under ...Passphrase) (*Folder, error) {
	if err := proto.CheckName("fabric", fabric); err != nil {
		return nil, err
	}
	if len(fabric) > proto.MaxTrustFabric {
		return nil, proto.Wrong("fabric", fmt.Sprintf("at most %d characters", proto.MaxTrustFabric), "%d", len(fabric))
	}
	if u, err := url.Parse("spiffe://" + domain); err != nil || u.Host != domain || domain == "" {
		return nil, proto.Wrong("domain", "a name such as cluster.example", "%q", domain)
	}
	f := &Folder{Dir: dir, now: time.Now, ask: one(under)}
	if _, err := f.words(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, proto.Wrong("dir", "a folder that can be made", "%v", err)
	}
	for _, name := range []string{caName, TrustName} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return nil, proto.Wrong("dir", "a folder without "+name, "%s has a root already", dir)
		}
	}
	_, root, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	f.root = root
	var w writer
	if f.ca, err = f.newAuthority(fabric, domain, &w); err != nil {
		return nil, err
	}
	t, err := seal.WriteTrust(proto.Trust{Fabric: fabric, Edition: 1}, nil, root)
	if err != nil {
		return nil, err
	}
	w.fresh(filepath.Join(dir, TrustName), 0o644, t.File())
	return f, f.settle(&w, t)
}

// newAuthority makes the certificate of f.root, in front of those that there are.
func (f *Folder) newAuthority(fabric, domain string, w *writer) (*x509.Certificate, error) {
	now := f.now()
	id := seal.IDOf(f.root.Public().(ed25519.PublicKey))
	der, cert, err := f.sign(&x509.Certificate{Subject: pkix.Name{CommonName: fabric + " root " + id.String()[:8], Organization: []string{domain}},
		NotBefore: now.Add(-early), NotAfter: now.AddDate(rootYears, 0, 0), IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}, nil, f.root.Public())
	if err != nil {
		return nil, err
	}
	key, err := f.rootPEM()
	if err != nil {
		return nil, err
	}
	w.fresh(f.rootFile(id), 0o600, key)
	was, err := os.ReadFile(filepath.Join(f.Dir, caName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	w.replace(filepath.Join(f.Dir, caName), 0o644, append(certPEM(der), was...))
	return cert, nil
}

// heirs are the certificates of roots by those before them.
func (f *Folder) heirs() ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(f.Dir, heirsName))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return text, err
}

func (f *Folder) rootFile(id seal.KeyID) string {
	return filepath.Join(f.Dir, "root-"+id.String()+".key")
}

// Open opens a folder. With sign it needs the root's key, and the passphrase where that
// is encrypted: then a new root's will be too.
func Open(dir string, sign bool, under ...Passphrase) (*Folder, error) {
	f := &Folder{Dir: dir, now: time.Now, ask: one(under)}
	raw, err := os.ReadFile(filepath.Join(dir, TrustName))
	if err != nil {
		return nil, proto.Wrong("dir", "a folder made by ocsctl pki init", "%v", err)
	}
	if f.Trust, err = seal.ReadTrust(raw); err != nil {
		return nil, err
	}
	if !f.Trust.KnowsNodes() {
		return nil, proto.Wrong("dir", "a trust document with the keys of the nodes", "%s has them not", TrustName)
	}
	raw, err = os.ReadFile(filepath.Join(dir, caName))
	if err != nil {
		return nil, proto.Wrong("dir", "a folder made by ocsctl pki init", "%v", err)
	}
	for b, rest := pem.Decode(raw); b != nil && f.ca == nil; b, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, proto.Wrong("dir", "a folder made by ocsctl pki init", "%s: %v", caName, err)
		}
		if key, _ := c.PublicKey.(ed25519.PublicKey); bytes.Equal(key, f.Trust.Root[:]) {
			f.ca = c
		}
	}
	if f.ca == nil {
		return nil, proto.Wrong("dir", "a certificate of the root", "none in %s", caName)
	}
	if sign {
		if f.root, err = f.readRoot(f.rootFile(seal.IDOf(f.Trust.Root[:]))); err != nil {
			return nil, err
		}
	}
	return f, f.readRegister()
}

// sign makes a certificate of key; parent nil: its own.
func (f *Folder) sign(c, parent *x509.Certificate, key any) (der []byte, cert *x509.Certificate, err error) {
	if c.SerialNumber, err = rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120)); err != nil {
		return nil, nil, err
	}
	if parent == nil {
		parent = c
	}
	if der, err = x509.CreateCertificate(rand.Reader, c, parent, key, f.root); err != nil {
		return nil, nil, err
	}
	cert, err = x509.ParseCertificate(der)
	return der, cert, err
}

// one is the passphrase of those that were given, nil where none was.
func one(under []Passphrase) Passphrase {
	if len(under) == 0 {
		return nil
	}
	return under[0]
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func privatePEM(key ed25519.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// ReadKey reads a file with an Ed25519 key.
func ReadKey(file string) (ed25519.PrivateKey, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, proto.Wrong("key", "a readable file", "%v", err)
	}
	key, err := seal.ParseKey(raw)
	if err != nil {
		return nil, proto.Wrong("key", "a PEM file with an Ed25519 key, PKCS 8", "%s: %v", file, err)
	}
	return key, nil
}

// former are the roots before this one whose keys are still in the folder, the
// newest first: a node that was away meanwhile goes on from the one it knows.
func (f *Folder) former() (keys []ed25519.PrivateKey, err error) {
	for _, id := range f.Trust.Roots()[1:] {
		if _, err := os.Stat(f.rootFile(id)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		key, err := f.readRoot(f.rootFile(id))
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// publish writes the next edition.
func (f *Folder) publish(w *writer, m proto.Trust, nodes []seal.Key) error {
	former, err := f.former()
	if err != nil {
		return err
	}
	if id := seal.IDOf(f.Trust.Root[:]); id != seal.IDOf(f.root.Public().(ed25519.PublicKey)) {
		was, err := f.readRoot(f.rootFile(id))
		if err != nil {
			return err
		}
		former = append([]ed25519.PrivateKey{was}, former...)
	}
	former = former[:min(len(former), seal.MaxRoots-1)]
	m.Edition = f.Trust.Edition + 1
	t, err := seal.WriteTrust(m, nodes, f.root, former...)
	if err != nil {
		return err
	}
	w.replace(filepath.Join(f.Dir, TrustName), 0o644, t.File())
	return f.settle(w, t)
}
