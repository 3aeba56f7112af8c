package server

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"slices"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"ringlight/proto"
	"ringlight/proto/limit"
	"ringlight/proto/seal"
)

// trusted says who a certificate's holder is, where a trust document names holders;
// why not, otherwise.
func trusted(t *seal.Trust, cert *x509.Certificate) (proto.Holder, string) {
	h, err := proto.ParseHolder(cert.Subject.CommonName)
	if err != nil {
		return h, "its certificate names no holder"
	}
	if h.Kind == proto.HolderEnrol && h.Fabric == t.Fabric && len(t.Issuers) > 0 {
		return h, "" // what the token is worth is for the issuer to say
	}
	id, ok := seal.IDOfCertificate(cert)
	if !ok {
		return h, "its certificate's key is not Ed25519"
	}
	k, known := t.Find(id)
	switch {
	case known && k.Holder == h:
		return h, ""
	case !known && h.Kind == proto.HolderNode && h.Fabric == t.Fabric && !t.KnowsNodes():
		return h, "" // whose keys are not told here
	}
	return h, "its key is not trusted as " + h.String()
}

// named: there are rights by name.
func (h *limits) named() bool { return h.trust != nil || h.logins != nil }

// holder is who a client is, by its certificate or by how it logged in.
func (h *limits) holder(cl *mochi.Client) (proto.Holder, string) {
	if h.logins != nil {
		return h.logins.holder(cl)
	}
	conn, ok := cl.Net.Conn.(*tls.Conn)
	if !ok {
		return proto.Holder{}, "it has no certificate"
	}
	chain := conn.ConnectionState().PeerCertificates // on a resumed session too
	if len(chain) == 0 {
		return proto.Holder{}, "it has no certificate"
	}
	return trusted(h.trust(), chain[0])
}

// OnConnectAuthenticate accepts every client of the listener, unless
// there are rights by name: then those whose key is trusted, under client ids of their own,
// with wills on topics of their own.
func (h *limits) OnConnectAuthenticate(cl *mochi.Client, pk packets.Packet) bool {
	if !h.named() {
		return true
	}
	if h.logins != nil {
		h.logins.come(cl, string(pk.Connect.Username), string(pk.Connect.Password))
	}
	who, why := h.holder(cl)
	switch {
	case why != "":
	case !who.OwnsClient(pk.Connect.ClientIdentifier):
		why = "the client id is not one of " + who.String()
	case pk.Connect.WillFlag && !who.Grants().Allow(true, pk.Connect.WillTopic):
		why = "its will is on a topic that is not one of " + who.String()
	}
	if why != "" {
		h.warn(cl, "not let in: "+why)
		if h.logins != nil {
			h.logins.left(cl)
		}
		return false
	}
	return true
}

// name remembers the rights of an accepted client. The caller has the lock.
func (h *limits) name(cl *mochi.Client) {
	if !h.named() {
		return
	}
	who, _ := h.holder(cl)
	h.names[cl] = who.Grants()
}

// may holds a client to the rights of its name.
func (h *limits) may(cl *mochi.Client, topic string, write bool) bool {
	if !h.named() {
		return true
	}
	h.mu.Lock()
	list := h.names[cl]
	h.mu.Unlock()
	if list.Allow(write, topic) {
		return true
	}
	if list != nil {
		verb := "subscribe to "
		if write {
			verb = "publish on "
		}
		h.warn(cl, "by its name it may not "+verb+clip(topic))
	}
	return false
}

// Revoke ends the connections of those whose keys are trusted no more.
func (b *Broker) Revoke() {
	h := b.limits
	if !h.named() {
		return
	}
	h.mu.Lock()
	all := slices.Collect(maps.Keys(h.names)) // any order: each ends by itself
	h.mu.Unlock()
	for _, cl := range all {
		if _, why := h.holder(cl); why != "" {
			h.warn(cl, "thrown out: "+why)
			cl.Stop(packets.ErrNotAuthorized)
			if c := limit.Of(cl.Net.Conn); c != nil {
				c.Reset()
			}
		}
	}
}
