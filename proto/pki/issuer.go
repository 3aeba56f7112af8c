package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// maxRootsTold bounds the authorities that a node is told with its certificate, in bytes.
// chosen: some ten; it needs the newest, and PEM has 16 KiB.
const maxRootsTold = 8 << 10

// maxTokenDays bounds how long a token is good. chosen: from the order to the rack.
const maxTokenDays = 90

// Issuer makes a key that vouches for nodes from now on, beside the one before it,
// which vouches for no more when another one takes its place. What was vouched for
// before is renewed; a node that was away meanwhile is known by it until then, unless one of the
// keys before the last is stolen: then none of those counts. One file has key and certificate.
func (f *Folder) Issuer(r Request, name string) (Issued, error) {
	if err := proto.CheckName("name", name); err != nil {
		return Issued{}, err
	}
	if f.ca.MaxPathLenZero {
		return Issued{}, proto.Wrong("dir", "a root that may have issuers: ocsctl pki trust sign -new-root makes one", "this one is of before there were any")
	}
	if r.Days < 1 || r.Days > 3650 {
		return Issued{}, proto.Wrong("days", "1 to 3650", "%d", r.Days)
	}
	public, key, text, err := newKey()
	if err != nil {
		return Issued{}, err
	}
	if err := f.outOf(&r); err != nil {
		return Issued{}, err
	}
	name = f.Trust.Fabric + "/issuer/" + name
	now, id := f.now(), seal.IDOf(public)
	der, cert, err := f.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: f.ca.Subject.Organization}, NotBefore: now.Add(-early), NotAfter: now.AddDate(0, 0, r.Days),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, SubjectKeyId: id[:], KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, f.ca, public)
	if err != nil {
		return Issued{}, err
	}
	var w writer
	if w.lists, err = f.revoke(cert, key, nil); err != nil { // now or never: the key goes to the planner
		return Issued{}, err
	}
	one := Issued{Name: name, Key: id, ID: id.String(), KeyFile: filepath.Join(r.Out, fileName(name)+".pem"), NotAfter: cert.NotAfter}
	one.CertFile = one.KeyFile
	w.fresh(one.KeyFile, 0o600, append(text, certPEM(der)...))
	trust := f.Trust.Trust
	last := min(1, len(trust.Issuers))
	trust.Former = slices.Concat(trust.Issuers[last:], trust.Former)
	trust.Former = trust.Former[:min(len(trust.Former), proto.MaxFormer)]
	if r.Stolen {
		trust.Former = nil
	}
	trust.Issuers = append([]proto.PublicKey{proto.PublicKey(public)}, trust.Issuers[:last]...)
	if len(trust.Issuers) > 1 {
		trust.Renew = trust.Edition + 1
	}
	return one, f.publish(&w, trust, f.Trust.NodeList())
}

// Renewal has every key of a node replaced that an issuer vouched for until now.
func (f *Folder) Renewal() error {
	var w writer
	trust := f.Trust.Trust
	trust.Renew = trust.Edition + 1
	return f.publish(&w, trust, f.Trust.NodeList())
}

// Tokens makes a token for each node: a certificate, with its key, that is good for
// asking an issuer for one certificate of that node, once.
func (f *Folder) Tokens(r Request) ([]Issued, error) {
	switch {
	case len(f.Trust.Issuers) == 0:
		return nil, proto.Wrong("dir", "a folder with an issuer: ocsctl pki issuer", "nobody could take a token")
	case r.Days < 1 || r.Days > maxTokenDays:
		return nil, proto.Wrong("days", "1 to "+strconv.Itoa(maxTokenDays), "%d", r.Days)
	}
	if err := f.outOf(&r); err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(f.Dir, caName))
	if err != nil {
		return nil, err
	}
	var w writer
	var out []Issued
	for _, h := range r.Names {
		h.Kind = proto.HolderEnrol
		public, _, text, err := newKey()
		if err != nil {
			return nil, err
		}
		now := f.now()
		der, cert, err := f.sign(&x509.Certificate{Subject: pkix.Name{CommonName: h.String(), SerialNumber: strconv.FormatUint(f.Trust.Edition, 10)}, NotBefore: now.Add(-early), NotAfter: now.AddDate(0, 0, r.Days),
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true}, f.ca, public)
		if err != nil {
			return nil, err
		}
		id := seal.IDOf(public)
		file := filepath.Join(r.Out, fileName(h.String())+".token")
		out = append(out, Issued{Name: h.String(), Key: id, ID: id.String(), KeyFile: file, CertFile: file, NotAfter: cert.NotAfter})
		w.fresh(file, 0o600, slices.Concat(text, certPEM(der), ca))
		h.Kind = proto.HolderNode
		w.welcome = append(w.welcome, h.String())
	}
	return out, f.settle(&w, f.Trust)
}

// end has nothing count any more that was vouched for a node until now.
func end(t *proto.Trust, n proto.NodeID) error {
	t.Ended = slices.DeleteFunc(slices.Clone(t.Ended), func(e proto.EndedKeys) bool { return e.Node == n })
	if len(t.Ended) == proto.MaxEnded {
		return proto.Wrong("name", "at most "+strconv.Itoa(proto.MaxEnded)+" nodes revoked under one issuer", "make another issuer, twice: then nothing of the former counts")
	}
	t.Ended = append(t.Ended, proto.EndedKeys{Node: n, Edition: t.Edition + 1})
	return nil
}

// IssuerKey is an issuer's file, opened.
type IssuerKey struct {
	Key   ed25519.PrivateKey
	cert  *x509.Certificate
	chain []byte // its certificate, PEM
	roots []byte
	pool  *x509.CertPool
	now   func() time.Time
}

// OpenIssuer opens an issuer's file and that of the authorities.
func OpenIssuer(file, caFile string) (*IssuerKey, error) {
	i := &IssuerKey{now: time.Now, pool: x509.NewCertPool()}
	var err error
	if i.Key, err = ReadKey(file); err != nil {
		return nil, proto.Wrong("issuer", "a file of ocsctl pki issuer", "%v", err)
	}
	if i.cert, err = readCert(file); err != nil || !i.cert.IsCA || !i.Key.Public().(ed25519.PublicKey).Equal(i.cert.PublicKey) {
		return nil, proto.Wrong("issuer", "a file of ocsctl pki issuer", "%s has no certificate of its key that may issue others", file)
	}
	i.chain = certPEM(i.cert.Raw)
	all, err := os.ReadFile(caFile)
	if err != nil || !i.pool.AppendCertsFromPEM(all) {
		return nil, proto.Wrong("ca", "the authorities, with an issuer", "%q: %v", caFile, err)
	}
	for b, rest := pem.Decode(all); b != nil && len(i.roots) < maxRootsTold; b, rest = pem.Decode(rest) {
		i.roots = append(i.roots, pem.EncodeToMemory(b)...) // the newest come first
	}
	if _, err := i.cert.Verify(x509.VerifyOptions{Roots: i.pool, CurrentTime: i.time(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return nil, proto.Wrong("issuer", "a certificate by a root of "+caFile, "%v: where the root is, type ocsctl pki issuer", err)
	}
	return i, nil
}

// time is not before what is known to be past.
func (i *IssuerKey) time() time.Time {
	if t := i.now(); t.After(i.cert.NotBefore) {
		return t
	}
	return i.cert.NotBefore.Add(early)
}

// Certify makes a certificate of a node's key, with its chain.
func (i *IssuerKey) Certify(h proto.Holder, public proto.PublicKey, days int) (chain, roots proto.PEM, until time.Time, err error) {
	f := Folder{root: i.Key, ca: i.cert, now: i.time}
	der, cert, err := f.issue(h.String(), public[:], nil, days)
	if err != nil {
		return "", "", until, err
	}
	return proto.PEM(append(certPEM(der), i.chain...)), proto.PEM(i.roots), cert.NotAfter, nil
}

// Token is what the certificate of a token says.
type Token struct {
	Holder  proto.Holder
	Key     ed25519.PublicKey
	Edition uint64 // of the trust document, when it was made
	Made    time.Time
}

// Token reads the certificate of a token.
func (i *IssuerKey) Token(text proto.PEM) (t Token, err error) {
	bad := func(format string, args ...any) (Token, error) {
		return Token{}, proto.Wrong("token", "one of ocsctl pki token", format, args...)
	}
	b, _ := pem.Decode([]byte(text))
	if b == nil {
		return bad("no PEM")
	}
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return bad("%v", err)
	}
	if t.Holder, err = proto.ParseHolder(c.Subject.CommonName); err != nil || t.Holder.Kind != proto.HolderEnrol {
		return bad("it is of %q", c.Subject.CommonName)
	}
	if bytes.Equal(c.RawIssuer, i.cert.RawSubject) {
		return bad("a root alone makes tokens")
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: i.pool, CurrentTime: i.time(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		return bad("%v: where the root is, type ocsctl pki token", err)
	}
	var ok bool
	t.Key, ok = c.PublicKey.(ed25519.PublicKey)
	if t.Edition, err = strconv.ParseUint(c.Subject.SerialNumber, 10, 64); err != nil || !ok {
		return bad("it has no edition")
	}
	t.Made = c.NotBefore.Add(early)
	return t, nil
}
