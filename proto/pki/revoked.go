package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"time"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// Files of the folder by which brokers know what is revoked.
const (
	registerName = "issued.json" // stays here
	crlName      = "crl.pem"
)

// register is what the folder remembers besides the trust document, for brokers that
// judge by certificates and names: which certificates a key had, and whose last key is gone.
type register struct {
	Certificates []issued `json:"certificates"`
	Revoked      []string `json:"revoked"`
}

// issued is a certificate that has not ended. Of brokers, issuers and tokens there is none.
type issued struct {
	Serial  string    `json:"serial"`
	Name    string    `json:"name"`
	Subject string    `json:"subject"` // with the key's number, in all but old ones
	Key     string    `json:"key_id"`
	By      string    `json:"by"` // the authority's name
	Ends    time.Time `json:"ends"`
}

func issuedOf(c *x509.Certificate) issued {
	id, _ := seal.IDOfCertificate(c)
	return issued{c.SerialNumber.Text(16), c.Subject.CommonName, c.Subject.String(), id.String(), c.Issuer.CommonName, c.NotAfter}
}

// readRegister reads it; a folder of before there was one has its certificates.
func (f *Folder) readRegister() error {
	raw, err := os.ReadFile(filepath.Join(f.Dir, registerName))
	if err == nil {
		if err = proto.DecodeFile(raw, &f.issued); err != nil {
			err = proto.Wrong("dir", "a readable "+registerName, "%v", err)
		}
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list, _ := filepath.Glob(filepath.Join(f.Dir, "*.pem")) // the pattern is right
	for _, name := range list {
		if c, err := readCert(name); err == nil && !c.IsCA {
			if _, err := proto.ParseHolder(c.Subject.CommonName); err == nil {
				f.issued.Certificates = append(f.issued.Certificates, issuedOf(c))
			}
		}
	}
	return nil
}

// note brings the register up to an edition and to what is written along with it.
func (f *Folder) note(w *writer, t *seal.Trust) (next register) {
	next.Certificates = slices.DeleteFunc(slices.Concat(f.issued.Certificates, w.issued), func(i issued) bool { return f.now().After(i.Ends) })
	next.Revoked = slices.Concat(f.issued.Revoked, w.revoked)
	slices.Sort(next.Revoked)
	names := map[string]bool{}
	for _, k := range t.All() {
		names[k.Holder.String()] = true
	}
	for name := range w.users { // any order: it fills a set
		names[name] = true
	}
	next.Revoked = slices.DeleteFunc(slices.Compact(next.Revoked), func(name string) bool { return names[name] || slices.Contains(w.welcome, name) })
	return next
}

// counts: a certificate's key is still trusted under its name.
func (i issued) counts(t *seal.Trust) bool {
	var id seal.KeyID
	_, err := hex.Decode(id[:], []byte(i.Key))
	k, ok := t.Find(id)
	return err == nil && ok && k.Holder.String() == i.Name
}

// revocations writes the lists of revoked certificates, one for each authority whose
// certificates a broker may meet: it refuses those of which it has no list. Of a root whose
// key is not here any more, and of an issuer, whose key is the planner's, the list that there is stays.
func (f *Folder) revocations(w *writer, authorities []byte) ([]byte, error) {
	lists, err := f.readLists(w.lists)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for b, rest := pem.Decode(authorities); b != nil; b, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, err
		}
		var was *x509.RevocationList
		if i := slices.IndexFunc(lists, func(l *x509.RevocationList) bool { return bytes.Equal(l.AuthorityKeyId, c.SubjectKeyId) }); i >= 0 {
			was = lists[i]
		}
		key, err := f.rootKey(c)
		switch {
		case err == nil:
			list, err := f.revoke(c, key, was)
			if err != nil {
				return nil, err
			}
			out.Write(list)
		case was != nil:
			out.Write(crlPEM(was.Raw))
		}
	}
	for _, l := range lists {
		if slices.ContainsFunc(slices.Concat(f.Trust.Issuers, f.Trust.Former), func(k proto.PublicKey) bool { return isBy(l, k) }) {
			out.Write(crlPEM(l.Raw))
		}
	}
	return out.Bytes(), nil
}

// Unlisted names the authorities of which there is no list of revoked certificates, where
// there is a mosquitto: it refuses theirs until crl.pem has one.
func (f *Folder) Unlisted() (names []string) {
	authorities, err := os.ReadFile(filepath.Join(f.Dir, caName))
	lists, bad := f.readLists(nil)
	if _, gone := os.Stat(filepath.Join(f.Dir, KindMosquitto, "mosquitto.conf")); errors.Join(err, bad, gone) != nil {
		return nil
	}
	for b, rest := pem.Decode(authorities); b != nil; b, rest = pem.Decode(rest) {
		c, err := x509.ParseCertificate(b.Bytes)
		if err == nil && !slices.ContainsFunc(lists, func(l *x509.RevocationList) bool { return bytes.Equal(l.AuthorityKeyId, c.SubjectKeyId) }) {
			names = append(names, c.Subject.String())
		}
	}
	return names
}

// readLists reads the lists that there are, and more.
func (f *Folder) readLists(more []byte) (lists []*x509.RevocationList, err error) {
	raw, err := os.ReadFile(filepath.Join(f.Dir, crlName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for b, rest := pem.Decode(append(raw, more...)); b != nil; b, rest = pem.Decode(rest) {
		l, err := x509.ParseRevocationList(b.Bytes)
		if err != nil {
			return nil, proto.Wrong("dir", "a readable "+crlName, "%v", err)
		}
		lists = append(lists, l)
	}
	return lists, nil
}

// isBy: a list is of an issuer.
func isBy(l *x509.RevocationList, issuer proto.PublicKey) bool {
	id := seal.IDOf(issuer[:])
	return bytes.Equal(l.AuthorityKeyId, id[:])
}

func (f *Folder) rootKey(c *x509.Certificate) (ed25519.PrivateKey, error) {
	if f.root != nil && f.root.Public().(ed25519.PublicKey).Equal(c.PublicKey) {
		return f.root, nil
	}
	id, ok := seal.IDOfCertificate(c)
	if !ok {
		return nil, fs.ErrNotExist
	}
	return f.readRoot(f.rootFile(id))
}

// revoke writes one authority's list. It is good as long as the authority: the root is
// offline, and a list that ends would shut everybody out.
func (f *Folder) revoke(by *x509.Certificate, key ed25519.PrivateKey, was *x509.RevocationList) ([]byte, error) {
	l := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: f.now().Add(-early), NextUpdate: by.NotAfter}
	if was != nil {
		l.Number.Add(was.Number, l.Number)
		// Of two the later one counts, by the second.
		if least := was.ThisUpdate.Add(time.Second); l.ThisUpdate.Before(least) {
			l.ThisUpdate = least
		}
	}
	for _, i := range f.issued.Certificates {
		serial, ok := new(big.Int).SetString(i.Serial, 16)
		if ok && i.By == by.Subject.CommonName && !i.counts(f.Trust) {
			l.RevokedCertificateEntries = append(l.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: serial, RevocationTime: l.ThisUpdate})
		}
	}
	der, err := x509.CreateRevocationList(rand.Reader, l, by, key)
	return crlPEM(der), err
}

func crlPEM(der []byte) []byte { return pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}) }

// settle writes what was asked for, and along with it what brokers are told: all that
// follows from an edition before the edition, so that half of it is asked for again.
func (f *Folder) settle(w *writer, t *seal.Trust) error {
	if w.users == nil {
		users, err := f.users()
		if err != nil {
			return err
		}
		w.users = users
	}
	next := *f
	next.Trust, next.issued = t, f.note(w, t)
	text, err := json.MarshalIndent(next.issued, "", " ")
	if err != nil {
		return err
	}
	authorities := w.content(filepath.Join(f.Dir, caName))
	if authorities == nil {
		if authorities, err = os.ReadFile(filepath.Join(f.Dir, caName)); err != nil {
			return err
		}
	}
	lists, err := next.revocations(w, authorities)
	if err != nil {
		return err
	}
	var told writer
	told.replace(filepath.Join(f.Dir, registerName), 0o600, append(text, '\n'))
	told.replace(filepath.Join(f.Dir, crlName), 0o644, lists)
	if _, err := os.Stat(filepath.Join(f.Dir, usersName)); err == nil || len(w.users) > 0 {
		told.replace(filepath.Join(f.Dir, usersName), 0o600, usersFile(w.users))
	}
	if err := next.tellBrokers(&told, w, authorities, lists); err != nil {
		return err
	}
	i := slices.IndexFunc(w.files, func(f file) bool { return !f.fresh })
	if i < 0 {
		i = len(w.files)
	}
	w.files = slices.Insert(w.files, i, told.files...) // behind new keys, which may be refused
	if err := w.settle(); err != nil {
		return err
	}
	f.Trust, f.issued = next.Trust, next.issued
	return nil
}
