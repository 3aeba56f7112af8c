package planner

import (
	"fmt"
	"strings"
	"time"

	"ringlight/planner/journal"
	"ringlight/proto"
)

const (
	// sayWaits is how often it is looked at what is waited for; what is so twice is
	// said. chosen: below the 5 s after which silence is a defect.
	sayWaits = 1500 * time.Millisecond
	// hushPeriod is how often devices that have gone silent are looked for. chosen: a
	// quarter of the silence that counts.
	hushPeriod = 9 * time.Second
	maxWaits   = 32 // lines of what is waited for
)

// waits says what the planner waits for, and for whom; nothing when it does
// not wait.
func (p *Planner) waits() []string {
	var out []string
	switch heard, _ := p.heard(); {
	case p.state == gathering:
		out = append(out, gathers(heard))
	case p.state != serving:
		out = append(out, p.idle())
	}
	out = append(out, p.Rings.Waits()...)
	if p.Core != nil {
		out = append(out, p.Core.Waits()...)
	}
	for _, t := range p.tables() {
		out = append(out, t.Unable()...)
	}
	if more := len(out) - maxWaits; more > 0 {
		out = append(out[:maxWaits], fmt.Sprintf("and %d more", more))
	}
	return out
}

func gathers(heard int) string {
	if heard == 0 {
		return "gathering: no node or switch has spoken yet"
	}
	return fmt.Sprintf("gathering: %d nodes and switches have spoken; listens until nobody new has for %v", heard, gatherQuiet)
}

// tellWaits logs what has been waited for too long, once.
func (p *Planner) tellWaits() {
	if p.j.Now < p.waitsAt {
		return
	}
	p.waitsAt = p.j.Now + sayWaits
	if p.state == serving && p.j.LinkUp && p.j.Now >= p.hushAt {
		p.hushAt = p.j.Now + hushPeriod
		for _, t := range p.tables() {
			t.Hush(p.pulse.linkSince)
		}
	}
	p.Alarms.update()
	p.Alarms.store()
	if p.state == following {
		return // that it waits is no news
	}
	text := proto.Clip(strings.Join(p.waits(), "; "))
	if was := p.waited; text != was {
		p.waited = text
		return // said when it is still so
	}
	if text != "" && text != p.said {
		p.j.Line(Line{Level: journal.Warn, Message: "planner waits", Rule: "waits", Node: -1, Text: text})
	}
	p.said = text
}

// idle says why nothing is planned or commanded, and what ends that.
func (p *Planner) idle() string {
	switch r := p.others.latest(); {
	case p.state == following:
		return p.election.awaited()
	case p.state == raising:
		return "raising the term: nothing is planned or commanded until that is on disk"
	case !p.j.LinkUp:
		return p.state.String() + ": nothing is planned or commanded; no connection to the broker"
	case p.state == standby && r != nil:
		return fmt.Sprintf("standing by: nothing is planned or commanded; %s is in service, and this one takes its place when that was silent for %v", r, beatsAlive*BeatPeriod)
	}
	return fmt.Sprintf("%s: nothing is planned or commanded until no other planner was heard for %v", p.state, beatsAlive*BeatPeriod)
}
