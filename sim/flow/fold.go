package flow

import "time"

// phase is a phase of a script as the Sim's model of sharing has it.
type phase struct {
	script *Phase
	rounds []round
	epoch  uint32 // of the capacities, when the limit was found
}

// round is the flows that start together. In the model Phases a phase is one
// round of one flow, over all its links and with weights.
type round struct {
	flows     []Flow
	weights   []int64 // of the only flow on its links, nil: one each
	limit     int64   // rate of each flow, as if it had a link of its own
	times     int
	count     int64 // flows of the script that end with it
	takesTime bool
	folded    *folded
}

// folded is a round as it goes through the solver. A link that only one flow
// of the round uses, and no other job, is a limit of that flow and no link;
// a flow without other links never enters the solver; flows with the same
// other links, volume and limit are one.
type folded struct {
	groups  []group
	slots   []slot
	of      []int32       // per flow of the round its group, or alone or gone
	left    []amount      // that the flows had, nil: their bytes
	own     time.Duration // in which the last flow that is alone ends
	version uint32        // of the job
}

type group struct {
	left         amount
	cap          int64
	first, after int32 // slots
	before       int32 // the group before with the same first link
}

const (
	alone = -1
	gone  = -2
)

// maxChain is how many groups with one first link are compared. chosen: flows
// that can be merged mostly follow each other.
const maxChain = 8

// foldRound folds a round that begins, or takes it as it was folded last if
// nobody came or left since.
func (s *Sim) foldRound(r *run) *folded {
	rd := &r.phase.rounds[r.round]
	if s.sharing.whole() {
		s.limitPhase(r.phase)
	}
	if rd.folded == nil || rd.folded.version != r.job.version {
		rd.folded = s.fold(r.job, rd, nil)
	}
	return rd.folded
}

// fold folds a round whose flows have so much left.
func (t *traffic) fold(j *job, rd *round, left []amount) *folded {
	out := &folded{of: make([]int32, len(rd.flows)), left: left, version: j.version}
	for i := range rd.flows {
		if rd.flows[i].Bytes > 0 {
			for _, l := range rd.flows[i].Path {
				t.links[l].used++
			}
		}
	}
	for i := range rd.flows {
		fl := &rd.flows[i]
		has := amountOf(fl.Bytes)
		if left != nil {
			has = left[i]
		}
		if fl.Bytes == 0 || has == (amount{}) && t.sharing != Equal {
			out.of[i] = gone
			continue
		}
		g := group{left: has, cap: rd.limit, first: int32(len(out.slots)), before: -1}
		for k, l := range fl.Path {
			w := rd.weight(k)
			if t.links[l].users == 1 && t.links[l].used == 1 && !t.plain {
				g.cap = min(g.cap, t.links[l].capacity<<weightBits/w)
			} else {
				out.slots = append(out.slots, slot{link: l, weight: w})
			}
		}
		if g.after = int32(len(out.slots)); g.after == g.first {
			out.own = max(out.own, has.time(g.cap))
			out.of[i] = alone
			continue
		}
		out.of[i] = t.merge(out, g, rd.weights == nil)
	}
	for i := range rd.flows {
		for _, l := range rd.flows[i].Path {
			t.links[l].used = 0
			t.links[l].chain = 0
		}
	}
	return out
}

func (rd *round) weight(k int) int64 {
	if rd.weights == nil {
		return weightOne
	}
	return rd.weights[k]
}

// merge adds a group, whose slots are the last ones, or makes one like it
// heavier and takes its slots back.
func (t *traffic) merge(out *folded, g group, may bool) int32 {
	own := out.slots[g.first:g.after]
	head := &t.links[own[0].link].chain
	at := *head - 1
	for n := 0; may && !t.plain && at >= 0 && n < maxChain; n++ {
		o := &out.groups[at]
		other := out.slots[o.first:o.after]
		same := o.left == g.left && o.cap == g.cap && len(other) == len(own)
		for i := 0; same && i < len(own); i++ {
			same = other[i].link == own[i].link
		}
		if same {
			for i := range other {
				other[i].weight += weightOne
			}
			out.slots = out.slots[:g.first]
			return at
		}
		at = o.before
	}
	g.before = *head - 1
	out.groups = append(out.groups, g)
	*head = int32(len(out.groups))
	return *head - 1
}

// unfold is what the flows of the round under way have left now.
func (s *Sim) unfold(r *run) []amount {
	if r.steady > 0 {
		s.catchUp(r)
	}
	rd := &r.phase.rounds[r.round]
	out := make([]amount, len(rd.flows))
	for i := range rd.flows {
		switch g := r.cur.of[i]; g {
		case gone:
		case alone:
			has, rate := amountOf(rd.flows[i].Bytes), rd.limit
			if r.cur.left != nil {
				has = r.cur.left[i]
			}
			for k, l := range rd.flows[i].Path {
				rate = min(rate, s.links[l].capacity<<weightBits/rd.weight(k))
			}
			out[i] = has.after(rate, s.now-r.base)
		default:
			f := &s.flows[r.first+g]
			out[i] = f.left
			if !f.on {
				out[i] = amount{}
			} else if f.rate > 0 {
				out[i] = f.left.after(f.rate, s.now-f.since)
			}
		}
	}
	return out
}

// refold folds the round under way anew, with what its flows have left.
func (s *Sim) refold(r *run, left []amount) {
	s.takeOff(r)
	if s.sharing.whole() {
		s.limitPhase(r.phase)
	}
	s.put(r, s.fold(r.job, &r.phase.rounds[r.round], left), s.now)
}
