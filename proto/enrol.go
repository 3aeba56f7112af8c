package proto

// maxUntil bounds a certificate's end.
const maxUntil = 1 << 40 // seconds

// PEM are certificates, one after the other. chosen: at most 16 KiB; ours have 700 characters each.
type PEM string

// KeyName is the first 8 bytes of a key's SHA-256.
type KeyName [8]byte

// CertRequest asks for a certificate of a new key. It is sealed by that key, which
// proves that it is there, and around it by the key that entitles it to ask: the token's key, or the
// node's key so far.
type CertRequest struct {
	Version uint8     `cbor:"0,keyasint"`
	Node    NodeID    `cbor:"1,keyasint"`
	Public  PublicKey `cbor:"2,keyasint"`
	Token   PEM       `cbor:"3,keyasint,omitempty" max:"16384"` // the token's certificate
}

func (m CertRequest) Validate() error {
	r := rules{}
	r.version(m.Version)
	if m.Public == (PublicKey{}) {
		r.broken("public", "a key", "none")
	}
	return r.result()
}

// CertAnswer is an issuer's word on a key of a node: that it vouches for it, with a
// certificate; why not; or that another is to take its place. Whoever trusts the
// issuer trusts the key: planners that hear it learn it so.
type CertAnswer struct {
	Version  uint8     `cbor:"0,keyasint"`
	Node     NodeID    `cbor:"1,keyasint"`
	Public   PublicKey `cbor:"2,keyasint"`                       // the key that it is about
	Edition  uint64    `cbor:"3,keyasint,omitempty"`             // of the trust document when it was vouched for
	Token    KeyName   `cbor:"4,keyasint"`                       // of the token whose one use this was; zero: of none
	Until    uint64    `cbor:"5,keyasint,omitempty"`             // when the certificate ends, in seconds
	Chain    PEM       `cbor:"6,keyasint,omitempty" max:"16384"` // certificates: the key's first
	Roots    PEM       `cbor:"7,keyasint,omitempty" max:"16384"` // certificates of the authorities
	Refused  string    `cbor:"8,keyasint,omitempty"`             // why there is none
	Renew    bool      `cbor:"9,keyasint,omitempty"`             // ask for another key
	Replaces PublicKey `cbor:"10,keyasint"`                      // the node's key so far; none: the token's
}

func (m CertAnswer) Validate() error {
	r := rules{}
	r.version(m.Version)
	if m.Public == (PublicKey{}) {
		r.broken("public", "a key", "none")
	}
	r.within("edition", 0, MaxCount, m.Edition)
	r.within("until", 0, maxUntil, m.Until)
	if vouches := m.Refused == "" && !m.Renew; vouches != (len(m.Chain) > 0) || vouches != (m.Edition > 0) {
		r.broken("chain", "certificates and an edition where it vouches, else none", "%d and %d", len(m.Chain), m.Edition)
	}
	return r.result()
}

// Vouches reports whether the answer is that the key is the node's.
func (m *CertAnswer) Vouches() bool { return len(m.Chain) > 0 }
