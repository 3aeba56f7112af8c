package server

import (
	"cmp"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"ringlight/planner"
	"ringlight/proto"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

const (
	// certDays is how long a node's certificate is good; at two thirds it is renewed.
	// chosen: planner or node may be away for ten days.
	certDays = 30
	// demandsAtOnce bounds those who are asked to change keys in one second, and each
	// makes its connection anew. chosen: 10,000 nodes in ten minutes.
	demandsAtOnce = 16
	// demandAgain is when one that did not is asked again.
	demandAgain = 10 * time.Second
	// meetEvery is how often a planner that follows reads the register anew. chosen: who
	// takes over reads it first.
	meetEvery = 10 * time.Second
	// maxAsked bounds what waits for the issuer; a node that is left out asks again.
	maxAsked = 1024
)

// issuer answers requests for certificates, and asks for renewal. It has a goroutine
// of its own: a certificate takes a write to the disk.
type issuer struct {
	file, ca string
	trust    func() *seal.Trust
	send     func(proto.Packet) error
	uncached bool
	log      *slog.Logger
	register *register
	store    Store // nil: of tests
	asked    chan proto.Packet
	leads    atomic.Bool // only the planner in service answers
	warn     func([]proto.AlarmStatus)
	warned   int

	key      *pki.IssuerKey
	read     [2]time.Time // when the files were last written
	bad      string
	demanded map[proto.PublicKey]time.Time // when they were last asked to give way
	turn     proto.NodeID                  // the node asked next, or the first one after
	now      func() time.Time
	met      bool      // the register has met the store since this planner leads
	followed bool      // another planner wrote the store in this life
	metAt    time.Time // and batches of the store then
	batches  uint64
}

func newIssuer(file, ca string, uncached bool, r *register, log *slog.Logger) *issuer {
	return &issuer{file: file, ca: ca, uncached: uncached, register: r, log: log, asked: make(chan proto.Packet, maxAsked), demanded: map[proto.PublicKey]time.Time{}, now: time.Now}
}

// issuing is what vouches for keys, where the configuration has a file for that.
func (c *Config) issuing() (*issuer, error) {
	if c.Seals.Issuer == "" {
		return nil, nil
	}
	if _, err := pki.OpenIssuer(c.Seals.Issuer, c.CAFile); err != nil {
		return nil, err
	}
	r, err := openRegister(c.Seals.Kept + ".keys")
	if err != nil {
		return nil, err
	}
	return newIssuer(c.Seals.Issuer, c.CAFile, c.Uncached, r, c.Log), nil
}

// subscriptions are what an issuer listens to.
func (i *issuer) subscriptions(fabric string) []string {
	if i == nil {
		return nil
	}
	t := proto.Topics{Fabric: fabric}
	return []string{t.EveryNode(proto.TopicCSR), t.EveryNode(proto.TopicCRT), t.EveryEnrolment(proto.TopicEnrolCSR)}
}

// serve begins, and gives what ends it.
func (i *issuer) serve(s *server) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	i.trust, i.send, i.store = s.guard.Trust, s.sendOut, s.store
	i.warn = func(list []proto.AlarmStatus) {
		select {
		case s.rests <- func(*planner.Planner) { s.warnings.issued = list; s.warnings.looked = time.Time{} }:
		case <-ctx.Done():
		case <-s.ended:
		}
	}
	done := make(chan struct{})
	go func() { defer close(done); i.run(ctx) }()
	return func() { cancel(); <-done; i.register.file.Close() }
}

// answers says whether the planner is in service.
func (i *issuer) answers(leads bool) {
	if i != nil {
		i.leads.Store(leads)
	}
}

// hear takes what came for issuers, and what others of them said. It never waits.
func (i *issuer) hear(p proto.Packet) {
	select {
	case i.asked <- p:
	default:
	}
}

func (i *issuer) run(ctx context.Context) {
	tick := time.Tick(time.Second)
	i.open()
	for {
		select {
		case p := <-i.asked:
			i.meet()
			i.take(p)
		case <-tick:
			i.open()
			i.meet()
			i.demand()
			i.report()
		case <-ctx.Done():
			return
		}
	}
}

// meet has register and store know the same: before a planner that leads answers
// anybody, and now and then while it follows.
func (i *issuer) meet() {
	if i.store == nil {
		i.met = true
		return
	}
	leads := i.leads.Load()
	st, _ := i.store.Standing()
	if leads && i.met || !leads && (st.Batches == i.batches || i.now().Sub(i.metAt) < meetEvery) {
		return
	}
	i.met, i.followed = false, i.followed || !leads && !i.metAt.IsZero() // another one has written since
	state, err := i.store.Load()
	var due []planner.Record
	stored := 0
	if err == nil {
		due, stored, err = i.register.meet(state)
	}
	if err == nil && leads {
		err = i.lead(due, stored)
	}
	if err != nil {
		i.log.Error("the register of keys is not what the store has; nobody is given a certificate", "reason", err)
		return
	}
	i.met, i.metAt, i.batches = leads, i.now(), st.Batches
}

// lead writes what the store lacks. A store that knows of tokens, on a machine that knows
// nothing, was put back or carried here: nobody can say which others were used meanwhile.
func (i *issuer) lead(due []planner.Record, stored int) error {
	if len(due) > 0 {
		if err := i.store.Commit(due); err != nil {
			return err
		}
	}
	if i.register.fresh && stored > 0 && !i.followed && !i.keep(entry{From: i.now().Unix()}) {
		return errors.New("it cannot be written")
	}
	i.register.fresh = false
	return nil
}

// open reads the issuer's file and the authorities, where they have changed.
func (i *issuer) open() {
	if i.file == "" {
		return
	}
	var read [2]time.Time
	for n, name := range [2]string{i.file, i.ca} {
		if st, err := os.Stat(name); err == nil {
			read[n] = st.ModTime()
		}
	}
	if read == i.read && i.key != nil {
		return
	}
	key, err := pki.OpenIssuer(i.file, i.ca)
	if err != nil {
		if err.Error() != i.bad {
			i.bad = err.Error()
			i.log.Error("nobody is given a certificate", "reason", err)
		}
		return
	}
	i.key, i.read, i.bad = key, read, ""
}

func (i *issuer) take(p proto.Packet) {
	topic, err := proto.ParseTopic(p.Topic)
	t := i.trust()
	if err != nil || t == nil {
		return
	}
	if topic.Kind == proto.TopicCRT {
		a, by, err := t.Issued(p.Sealed, p.Topic)
		if _, known := i.register.find(seal.IDOf(a.Public[:])); err == nil && a.Vouches() && a.Node == topic.Node && !known {
			i.keep(entry{Node: a.Node, Public: a.Public, Issuer: by, Edition: a.Edition, Token: a.Token, Since: i.now().Unix(), Until: a.Until})
		}
		return
	}
	if !i.leads.Load() || !i.met || i.key == nil || !slices.Contains(t.Issuers, i.public()) || topic.Kind != proto.TopicCSR && topic.Kind != proto.TopicEnrolCSR {
		return
	}
	q, outer, err := readRequest(&p)
	if err != nil || q.Node != topic.Node {
		i.log.Warn("a request for a certificate is not one", "topic", p.Topic, "reason", err)
		return
	}
	if topic.Kind == proto.TopicCSR {
		i.another(q, outer, t)
	} else {
		i.enrol(q, outer, t)
	}
}

// readRequest reads a request, and holds the inner seal against the key that it names.
func readRequest(p *proto.Packet) (q proto.CertRequest, outer seal.Sealed, err error) {
	outer, rest, err := seal.Open(p.Sealed)
	if err != nil || len(rest) > 0 {
		return q, outer, seal.ErrForm
	}
	inner, rest, err := seal.Open(outer.Payload)
	if err != nil || len(rest) > 0 {
		return q, outer, seal.ErrForm
	}
	if _, err = proto.Decode(inner.Payload, &q); err == nil && !inner.By(q.Public[:], p.Topic) {
		err = fmt.Errorf("the new key did not seal it")
	}
	return q, outer, err
}

func (i *issuer) public() (p proto.PublicKey) {
	copy(p[:], i.key.Key.Public().(ed25519.PublicKey))
	return p
}

// enrol answers the holder of a token. Its first key may ask as often as it likes.
func (i *issuer) enrol(q proto.CertRequest, outer seal.Sealed, t *seal.Trust) {
	topics := proto.Topics{Fabric: t.Fabric}
	topic := topics.Enrol(q.Node, proto.TopicEnrolCSR)
	answer := topics.Enrol(q.Node, proto.TopicEnrolCRT)
	token, err := i.key.Token(q.Token)
	if h := token.Holder; err == nil && (h.Fabric != t.Fabric || h.Node != q.Node || !outer.By(token.Key, topic)) {
		err = fmt.Errorf("the token of %s did not seal it", h)
	}
	name, made := proto.KeyName(seal.IDOf(token.Key)), token.Made.Unix()
	was, thief, used := i.register.came(q.Node)
	anew := fmt.Sprintf("where the root is, type ocsctl pki token %d", q.Node)
	why := ""
	switch {
	case err != nil:
		why = err.Error()
	case token.Edition > t.Edition:
		why = fmt.Sprintf("the token is of edition %d of the trust document, and the planner has edition %d: bring it the newer one", token.Edition, t.Edition)
	case token.Edition < t.Ends(q.Node):
		why = fmt.Sprintf("the token was made before node %d was revoked: %s", q.Node, anew)
	case used && was.Token == name && was.Public != q.Public:
		if thief == (proto.PublicKey{}) {
			i.keep(entry{Node: q.Node, Token: name, Thief: q.Public})
		}
		i.log.Error("a token is used by another key than its first: one of the two is a thief's", "node", q.Node, "first", keyOf(was.Public), "other", keyOf(q.Public))
		why = fmt.Sprintf("the token was used by another key, %s: if that is not this node's, type ocsctl pki revoke %s and make another token", keyOf(was.Public), topics.NodeHolder(q.Node))
		defer i.report()
	case used && was.Token != name && made <= was.made():
		why = fmt.Sprintf("node %d came by a token that was made later: %s", q.Node, anew)
	case (!used || was.Token != name) && made <= i.register.before():
		why = fmt.Sprintf("which tokens made before %v were used is not known, since the planner's store was put back without its register: %s", time.Unix(i.register.before(), 0).UTC(), anew)
	}
	if why != "" {
		i.refuse(q, answer, why)
		return
	}
	i.vouch(q, answer, entry{Token: name, Made: made}, proto.PublicKey{}, t)
}

// another answers a node that has a key and wants another one.
func (i *issuer) another(q proto.CertRequest, outer seal.Sealed, t *seal.Trust) {
	topics := proto.Topics{Fabric: t.Fabric}
	k, ok := t.Find(outer.Key)
	if !ok || k.Holder != topics.NodeHolder(q.Node) || !outer.By(k.Public[:], topics.CSR(q.Node)) {
		i.log.Warn("a request for another key is not by the node's own", "node", q.Node)
		return
	}
	i.vouch(q, "", entry{}, k.Public, t)
}

// vouch has a key known, and its certificate sent: to the node by its own topic, where
// copies of the planner hear it too, and to the holder of a token.
func (i *issuer) vouch(q proto.CertRequest, enrolled string, by entry, replaces proto.PublicKey, t *seal.Trust) {
	topics := proto.Topics{Fabric: t.Fabric}
	chain, roots, until, err := i.key.Certify(topics.NodeHolder(q.Node), q.Public, certDays)
	if err != nil {
		i.log.Error("no certificate", "node", q.Node, "reason", err)
		return
	}
	e, known := i.register.find(seal.IDOf(q.Public[:]))
	if v := e.vouched(t.Fabric); !known || !t.Counts(&v) {
		if !i.keep(entry{Node: q.Node, Public: q.Public, Issuer: i.public(), Edition: t.Edition, Token: by.Token, Made: by.Made, Since: i.now().Unix(), Until: uint64(until.Unix())}) {
			return
		}
		i.log.Info("a key is vouched for", "node", q.Node, "key", keyOf(q.Public), "by_token", by.Token != proto.KeyName{}, "until", until.UTC())
	}
	a := proto.CertAnswer{Version: proto.Version, Node: q.Node, Public: q.Public, Edition: t.Edition, Token: by.Token, Until: uint64(until.Unix()), Chain: chain, Roots: roots, Replaces: replaces}
	i.say(topics.CRT(q.Node), !i.uncached, a)
	if enrolled != "" {
		i.say(enrolled, false, a)
	}
}

// keep has an entry in the store, where this planner leads, and in the register's file.
func (i *issuer) keep(e entry) bool {
	records, err := i.register.numbered(&e)
	if err == nil && i.leads.Load() && i.store != nil {
		err = i.store.Commit(records)
	}
	if err == nil {
		err = i.register.add(e)
	}
	if err != nil {
		i.log.Error("a key is not registered, and not vouched for", "node", e.Node, "reason", err)
	}
	return err == nil
}

func (i *issuer) refuse(q proto.CertRequest, topic, why string) {
	i.log.Warn("a certificate is refused", "node", q.Node, "key", keyOf(q.Public), "reason", why)
	i.say(topic, false, proto.CertAnswer{Version: proto.Version, Node: q.Node, Public: q.Public, Refused: proto.Clip(why)})
}

// say seals an answer. What is lost is asked for again.
func (i *issuer) say(topic string, retain bool, a proto.CertAnswer) {
	b, err := proto.Encode(a)
	if err != nil {
		i.log.Error("an answer cannot be sent", "topic", topic, "reason", err)
		return
	}
	_ = i.send(proto.Packet{Topic: topic, QoS: 1, Retain: retain, Payload: seal.Sign(i.key.Key, topic, b)})
}

// demand asks nodes for another key: two thirds through the life of the certificate,
// by this planner's clock, or because the trust document says so.
func (i *issuer) demand() {
	t := i.trust()
	if !i.leads.Load() || !i.met || i.key == nil || t == nil || !slices.Contains(t.Issuers, i.public()) {
		return
	}
	now, room := i.now(), demandsAtOnce
	for key, at := range i.demanded { // any order: each by itself
		if now.Sub(at) >= demandAgain {
			delete(i.demanded, key)
		}
	}
	// In turn, so that many who are away keep nobody else from being asked.
	list := i.register.newest()
	first, _ := slices.BinarySearchFunc(list, i.turn, func(e entry, n proto.NodeID) int { return cmp.Compare(e.Node, n) })
	for _, e := range slices.Concat(list[first:], list[:first]) {
		v := e.vouched(t.Fabric)
		due := time.Unix(e.Since, 0).Add(time.Duration(int64(e.Until)-e.Since) * time.Second * 2 / 3)
		if !t.Counts(&v) || e.Edition >= t.Renew && now.Before(due) || i.demanded[e.Public] != (time.Time{}) {
			continue
		}
		if room--; room < 0 {
			i.turn = e.Node
			return
		}
		i.demanded[e.Public] = now
		i.say(proto.Topics{Fabric: t.Fabric}.CRT(e.Node), false, proto.CertAnswer{Version: proto.Version, Node: e.Node, Public: e.Public, Renew: true})
	}
}

// report has alarms stand for what a person must look at.
func (i *issuer) report() {
	t := i.trust()
	if i.warn == nil || t == nil {
		return
	}
	var list []proto.AlarmStatus
	for _, e := range i.register.stolen(t) {
		node := e.Node
		list = append(list, proto.AlarmStatus{ID: fmt.Sprintf("%d/token-used-twice", node), Check: "seal", Subject: fmt.Sprintf("node %d", node), Severity: proto.SeverityCritical, Node: &node, What: "token used by two keys",
			Why: fmt.Sprintf("key %s came first and was let in, key %s was refused: if the first is not the node's, type ocsctl pki revoke %s, and make another token in any case", keyOf(e.Public), keyOf(e.Thief), proto.Topics{Fabric: t.Fabric}.NodeHolder(node))})
	}
	if len(list)+i.warned > 0 {
		i.warn(list)
	}
	i.warned = len(list)
}

func keyOf(p proto.PublicKey) string { return seal.IDOf(p[:]).String() }
