package seal

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"slices"

	"ringlight/proto"
)

// Key is a trusted key and who holds it.
type Key struct {
	Public proto.PublicKey
	Holder proto.Holder
	Role   proto.Role
}

// Trust is a trust document whose root stands for it.
//
// On the wire it is sealed once by each of the last roots, the newest innermost:
// a node that knows any of them can go on to the last. In a file the keys of the nodes
// follow, 36 bytes each, by rising number.
type Trust struct {
	proto.Trust
	sealed []byte // as it is told to everybody
	nodes  []byte // list of their keys; nil: not known here
	layers []Sealed
	keys   map[KeyID]Key
	also   func(KeyID) (Vouched, bool)
}

// Vouched is a key of a node that an issuer vouches for.
type Vouched struct {
	Key
	Issuer  proto.PublicKey
	Edition uint64 // of the trust document, when it was
}

const (
	// MaxRoots bounds the roots that seal one document. chosen: a new one every four months
	// of the twenty years that a root's certificate lasts; 6 KB of seals.
	MaxRoots = 64
	nodeKey  = 4 + len(proto.PublicKey{})
	// MaxTrustFile bounds a file: a document, and a key for each node twice.
	MaxTrustFile = 64 << 20
)

func untrusted(format string, args ...any) error {
	return &proto.Error{Code: proto.Invalid, Field: "trust", Limit: "a trust document that its root sealed", Reason: proto.Clip(fmt.Sprintf(format, args...))}
}

// ReadTrust reads a document, from a file or from the wire. That its root sealed
// it says nothing of whether that root is to be trusted: see Follows.
func ReadTrust(b []byte) (*Trust, error) {
	t := &Trust{}
	for payload := b; IsSealed(payload); {
		if len(t.layers) == MaxRoots {
			return nil, untrusted("more than %d seals", MaxRoots)
		}
		s, rest, err := Open(payload)
		switch {
		case err != nil:
			return nil, untrusted("%v", err)
		case len(t.layers) == 0:
			t.sealed, t.nodes = b[:len(b)-len(rest)], rest
		case len(rest) > 0:
			return nil, untrusted("bytes after an inner seal")
		}
		t.layers, payload = append(t.layers, s), s.Payload
	}
	if len(t.layers) == 0 {
		return nil, untrusted("not sealed")
	}
	last := &t.layers[len(t.layers)-1]
	if _, err := proto.Decode(last.Payload, &t.Trust); err != nil {
		return nil, err
	}
	if !last.By(t.Root[:], t.topic()) {
		return nil, untrusted("its root did not seal it")
	}
	return t, t.index()
}

func (t *Trust) topic() string { return proto.Topics{Fabric: t.Fabric}.Trust() }

// index makes the keys known by their names.
func (t *Trust) index() error {
	t.keys = make(map[KeyID]Key, len(t.Keys)+len(t.nodes)/nodeKey)
	for _, k := range t.Keys {
		h, _ := proto.ParseHolder(k.Name) // checked by Decode
		t.keys[IDOf(k.Public[:])] = Key{k.Public, h, k.Role}
	}
	if len(t.nodes) == 0 {
		t.nodes = nil
		return nil
	}
	if len(t.nodes) != int(t.NodeKeys)*nodeKey || proto.DigestOf(t.nodes) != t.Nodes {
		return untrusted("the list of the nodes' keys is not the one that it names")
	}
	for b := range slices.Chunk(t.nodes, nodeKey) {
		k := Key{Holder: proto.Topics{Fabric: t.Fabric}.NodeHolder(proto.NodeID(binary.BigEndian.Uint32(b))), Role: proto.RoleNode}
		copy(k.Public[:], b[4:])
		t.keys[IDOf(k.Public[:])] = k
	}
	return nil
}

// Follows says why a document may not take the place of another, nil if it may:
// it is of the same fabric, of a higher edition, and the other's root sealed it.
func (t *Trust) Follows(was *Trust) error {
	switch {
	case t.Fabric != was.Fabric:
		return untrusted("of fabric %s, not %s", t.Fabric, was.Fabric)
	case t.Edition <= was.Edition:
		return untrusted("edition %d, known is %d", t.Edition, was.Edition)
	}
	if t.SealedBy(was.Root[:]) {
		return nil
	}
	return untrusted("edition %d is not sealed by the root of edition %d", t.Edition, was.Edition)
}

// SealedBy reports whether one of the roots that sealed the document is this one.
func (t *Trust) SealedBy(root []byte) bool {
	return slices.ContainsFunc(t.layers, func(s Sealed) bool { return s.By(root, t.topic()) })
}

// Also has those keys found too that issuers vouch for. Before the document is used.
func (t *Trust) Also(find func(KeyID) (Vouched, bool)) { t.also = find }

// Find finds a key.
func (t *Trust) Find(id KeyID) (Key, bool) {
	k, ok := t.keys[id]
	if !ok && t.also != nil {
		var v Vouched
		if v, ok = t.also(id); ok {
			k, ok = v.Key, t.Counts(&v)
		}
	}
	return k, ok
}

// Counts reports whether a key counts that is vouched for.
func (t *Trust) Counts(v *Vouched) bool {
	return (slices.Contains(t.Issuers, v.Issuer) || slices.Contains(t.Former, v.Issuer)) && v.Edition >= t.Ends(v.Holder.Node)
}

// Issued opens what an issuer sealed, and names the issuer.
func (t *Trust) Issued(sealed []byte, topic string) (a proto.CertAnswer, issuer proto.PublicKey, err error) {
	s, rest, err := Open(sealed)
	if err != nil || len(rest) > 0 {
		return a, issuer, denied("a seal", ErrForm.Error())
	}
	for _, issuer = range t.Issuers {
		if IDOf(issuer[:]) == s.Key && s.By(issuer[:], topic) {
			_, err = proto.Decode(s.Payload, &a)
			return a, issuer, err
		}
	}
	return a, issuer, denied(fmt.Sprintf("a seal by an issuer of edition %d", t.Edition), "key "+s.Key.String()+" is none")
}

// KnowsNodes reports whether the keys of nodes came with the document, or there
// are none.
func (t *Trust) KnowsNodes() bool { return t.nodes != nil || t.NodeKeys == 0 }

// Sealed is the document as it is told to everybody.
func (t *Trust) Sealed() []byte { return t.sealed }

// File is the document with the keys of the nodes.
func (t *Trust) File() []byte { return slices.Concat(t.sealed, t.nodes) }

// NodeList are the keys of all nodes, by number.
func (t *Trust) NodeList() (list []Key) {
	for b := range slices.Chunk(t.nodes, nodeKey) {
		k := Key{Holder: proto.Topics{Fabric: t.Fabric}.NodeHolder(proto.NodeID(binary.BigEndian.Uint32(b))), Role: proto.RoleNode}
		copy(k.Public[:], b[4:])
		list = append(list, k)
	}
	return list
}

// All are the keys that the document has, of planners and operators first.
func (t *Trust) All() (list []Key) {
	for _, k := range t.Keys {
		list = append(list, t.keys[IDOf(k.Public[:])])
	}
	return append(list, t.NodeList()...)
}

// Admits is what can be said of a sealed message without its signature: the key is
// trusted, and may speak on the topic.
func (t *Trust) Admits(s *Sealed, topic string, parsed proto.Topic) error {
	k, ok := t.Find(s.Key)
	switch {
	case !ok:
		return denied(fmt.Sprintf("a key of edition %d", t.Edition), "key "+s.Key.String()+" is revoked, or unknown here")
	case !k.Holder.Speaks(k.Role, parsed):
		return Refuse(Foreign, "one's own topics", k.Holder.String()+" has no word on "+topic)
	}
	return nil
}

// Author judges a sealed message by its topic: who sealed it, and may.
func (t *Trust) Author(s *Sealed, topic string, parsed proto.Topic) (Key, error) {
	if err := t.Admits(s, topic, parsed); err != nil {
		return Key{}, err
	}
	k, _ := t.Find(s.Key)
	if !s.By(k.Public[:], topic) {
		return Key{}, Refuse(Forged, "a seal by "+k.Holder.String(), "the signature is wrong")
	}
	return k, nil
}

func denied(limit, reason string) error { return Refuse(Untrusted, limit, reason) }

// WriteTrust seals a document by its root, and, where it takes the place of others
// of former roots, by each of those that is given, the oldest last.
func WriteTrust(m proto.Trust, nodes []Key, root ed25519.PrivateKey, former ...ed25519.PrivateKey) (*Trust, error) {
	nodes = slices.Clone(nodes)
	slices.SortStableFunc(nodes, func(a, b Key) int { return int(int64(a.Holder.Node) - int64(b.Holder.Node)) })
	var list []byte
	for _, k := range nodes {
		list = append(binary.BigEndian.AppendUint32(list, uint32(k.Holder.Node)), k.Public[:]...)
	}
	m.Version, m.NodeKeys, m.Nodes = proto.Version, uint32(len(nodes)), proto.Digest{}
	copy(m.Root[:], root.Public().(ed25519.PublicKey))
	if len(nodes) > 0 {
		m.Nodes = proto.DigestOf(list)
	}
	b, err := proto.Encode(m)
	if err != nil {
		return nil, err
	}
	topic := proto.Topics{Fabric: m.Fabric}.Trust()
	for _, key := range append([]ed25519.PrivateKey{root}, former...) {
		b = Sign(key, topic, b)
	}
	if len(b) > proto.MaxPayload {
		return nil, &proto.Error{Code: proto.TooLarge, Field: "trust", Limit: fmt.Sprintf("%d bytes", proto.MaxPayload), Reason: fmt.Sprintf("%d bytes", len(b))}
	}
	return ReadTrust(append(b, list...))
}

// Roots are the keys that sealed it, the newest first.
func (t *Trust) Roots() (ids []KeyID) {
	for i := range t.layers {
		ids = append([]KeyID{t.layers[i].Key}, ids...)
	}
	return ids
}
