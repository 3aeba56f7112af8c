package pki

import (
	"cmp"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// Request is for keys and certificates of a kind.
type Request struct {
	Names []proto.Holder
	Role  proto.Role
	Hosts []string // under which it is reached; a planner is at this machine too
	Days  int
	// Stolen: of the issuers before a new one, the last one alone counts on.
	Stolen bool
	Out    string // folder for keys and certificates; "": the root's own
}

// Issued is a key with its certificate, and where they are.
type Issued struct {
	Name     string     `json:"name"`
	Key      seal.KeyID `json:"-"`
	ID       string     `json:"key_id"`
	KeyFile  string     `json:"key"`
	CertFile string     `json:"cert"`
	NotAfter time.Time  `json:"not_after"`
}

// Issue makes a key and a certificate for each name, and trusts the keys, all in
// one edition. A holder that has a key has two from then on, until one is revoked.
func (f *Folder) Issue(r Request) ([]Issued, error) {
	var out []Issued
	var w writer
	trust, nodes := f.Trust.Trust, f.Trust.NodeList()
	trust.Keys = slices.Clone(trust.Keys)
	if err := f.outOf(&r); err != nil {
		return nil, err
	}
	for _, h := range r.Names {
		public, _, text, err := newKey()
		if err != nil {
			return nil, err
		}
		one, err := f.certify(&w, h.String(), public, hostsOf(h, r.Hosts), r.Days, filepath.Join(r.Out, fileName(h.String())+".pem"), true)
		if err != nil {
			return nil, err
		}
		one.KeyFile = filepath.Join(r.Out, fileName(h.String())+".key")
		w.fresh(one.KeyFile, 0o600, text)
		out = append(out, one)
		k := seal.Key{Holder: h, Role: r.Role}
		copy(k.Public[:], public)
		if h.Kind == proto.HolderNode {
			nodes = append(nodes, k)
		} else {
			trust.Keys = append(trust.Keys, proto.TrustedKey{Public: k.Public, Name: h.String(), Role: r.Role})
		}
	}
	return out, f.publish(&w, trust, nodes)
}

// outOf makes the folder that what is issued goes to: this one where none is named.
func (f *Folder) outOf(r *Request) error {
	r.Out = cmp.Or(r.Out, f.Dir)
	if err := os.MkdirAll(r.Out, 0o700); err != nil {
		return proto.Wrong("out", "a folder that can be made", "%v", err)
	}
	return nil
}

// newKey makes a key: what others know of it, and the file that nobody else reads.
func newKey() (public ed25519.PublicKey, key ed25519.PrivateKey, text []byte, err error) {
	if public, key, err = ed25519.GenerateKey(rand.Reader); err == nil {
		text, err = privatePEM(key)
	}
	return public, key, text, err
}

// Broker makes a key and a certificate for a broker that is no planner. It is
// trusted with nothing but to carry messages.
func (f *Folder) Broker(r Request, name string) (Issued, error) {
	public, _, text, err := newKey()
	if err != nil {
		return Issued{}, err
	}
	if err := f.outOf(&r); err != nil {
		return Issued{}, err
	}
	name = f.Trust.Fabric + "/broker/" + name
	var w writer
	one, err := f.certify(&w, name, public, hostsOf(proto.Holder{Kind: proto.HolderPlanner}, r.Hosts), r.Days, filepath.Join(r.Out, fileName(name)+".pem"), true)
	if err != nil {
		return one, err
	}
	one.KeyFile = filepath.Join(r.Out, fileName(name)+".key")
	w.fresh(one.KeyFile, 0o600, text)
	return one, f.settle(&w, f.Trust)
}

// Renew writes a certificate anew for the same name, key and hosts.
func (f *Folder) Renew(file string, days int) (Issued, error) {
	old, err := readCert(file)
	if err != nil {
		return Issued{}, err
	}
	key, _ := old.PublicKey.(ed25519.PublicKey)
	if h, err := proto.ParseHolder(old.Subject.CommonName); err == nil {
		if k, ok := f.Trust.Find(seal.IDOf(key)); !ok || k.Holder != h {
			return Issued{}, proto.Wrong("cert", "a certificate of a key that is trusted", "that of %s is not, in edition %d", h, f.Trust.Edition)
		}
	} else if old.CheckSignatureFrom(f.ca) != nil || !strings.Contains(old.Subject.CommonName, "/broker/") {
		return Issued{}, proto.Wrong("cert", "a certificate that this root issued", "%s is none", file)
	}
	hosts := slices.Clone(old.DNSNames)
	for _, ip := range old.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	var w writer
	one, err := f.certify(&w, old.Subject.CommonName, key, hosts, days, file, false)
	if err != nil {
		return one, err
	}
	return one, f.settle(&w, f.Trust)
}

// certify has a certificate written.
func (f *Folder) certify(w *writer, name string, public ed25519.PublicKey, hosts []string, days int, file string, fresh bool) (Issued, error) {
	der, cert, err := f.issue(name, public, hosts, days)
	if err != nil {
		return Issued{}, err
	}
	text := certPEM(der)
	if len(hosts) > 0 { // a node that knows only a former root goes on from it
		heirs, err := f.heirs()
		if err != nil {
			return Issued{}, err
		}
		text = append(text, heirs...)
	}
	if fresh {
		w.fresh(file, 0o644, text)
	} else {
		w.replace(file, 0o644, text)
	}
	if _, err := proto.ParseHolder(name); err == nil {
		w.issued = append(w.issued, issuedOf(cert))
	}
	id := seal.IDOf(public)
	return Issued{Name: name, Key: id, ID: id.String(), CertFile: file, NotAfter: cert.NotAfter}, nil
}

// issue makes a certificate of a name and key.
func (f *Folder) issue(name string, public ed25519.PublicKey, hosts []string, days int) (der []byte, cert *x509.Certificate, err error) {
	if days < 1 || days > 3650 {
		return nil, nil, proto.Wrong("days", "1 to 3650", "%d", days)
	}
	now := f.now()
	domain := "ringlight"
	if o := f.ca.Subject.Organization; len(o) > 0 {
		domain = o[0]
	}
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name, SerialNumber: seal.IDOf(public).String()}, NotBefore: now.Add(-early), NotAfter: now.AddDate(0, 0, days),
		URIs: []*url.URL{{Scheme: "spiffe", Host: domain, Path: "/" + name}}, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, BasicConstraintsValid: true}
	for _, host := range hosts {
		if ip := net.ParseIP(host); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else if host == "" || strings.ContainsAny(host, "/:@ ") {
			return nil, nil, proto.Wrong("host", "names and addresses, with commas between them", "%q", host)
		} else {
			c.DNSNames = append(c.DNSNames, host)
		}
	}
	if len(hosts) > 0 {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return f.sign(c, f.ca, public)
}

// hostsOf: a planner may have the broker inside, which it reaches itself.
func hostsOf(h proto.Holder, hosts []string) []string {
	if h.Kind != proto.HolderPlanner {
		return hosts
	}
	own := []string{"localhost", "127.0.0.1", "::1"}
	return append(slices.DeleteFunc(own, func(s string) bool { return slices.Contains(hosts, s) }), hosts...)
}

func fileName(name string) string { return strings.ReplaceAll(name, "/", "-") }

func readCert(file string) (*x509.Certificate, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, proto.Wrong("cert", "a readable PEM file", "%v", err)
	}
	b, rest := pem.Decode(raw)
	for b != nil && b.Type == "PRIVATE KEY" { // of a file that has both
		b, rest = pem.Decode(rest)
	}
	if b == nil || b.Type != "CERTIFICATE" {
		return nil, proto.Wrong("cert", "a PEM file with a certificate", "%s", file)
	}
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return nil, proto.Wrong("cert", "a PEM file with a certificate", "%s: %v", file, err)
	}
	if _, ok := c.PublicKey.(ed25519.PublicKey); !ok {
		return nil, proto.Wrong("cert", "a certificate of an Ed25519 key", "%s", file)
	}
	return c, nil
}
