package server

import (
	"context"
	"crypto/x509"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"ringlight/planner/jobapi"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/seal"
)

// Seals says how the planner's messages are sealed and whose it believes.
type Seals struct {
	Mode      guard.Mode
	TrustFile string
	Kept      string // file of the highest edition that was seen
	Reports   bool   // of agents are to be sealed too
	Issuer    string // file of ocsctl pki issuer: nodes are given certificates; empty: they are not
}

// tls are the PEM files of the link or of the embedded broker. A key without an
// authority, where nothing is encrypted, is for seals alone.
func (c *Config) tls() (ca, cert, key string) {
	if c.Seals.Mode.On() && c.CAFile == "" && !guard.Encrypted(c.Broker) {
		return "", "", ""
	}
	return c.CAFile, c.CertFile, c.KeyFile
}

// checkSeals reports what is wrong with how messages are sealed.
func (c *Config) checkSeals() error {
	if c.Seals.Issuer != "" && (!c.Seals.Mode.On() || c.CAFile == "") {
		return proto.Wrong("issuer", "with seal warn or enforce, and ca", "one of them is missing")
	}
	return c.Seals.Mode.Check()
}

// secure begins what goes on beside the planner's link: certificates for nodes, and
// another connection where the own key has changed. It gives what ends it.
func (s *server) secure(again func()) (stop func()) {
	if s.guard != nil {
		s.guard.Changed(again)
	}
	if s.issues == nil {
		return func() {}
	}
	return s.issues.serve(s)
}

// warnings are alarms that people must look at and the planner does not find itself: of
// what issuers and of what seals found.
type warnings struct {
	issued, doubted []proto.AlarmStatus
	looked          time.Time
	trust           *seal.Trust // as it was then

	awayAt time.Time              // since when the store is away
	full   atomic.Pointer[string] // why a write to it is tried again; nil: it is not
	room   string                 // that the store's disk lacks, "": it has enough
	roomAt time.Time
}

// revoked are the nodes that had a key in one edition of a trust document and have none
// in the next, or of whom what was vouched before counts no more.
func revoked(was, is *seal.Trust) (nodes []proto.NodeID) {
	if was == nil || is == nil {
		return nil
	}
	left := map[proto.NodeID]bool{}
	for _, k := range is.NodeList() {
		left[k.Holder.Node] = true
	}
	for _, k := range was.NodeList() {
		if n := k.Holder.Node; !left[n] {
			nodes, left[n] = append(nodes, n), true
		}
	}
	for _, e := range is.Ended {
		if e.Edition > was.Ends(e.Node) && !left[e.Node] {
			nodes = append(nodes, e.Node)
		}
	}
	return nodes
}

// lookAgain is how soon it is looked again whose seals are in doubt. chosen: as often as
// the planner looks at its own alarms.
const lookAgain = 2 * time.Second

// lookAtSeals has an alarm stand for everybody whose messages are not sealed as they
// must be.
func (s *server) lookAtSeals(now time.Time) {
	w := &s.warnings
	if s.guard == nil || now.Sub(w.looked) < lookAgain {
		return
	}
	w.looked, w.doubted = now, w.doubted[:0:0]
	if t := s.guard.Trust(); t != w.trust {
		if gone := revoked(w.trust, t); len(gone) > 0 {
			s.host.Revoked(gone)
		}
		w.trust = t
	}
	for _, d := range s.guard.Doubts(now) {
		a := proto.AlarmStatus{ID: guard.Name(d.Topic) + "/unsealed", Check: "seal", Subject: guard.Name(d.Topic), Severity: proto.SeverityWarning, What: "not sealed as it must be", Why: proto.Clip(d.Topic.Kind.String() + ": " + d.Reason + ", and not read")}
		if d.Read {
			a.Why = proto.Clip(d.Topic.Kind.String() + ": " + d.Reason + ", and read, as nothing is enforced")
		}
		if d.Topic.Client == "" && guard.Name(d.Topic) != "planner" {
			a.Node = &d.Topic.Node
		}
		w.doubted = append(w.doubted, a)
	}
}

// newGuard is what stands at the planner's link, and what vouches for keys; nil: nothing does.
func (c *Config) newGuard(fabric string) (*guard.Guard, *issuer, error) {
	i, err := c.issuing()
	if err != nil {
		return nil, nil, err
	}
	g := guard.Config{Mode: c.Seals.Mode, Fabric: fabric, Role: proto.RolePlanner, KeyFile: c.KeyFile, TrustFile: c.Seals.TrustFile,
		Kept: c.Seals.Kept, Reports: c.Seals.Reports, Log: c.Log}
	if i != nil {
		g.Hear, g.Used = i.hear, i.register.used
		g.Also = func(id seal.KeyID) (seal.Vouched, bool) {
			e, ok := i.register.find(id)
			return e.vouched(fabric), ok
		}
	}
	at, err := guard.New(g)
	return at, i, err
}

// embedded is the embedded broker, with rights by name where a guard knows names.
func (c *Config) embedded(g *guard.Guard) BrokerConfig {
	ca, cert, key := c.tls()
	b := BrokerConfig{Listen: c.Listen, CAFile: ca, CertFile: cert, KeyFile: key, Passwords: c.Passwords, Insecure: c.Insecure, Log: c.Log}
	if g != nil {
		b.Trust = g.Trust
	}
	return b
}

// tellAgain is how soon everybody is told again whom to trust, when one was born and the
// broker keeps nothing. chosen: a fleet that comes back is told with one or two messages.
const tellAgain = 2 * time.Second

// announce tells everybody whom to trust, once on each connection and for each edition,
// and where the broker keeps nothing after births. Whoever hears it judges it by its root.
func (s *server) announce() {
	if s.guard == nil {
		return
	}
	t := s.guard.Trust()
	if t == s.told && !(s.born && time.Since(s.toldAt) >= tellAgain) {
		return
	}
	if s.sendOut(proto.Packet{Kind: proto.Publish, Topic: s.topics.Trust(), Payload: t.Sealed(), QoS: proto.TopicTrust.QoS(), Retain: proto.TopicTrust.Retain()}) == nil {
		s.told, s.toldAt, s.born = t, time.Now(), false
		if s.broker != nil {
			s.broker.Revoke()
		}
	}
}

// mayAct says why a client over HTTP may not change anything, nil when it may. Who has a
// certificate is who it says, in every mode: nodes, brokers and planners ask for nothing.
// Where seals are enforced it takes the key of one who may over the broker, or the socket,
// which has an owner and a group.
func (s *server) mayAct(r *http.Request) error {
	why, may := "the connection has no certificate", true
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		name := r.TLS.PeerCertificates[0].Subject.CommonName
		why, may = name+" is not trusted with that", !machine(name)
	}
	if may && (s.guard == nil || s.cfg.Seals.Mode != guard.Enforce || s.admin(r)) {
		return nil
	}
	return &proto.Error{Code: proto.Denied, Field: "author", Limit: "the certificate of one trusted as admin, or a unix socket", Reason: why}
}

// trusting serves those whose certificates the trust document names, what their names may
// read: at each request, and while one lasts.
func (s *server) trusting(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil { // on loopback, or on the socket
			h.ServeHTTP(w, r)
			return
		}
		if err := s.maySee(r); err != nil {
			w.Header().Set("Connection", "close")
			jobapi.Refuse(w, err)
			return
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go s.watchOver(ctx, cancel, r)
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// watchOver ends a request when who asked may not any more.
func (s *server) watchOver(ctx context.Context, end func(), r *http.Request) {
	look := time.Tick(lookAgain)
	for {
		select {
		case <-look:
			if s.maySee(r) != nil {
				end()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

// maySee says why the holder of a certificate may not read what it asks for, nil when it may.
// Where there is a trust document it has to name the key. Operators and planners read all;
// a node whether the planner is there; brokers and tokens nothing.
func (s *server) maySee(r *http.Request) *proto.Error {
	health := r.URL.Path == healthPath || r.URL.Path == readyPath || r.URL.Path == leaderPath
	return s.mayRead(r.TLS.PeerCertificates[0], health) // the listener wants one
}

func (s *server) mayRead(leaf *x509.Certificate, health bool) *proto.Error {
	name := leaf.Subject.CommonName
	limit, why := "a certificate of ocsctl pki that is not revoked", ""
	if s.guard != nil {
		s.guard.Look()
		_, why = trusted(s.guard.Trust(), leaf)
	}
	if why == "" {
		h, _ := proto.ParseHolder(name) // none is of no kind
		if !machine(name) || h.Kind == proto.HolderPlanner || h.Kind == proto.HolderNode && health {
			return nil
		}
		limit, why = "the certificate of an operator; a node's for "+healthPath+", "+readyPath+" and "+leaderPath, name+" is not to read this"
	}
	return &proto.Error{Code: proto.Denied, Field: "author", Limit: limit, Reason: why}
}

// Door is a planner to what serves it beside HTTP.
type Door struct{ *server }

// May says why the holder of a certificate may not ask that, nil when it may: what maySee
// says, and acts take the role that the trust document gives. Without a trust document every
// operator may act. who is nil of a connection without a certificate, on loopback: it acts
// where nobody looks at seals.
func (d Door) May(who *x509.Certificate, q *proto.OpRequest) error {
	name, role := "the connection has no certificate", proto.Role(0)
	if who != nil {
		if err := d.mayRead(who, false); err != nil {
			return err
		}
		name = who.Subject.CommonName
		if h, _ := proto.ParseHolder(name); h.Kind == proto.HolderPlanner && q.Needs() > proto.RoleView {
			return &proto.Error{Code: proto.Denied, Field: "author", Limit: "the certificate of an operator", Reason: name + " plans, and asks for nothing"}
		}
	}
	if q.Needs() <= proto.RoleView || d.guard == nil {
		return nil
	}
	if who != nil {
		role = d.role(who)
		name += " has the role " + role.String()
	}
	if role >= q.Needs() {
		return nil
	}
	return &proto.Error{Code: proto.Denied, Field: "author", Limit: "the certificate of one trusted with the role " + q.Needs().String(), Reason: name}
}

// machine: a name of ocsctl pki that is no operator's.
func machine(name string) bool {
	part := strings.Split(name, "/")
	return len(part) == 3 && part[1] != string(proto.HolderOperator)
}

// admin: the client may do everything, wherever it is.
func (s *server) admin(r *http.Request) bool {
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && at.Network() == "unix" {
		return true
	}
	return r.TLS != nil && len(r.TLS.PeerCertificates) > 0 && s.role(r.TLS.PeerCertificates[0]) == proto.RoleAdmin
}

// role is that which the trust document gives the holder of a certificate; 0: none.
func (s *server) role(who *x509.Certificate) proto.Role {
	id, ok := seal.IDOfCertificate(who)
	if k, known := s.guard.Trust().Find(id); ok && known {
		return k.Role
	}
	return 0
}
