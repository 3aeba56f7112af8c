package guard

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/seal"
)

// Identity is a node's own key with its certificate, which it asks for over MQTT:
// with a token at first, with the key so far ever after. The key is made here and
// never leaves. Each file is whole or not there, the new key is on disk before
// anybody hears of it, and the certificate, with its key in the same file, comes
// last: whoever is cut short goes on from what lies there, with the same key.
type Identity struct {
	dir    string
	topics proto.Topics
	node   proto.NodeID
	log    *slog.Logger
	write  func(name string, content []byte) error

	mu    sync.Mutex
	key   ed25519.PrivateKey // with a certificate; nil: there is none yet
	next  ed25519.PrivateKey // waits for its certificate
	send  func(proto.Packet) error
	renew func(*ed25519.PrivateKey) // is told that another key is in use
	trust func() *seal.Trust
}

// Files of an identity in its folder.
const (
	identityName = "identity.pem" // key and certificate
	nextName     = "next.key"     // key that waits for its certificate
	caName       = "ca.pem"
	trustName    = "trust.cose"
)

// OpenIdentity reads what is there of an identity.
func OpenIdentity(dir, fabric string, node proto.NodeID, log *slog.Logger) (*Identity, error) {
	i := &Identity{dir: dir, topics: proto.Topics{Fabric: fabric}, node: node, log: limit.Logger(log), write: writeFile}
	var err error
	if i.key, err = i.read(identityName); err == nil {
		i.next, err = i.read(nextName)
	}
	if i.next != nil && i.next.Equal(i.key) {
		i.next = nil // cut short after the certificate came
	}
	return i, err
}

func (i *Identity) read(name string) (ed25519.PrivateKey, error) {
	raw, err := readFile(filepath.Join(i.dir, name), maxKey)
	if os.IsNotExist(err) {
		return nil, nil
	}
	var key ed25519.PrivateKey
	if err == nil {
		key, err = seal.ParseKey(raw)
	}
	if err != nil {
		return nil, proto.Wrong("state", "a readable "+name+", or none and a new token", "%s: %v", filepath.Join(i.dir, name), err)
	}
	return key, nil
}

// Enrolled: there is a certificate.
func (i *Identity) Enrolled() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.key != nil
}

// IdentityFiles are where key and certificate, authorities and trust document are kept.
func IdentityFiles(dir string) (pair, ca, trust string) {
	return filepath.Join(dir, identityName), filepath.Join(dir, caName), filepath.Join(dir, trustName)
}

// ed25519PKCS8 begins a key in PKCS 8; its seed follows.
var ed25519PKCS8 = []byte{0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20}

func keyPEM(key ed25519.PrivateKey) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: append(bytes.Clone(ed25519PKCS8), key.Seed()...)})
}

func public(key ed25519.PrivateKey) (p proto.PublicKey) {
	copy(p[:], key.Public().(ed25519.PublicKey))
	return p
}

// request asks for a certificate of the key that waits for one, which is made where
// there is none. The caller has the lock.
func (i *Identity) request(topic string, by ed25519.PrivateKey, token proto.PEM) (p proto.Packet, err error) {
	if i.next == nil {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err == nil {
			err = i.write(filepath.Join(i.dir, nextName), keyPEM(key))
		}
		if err != nil {
			return p, err
		}
		i.next = key
	}
	b, err := proto.Encode(proto.CertRequest{Version: proto.Version, Node: i.node, Public: public(i.next), Token: token})
	return proto.Packet{Topic: topic, QoS: 1, Payload: seal.Sign(by, topic, seal.Sign(i.next, topic, b))}, err
}

// take keeps a certificate of the key that waited for it. first is the trust document
// where there was none. The caller has the lock.
func (i *Identity) take(a *proto.CertAnswer, t *seal.Trust, first bool) error {
	b, _ := pem.Decode([]byte(a.Chain))
	if b == nil {
		return proto.Wrong("chain", "PEM", "none")
	}
	c, err := x509.ParseCertificate(b.Bytes)
	if err != nil {
		return err
	}
	if name := i.topics.NodeHolder(i.node).String(); c.Subject.CommonName != name || !i.next.Public().(ed25519.PublicKey).Equal(c.PublicKey) {
		return proto.Wrong("chain", "a certificate of "+name+" and the key that was sent", "%q", c.Subject.CommonName)
	}
	var roots []byte
	for rest := []byte(a.Roots); ; {
		if b, rest = pem.Decode(rest); b == nil {
			break
		}
		// Whom to trust is the document's word: an issuer cannot add to it.
		if c, err := x509.ParseCertificate(b.Bytes); err == nil {
			if key, ok := c.PublicKey.(ed25519.PublicKey); ok && t.SealedBy(key) {
				roots = append(roots, pem.EncodeToMemory(b)...)
			}
		}
	}
	if roots == nil {
		return proto.Wrong("roots", "a certificate of a root that sealed the trust document", "none")
	}
	pair, ca, trust := IdentityFiles(i.dir)
	if err := i.write(ca, roots); err != nil {
		return err
	}
	if first {
		if err := i.write(trust, t.File()); err != nil {
			return err
		}
	}
	if err := i.write(pair, append(keyPEM(i.next), a.Chain...)); err != nil {
		return err
	}
	i.key, i.next = i.next, nil
	_ = os.Remove(filepath.Join(i.dir, nextName)) // the next start knows that it is in use
	return nil
}

// token is a file of ocsctl pki token.
type token struct {
	key   ed25519.PrivateKey
	cert  proto.PEM
	roots []ed25519.PublicKey
}

func readToken(file string) (t token, err error) {
	raw, err := readFile(file, maxKey)
	if err != nil {
		return t, proto.Wrong("token", "a readable file", "%v", err)
	}
	for b, rest := pem.Decode(raw); b != nil; b, rest = pem.Decode(rest) {
		text := pem.EncodeToMemory(b)
		if c, err := x509.ParseCertificate(b.Bytes); err != nil {
			if key, err := seal.ParseKey(text); err == nil {
				t.key = key
			}
		} else if key, ok := c.PublicKey.(ed25519.PublicKey); ok && c.IsCA {
			t.roots = append(t.roots, key)
		} else {
			t.cert = proto.PEM(text)
		}
	}
	if t.key == nil || t.cert == "" || len(t.roots) == 0 {
		return t, proto.Wrong("token", "a file of ocsctl pki token", "%s", file)
	}
	return t, nil
}

// Wire is a link to a broker.
type Wire interface {
	Send(proto.Packet) error
	Recv() <-chan proto.Packet
}

const (
	askEvery = 5 * time.Second // chosen: a planner that was away is back by then
	// afterRefusal is longer: a person is needed.
	afterRefusal = time.Minute
)

// Enrolling are the topics that the holder of a token listens to.
func (i *Identity) Enrolling() []string {
	return []string{i.topics.Enrol(i.node, proto.TopicEnrolCRT), i.topics.Trust()}
}

// Enrol asks with a token, over a link that the token opened, until there is a
// certificate, or ctx or the link has ended.
func (i *Identity) Enrol(ctx context.Context, tokenFile string, wire Wire) error {
	t, err := readToken(tokenFile)
	if err != nil {
		return err
	}
	ask := time.Tick(askEvery)
	e := enrolment{Identity: i, token: t}
	for up := false; ; {
		select {
		case p, ok := <-wire.Recv():
			switch {
			case !ok:
				return errors.New("guard: the link has ended")
			case p.Kind == proto.LinkUp:
				up = true
				err = e.ask(wire)
			case p.Kind == proto.LinkDown:
				up = false
			case p.Kind == proto.Publish && p.Sealed != nil:
				err = e.hear(&p)
			}
		case <-ask:
			if up && time.Since(e.refused) >= afterRefusal {
				err = e.ask(wire)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
		if err != nil || i.Enrolled() {
			return err
		}
	}
}

// enrolment is one under way.
type enrolment struct {
	*Identity
	token   token
	trust   *seal.Trust
	answer  []byte
	refused time.Time
	said    string
}

func (e *enrolment) ask(wire Wire) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, err := e.request(e.topics.Enrol(e.node, proto.TopicEnrolCSR), e.token.key, e.token.cert)
	if err == nil {
		_ = wire.Send(p) // it is asked again
	}
	return err
}

// hear takes what is said: the trust document, by a root of the token, and then an
// issuer's word.
func (e *enrolment) hear(p *proto.Packet) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if p.Topic == e.topics.Trust() {
		t, err := seal.ReadTrust(p.Sealed)
		if err != nil || t.Fabric != e.topics.Fabric || e.trust != nil && t.Edition <= e.trust.Edition {
			return nil
		}
		for _, root := range e.token.roots {
			if t.SealedBy(root) {
				e.trust = t
			}
		}
	} else {
		e.answer = p.Sealed
	}
	if e.trust == nil || e.answer == nil || e.next == nil {
		return nil
	}
	a, _, err := e.trust.Issued(e.answer, e.topics.Enrol(e.node, proto.TopicEnrolCRT))
	switch {
	case err != nil || a.Public != public(e.next):
		return nil // addressed to another, or to none
	case a.Refused != "":
		if e.refused = time.Now(); e.said != a.Refused {
			e.said = a.Refused
			e.log.Error("the token is refused; the agent goes on without a planner", "reason", a.Refused)
		}
		return nil
	case !a.Vouches():
		return nil
	}
	if err = e.take(&a, e.trust, true); err == nil {
		e.log.Info("enrolled", "name", e.topics.NodeHolder(e.node).String(), "key", seal.IDOf(e.key.Public().(ed25519.PublicKey)).String())
	}
	return err
}

// Attach lets a guard, which hears of renewals, and a link serve the identity. again
// has the link made anew.
func (i *Identity) Attach(g *Guard, send func(proto.Packet) error, again func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.trust, i.send = g.Trust, send
	i.renew = func(key *ed25519.PrivateKey) {
		g.key.Store(key)
		again()
	}
}

// Hear takes an issuer's word on the topic of the node: it is Config.Hear.
func (i *Identity) Hear(p proto.Packet) {
	i.mu.Lock()
	defer i.mu.Unlock()
	topic := i.topics.CRT(i.node)
	if i.send == nil || p.Topic != topic {
		return
	}
	a, _, err := i.trust().Issued(p.Sealed, topic)
	switch {
	case err != nil:
		i.log.Warn("a word on the own key is not believed", "reason", err)
	case a.Renew && a.Public == public(i.key):
		p, err := i.request(i.topics.CSR(i.node), i.key, "")
		if err != nil {
			i.log.Error("no other key can be made", "error", err)
			return
		}
		_ = i.send(p) // it is asked for again
	case a.Vouches() && i.next != nil && a.Public == public(i.next):
		if err := i.take(&a, i.trust(), false); err != nil {
			i.log.Error("the new certificate is not kept; the former one is used", "error", err)
			return
		}
		i.log.Info("the own key has changed", "key", seal.IDOf(i.key.Public().(ed25519.PublicKey)).String(), "until", time.Unix(int64(a.Until), 0).UTC())
		key := i.key
		i.renew(&key)
	case a.Refused != "" && i.next != nil && a.Public == public(i.next):
		i.log.Error("another key is refused", "reason", a.Refused)
	}
}
