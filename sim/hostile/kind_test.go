package hostile

import (
	"crypto/ed25519"

	"ringlight/proto"
)

// kind is a row of the table that every attack on sealed messages walks: one for each
// message of docs/protocol.md, which a test holds it to.
type kind struct {
	topic proto.TopicKind
	path  string // as docs/protocol.md has it, below ocs/v1/{fabric}/
	to    reader
	// sealed: what is genuine of it is, and must have been heard before.
	sealed bool
	// lie is a well formed message that would move something if it were believed.
	lie func(im *impostor, id proto.NodeID, i int) (topic string, msg any)
}

// reader is the reader of a kind of message.
type reader int

const (
	devices reader = iota
	planners
	operators
)

var kinds = []kind{
	{proto.TopicPlanner, "planner/state", devices, true, func(im *impostor, _ proto.NodeID, _ int) (string, any) {
		return im.s.topics.Planner(), &proto.PlannerState{Version: proto.Version, Planner: 99, Online: true, Term: im.term + 5, Seq: uint64(1 + im.below(1000)), PeriodMillis: 2000, Fabric: im.s.cfg.Fabric, Life: 99, Takeover: true}
	}},
	{proto.TopicDesired, "n/{node}/desired", devices, true, func(im *impostor, id proto.NodeID, _ int) (string, any) {
		d, _ := im.s.plan(int(id)) // none: out of every ring all the same
		d.Version, d.Node, d.Term, d.Life = proto.Version, id, im.term+proto.Term(im.below(2)), im.life
		d.Generation, d.Rings = d.Generation+1+proto.Generation(im.below(50)), nil
		if len(d.Decisions) == 0 {
			d.Decisions = []proto.RingID{0}
		}
		d.Plan, _ = proto.PlanDigest([]proto.Desired{d})
		return im.s.topics.Desired(id), &d
	}},
	{proto.TopicCommand, "n/{node}/cmd", devices, true, func(im *impostor, id proto.NodeID, i int) (string, any) {
		return im.s.topics.Command(id), &proto.Command{Version: proto.Version, Node: id, Term: im.term, Session: im.session(id), Corr: im.corr(i, 9), TTLMillis: 600_000, Verb: proto.VerbHostFault, Life: im.life}
	}},
	{proto.TopicDecision, "ring/{ring}/decision", devices, true, func(im *impostor, _ proto.NodeID, _ int) (string, any) {
		d := proto.Decision{Version: proto.Version, Ring: proto.RingID(im.below(16)), Term: im.term + proto.Term(im.below(2)), Generation: proto.Generation(1 + im.below(500)), Verdict: proto.Verdict(1 + im.below(2))}
		return im.s.topics.Decision(d.Ring), &d
	}},
	{proto.TopicPresence, "n/{node}/presence", planners, true, func(im *impostor, id proto.NodeID, i int) (string, any) {
		p := proto.Presence{Version: proto.Version, Node: id, Session: im.session(id)} // a death note
		if i%2 == 0 {
			p.Session, p.Online, p.SeenTerm = p.Session+1, true, im.term+5
		}
		return im.s.topics.Presence(id), &p
	}},
	{proto.TopicReported, "n/{node}/reported", planners, true, func(im *impostor, id proto.NodeID, _ int) (string, any) {
		return im.s.topics.Reported(id), &proto.Reported{Version: proto.Version, Node: id, Session: im.session(id), Seq: proto.MaxCount / 2, SeenTerm: im.term + 5, Mode: proto.ModeHostDown}
	}},
	{proto.TopicAck, "n/{node}/ack", planners, true, func(im *impostor, id proto.NodeID, _ int) (string, any) {
		return im.s.topics.Ack(id), &proto.Ack{Version: proto.Version, Node: id, Session: im.session(id), Phase: proto.PhasePrepare, Code: proto.Stale, Term: im.term, CurrentTerm: im.term + 5}
	}},
	{proto.TopicEvent, "n/{node}/event", planners, true, func(im *impostor, id proto.NodeID, _ int) (string, any) {
		return im.s.topics.Event(id), &proto.Event{Version: proto.Version, Node: id, Session: im.session(id), Seq: uint64(1 + im.below(1<<20)), Kind: proto.EvIsolated, Count: 1, Measured: proto.NoPower, Expected: proto.NoPower}
	}},
	{proto.TopicHealth, "n/{node}/health", planners, false, func(im *impostor, id proto.NodeID, _ int) (string, any) {
		return im.s.topics.Health(id), &proto.Health{Version: proto.Version, Node: id, Session: im.session(id) + proto.Session(im.below(2)), Reported: uint64(im.below(1000))}
	}},
	{proto.TopicRequest, "op/{client}/req", planners, true, func(im *impostor, id proto.NodeID, i int) (string, any) {
		return im.s.topics.Request("alice"), &proto.OpRequest{Version: proto.Version, Corr: im.corr(i, 7), TTLMillis: 10_000, Noun: proto.NounHostFault, Node: id, Bundle: -1, Term: im.term, Beat: im.beat}
	}},
	{proto.TopicReply, "op/{client}/rep", operators, false, func(im *impostor, _ proto.NodeID, i int) (string, any) {
		return im.s.topics.Reply("alice"), &proto.OpReply{Version: proto.Version, Corr: im.corr(i, 7), Code: proto.OK}
	}},
	{proto.TopicTrust, "trust", devices, true, func(im *impostor, _ proto.NodeID, _ int) (string, any) {
		return im.s.topics.Trust(), &proto.Trust{Version: proto.Version, Fabric: im.s.cfg.Fabric, Edition: 1 + uint64(im.below(1<<20)), Root: proto.PublicKey{66},
			Keys: []proto.TrustedKey{{Public: im.ownKey, Name: im.s.cfg.Fabric + "/planner/a", Role: proto.RolePlanner}}}
	}},
	{proto.TopicCSR, "n/{node}/csr", planners, true, func(im *impostor, id proto.NodeID, _ int) (string, any) {
		return im.s.topics.CSR(id), &proto.CertRequest{Version: proto.Version, Node: id, Public: im.ownKey}
	}},
	{proto.TopicCRT, "n/{node}/crt", devices, true, func(im *impostor, id proto.NodeID, i int) (string, any) {
		return im.s.topics.CRT(id), im.answer(id, i)
	}},
	{proto.TopicEnrolCSR, "enrol/{node}/csr", planners, true, func(im *impostor, id proto.NodeID, _ int) (string, any) {
		return im.s.topics.Enrol(id, proto.TopicEnrolCSR), &proto.CertRequest{Version: proto.Version, Node: id, Public: im.ownKey, Token: im.token}
	}},
	{proto.TopicEnrolCRT, "enrol/{node}/crt", devices, true, func(im *impostor, id proto.NodeID, i int) (string, any) {
		return im.s.topics.Enrol(id, proto.TopicEnrolCRT), im.answer(id, i)
	}},
}

// answer vouches for a key of the impostor's, or wants another of a node.
func (im *impostor) answer(id proto.NodeID, i int) *proto.CertAnswer {
	if i%2 == 0 {
		return &proto.CertAnswer{Version: proto.Version, Node: id, Public: im.ownKey, Renew: true}
	}
	return &proto.CertAnswer{Version: proto.Version, Node: id, Public: im.ownKey, Edition: 1, Chain: im.token, Roots: im.token}
}

func (im *impostor) corr(i int, last byte) proto.Corr {
	return proto.Corr{byte(i), byte(i >> 8), byte(i >> 16), byte(im.voice), last}
}

// session of a node as its birth told it.
func (im *impostor) session(id proto.NodeID) proto.Session { return max(1, im.s.session(int(id))) }

func publicOf(key ed25519.PrivateKey) (p proto.PublicKey) {
	copy(p[:], key.Public().(ed25519.PublicKey))
	return p
}
