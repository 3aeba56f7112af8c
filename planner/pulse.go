package planner

import (
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

// slowEcho is how long the broker may take to give a sign of life back. chosen: a few
// of them there and back are longer than an agent may take to answer.
const slowEcho = time.Second

// pulse are the signs of life that a planner gives, and how they come back.
type pulse struct {
	j        *journal.Journal
	election *election
	host     string
	features proto.Features
	uncached bool // the broker keeps nothing
	claiming bool // another one is being replaced

	linkSince time.Duration
	links     uint64 // connections of this life
	due       time.Duration
	given     time.Duration // when the last one was
	beat      uint64        // its number
	echo      uint64        // the number of the last one that the broker gave back on this link, 0: none
	lag       time.Duration // how long that one was away
	lags      int           // how many in a row were away for slowEcho
	late      time.Duration // by how much this process was too late at worst since the last one
	lateWas   time.Duration // and before that
	lates     int           // how many such times in a row it was by slowEcho
}

// give says that we are in service.
func (p *pulse) give() {
	p.beat++
	p.j.Beat = p.beat
	p.due, p.given = p.j.Now+BeatPeriod, p.j.Now
	if p.lates++; p.late < slowEcho {
		p.lates = 0
	}
	p.late, p.lateWas = 0, p.late
	p.j.Send(p.j.Topics.Planner(), proto.TopicPlanner, p.sign(true))
}

// wait says that we are alive and wait. It is not kept by the broker,
// which keeps the message of the one in service.
func (p *pulse) wait() {
	p.due = p.j.Now + beatsAlive*BeatPeriod
	payload, err := proto.Encode(p.sign(false))
	if err != nil {
		panic("planner: own message is refused: " + err.Error())
	}
	p.j.SendPacket(proto.Packet{Kind: proto.Publish, Topic: p.j.Topics.Planner(), Payload: payload, QoS: proto.TopicPlanner.QoS()})
}

// sign is what either says.
func (p *pulse) sign(online bool) *proto.PlannerState {
	var call uint64
	if online && p.uncached {
		call = p.links
	}
	return &proto.PlannerState{
		Version: proto.Version, Planner: p.j.Planner, Online: online, Term: p.j.Term, Seq: p.beat,
		PeriodMillis: uint32(BeatPeriod.Milliseconds()), Fabric: p.j.Topics.Fabric,
		Life: p.j.Life, Layout: p.j.Layout, Takeover: online && p.claiming, Standby: !online, Host: p.host,
		Election: p.election.number, Stored: p.election.stored, Features: p.features, Call: call,
	}
}

// echoed takes our own sign of life, which the broker gave back.
func (p *pulse) echoed(seq uint64) {
	p.echo, p.lag = seq, p.j.Now-p.given+time.Duration(p.beat-seq)*BeatPeriod
	if p.lags++; p.lag < slowEcho {
		p.lags = 0
	}
}

// linked: the broker is there, anew.
func (p *pulse) linked() {
	p.linkSince, p.due, p.echo, p.lags = p.j.Now, p.j.Now, 0, 0
	p.links++
}

// hasten gives the next one at once, but not too soon after the last.
func (p *pulse) hasten() {
	if p.due = p.j.Now; p.given != 0 && p.j.Now < p.given+BeatPeriod/beatsAlive {
		p.due = p.given + BeatPeriod/beatsAlive
	}
}
