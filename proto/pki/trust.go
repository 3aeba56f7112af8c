package pki

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"path/filepath"
	"slices"
	"strings"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// Add trusts a key that its holder made, by the certificate request's or
// certificate's public key; the name is the holder's.
func (f *Folder) Add(h proto.Holder, role proto.Role, certFile string) (seal.KeyID, error) {
	c, err := readCert(certFile)
	if err != nil {
		return seal.KeyID{}, err
	}
	k := seal.Key{Holder: h, Role: role}
	copy(k.Public[:], c.PublicKey.(ed25519.PublicKey))
	id := seal.IDOf(k.Public[:])
	if have, ok := f.Trust.Find(id); ok {
		return id, proto.Wrong("cert", "a key that is not trusted yet", "%s has it", have.Holder)
	}
	trust, nodes := f.Trust.Trust, f.Trust.NodeList()
	if h.Kind == proto.HolderNode {
		nodes = append(nodes, k)
	} else {
		trust.Keys = append(slices.Clone(trust.Keys), proto.TrustedKey{Public: k.Public, Name: h.String(), Role: role})
	}
	var w writer
	return id, f.publish(&w, trust, nodes)
}

// Revoke trusts a holder's keys no more, or only that whose number begins with id.
func (f *Folder) Revoke(name, id string) (gone []seal.KeyID, err error) {
	is := func(k proto.PublicKey, holder string) bool {
		n := seal.IDOf(k[:])
		if holder != name || !strings.HasPrefix(n.String(), id) {
			return false
		}
		gone = append(gone, n)
		return true
	}
	trust := f.Trust.Trust
	trust.Keys = slices.DeleteFunc(slices.Clone(trust.Keys), func(k proto.TrustedKey) bool { return is(k.Public, k.Name) })
	nodes := slices.DeleteFunc(f.Trust.NodeList(), func(k seal.Key) bool { return is(k.Public, k.Holder.String()) })
	users, err := f.users()
	if err != nil {
		return nil, err
	}
	if h, err := proto.ParseHolder(name); err == nil && h.Kind == proto.HolderNode && h.Fabric == trust.Fabric && id == "" && len(trust.Issuers) > 0 {
		if err := end(&trust, h.Node); err != nil {
			return nil, err
		}
	} else if len(gone) == 0 && (id != "" || users[name] == "") {
		return nil, &proto.Error{Code: proto.NotFound, Field: "name", Limit: "a name of ocsctl pki list", Reason: "no key of " + strings.TrimSpace(name+" "+id) + " is trusted"}
	}
	if id != "" && len(gone) > 1 {
		return nil, proto.Wrong("key", "the beginning of one key's number", "%d keys begin with %q", len(gone), id)
	}
	if id == "" {
		delete(users, name)
	}
	w := writer{revoked: []string{name}, users: users} // while no key of it is left
	return gone, f.publish(&w, trust, nodes)
}

// NewRoot replaces the root. A node that knows a former one goes on from it: by the seals of all
// of them on the document, and, at a broker, by a certificate of each by the one before.
func (f *Folder) NewRoot() error {
	_, root, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	domain := "ringlight"
	if o := f.ca.Subject.Organization; len(o) > 0 {
		domain = o[0]
	}
	var w writer
	next := *f
	next.root = root
	if next.ca, err = next.newAuthority(f.Trust.Fabric, domain, &w); err != nil {
		return err
	}
	heirs, err := f.heirs()
	if err != nil {
		return err
	}
	der, _, err := f.sign(&x509.Certificate{Subject: next.ca.Subject, NotBefore: next.ca.NotBefore, NotAfter: next.ca.NotAfter, SubjectKeyId: next.ca.SubjectKeyId,
		IsCA: true, BasicConstraintsValid: true, MaxPathLen: 1, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}, f.ca, root.Public())
	if err != nil {
		return err
	}
	w.replace(filepath.Join(f.Dir, heirsName), 0o644, append(certPEM(der), heirs...))
	if err := next.publish(&w, f.Trust.Trust, f.Trust.NodeList()); err != nil {
		return err
	}
	*f = next
	return nil
}

// Seal seals the document anew, as the next edition.
func (f *Folder) Seal() error {
	var w writer
	return f.publish(&w, f.Trust.Trust, f.Trust.NodeList())
}

// Files are where the certificates of the authority and the document are.
func (f *Folder) Files() (ca, trust string) {
	return filepath.Join(f.Dir, caName), filepath.Join(f.Dir, TrustName)
}
