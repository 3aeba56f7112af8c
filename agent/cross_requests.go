package agent

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"ringlight/hal"
	"ringlight/hal/sonic"
	"ringlight/node"
	"ringlight/ocs/circuit"
	"ringlight/proto"
)

// face is a switch as tools for SONiC's circuit switches see it.
type face struct{ optics *crossOptics }

func (f *face) now() time.Duration { return f.optics.served.Now }

// requests serves one client: METHOD TARGET, a newline and the document are a line.
type requests struct {
	face
	waiting [][]byte
}

func (q *requests) Take(line []byte) { q.waiting = append(q.waiting, line) }

// Poll answers what came; the status is the first line of an answer.
func (q *requests) Poll(dst []byte) []byte {
	s := sonic.Server{Box: &q.face, Dialect: sonic.Auto}
	for _, line := range q.waiting {
		head, body, _ := bytes.Cut(line, []byte("\n"))
		method, target, _ := strings.Cut(string(head), " ")
		status, reply := s.Answer(method, target, body)
		dst = append(fmt.Appendf(dst, "%d\n", status), reply...)
	}
	q.waiting = nil
	return dst
}

func (f *face) View() (v sonic.View) {
	o := f.optics
	for side := range v.Ports {
		v.Ports[side] = make([]sonic.Port, o.agent.cfg.ports())
		for port := range v.Ports[side] {
			v.Ports[side][port] = sonic.Port{Label: o.agent.cfg.Labels[portOf(side, port)], Override: proto.Normal.String(), Light: "blocked"}
		}
	}
	for _, c := range o.cross.Circuits(nil) {
		p := sonic.Path{Connection: sonic.Connection{ID: c.Pair.String(), A: portOf(0, int(c.Pair.A)), B: portOf(1, int(c.Pair.B))}, Status: "disabled"}
		word := c.State.Light()
		if c.State.Lit() {
			p.Status, p.MilliDB = "enabled", int32(max(c.Loss, 0))
		}
		in, out := &v.Ports[0][c.Pair.A], &v.Ports[1][c.Pair.B]
		in.Light, in.Target, out.Light, out.Target = word, p.B, word, p.A
		v.Paths = append(v.Paths, p)
	}
	for _, h := range o.sw.State().Held {
		p := &v.Ports[h.Array][h.Port]
		if p.Override, p.Light = h.Override.String(), "blocked"; h.Override == proto.PoweredOff {
			p.Light = p.Override
		}
	}
	return v
}

func portOf(side, port int) string { return itoa(port+1) + string("AB"[side]) }

// owned refuses a port that a plan in force or prepared has a circuit at.
func (f *face) owned(side int, port uint16) error {
	st := f.optics.sw.State()
	for _, plan := range []*node.Held{st.Applied, st.Staged} {
		for i := 0; plan != nil && i < len(plan.Desired.Circuits) && !f.optics.agent.cfg.ScriptsFirst; i++ {
			c := plan.Desired.Circuits[i]
			if [hal.NumSides]uint16{c.A, c.B}[side] == port {
				return sonic.Refuse("in-use", "", "port %s is the planner's: its generation %d has circuit %v there, of job %d", portOf(side, int(port)), plan.Desired.Generation, circuit.Pair{A: c.A, B: c.B}, c.Job)
			}
		}
	}
	return nil
}

// Update makes what is asked for in one act. What is there already stays as it is; what is
// in the way goes.
func (f *face) Update(remove []string, add []sonic.Connection) (failed []string, err error) {
	ch := circuit.Change{Mode: circuit.Update}
	have := f.optics.cross.Circuits(nil)
	for _, c := range have {
		if slices.Contains(remove, c.Pair.String()) {
			ch.Remove = append(ch.Remove, c.Pair)
		}
	}
	for _, c := range add {
		a, b, _ := c.Ports() // the server has looked
		p := circuit.Pair{A: uint16(a), B: uint16(b)}
		if c.ID != p.String() {
			return nil, sonic.Refuse("invalid-value", "", "connection %.40q: its key here is that of its ports, %v", c.ID, p)
		}
		if there := slices.IndexFunc(have, func(h circuit.Circuit) bool { return h.Pair == p }); there < 0 || have[there].State == proto.Failed || slices.Contains(ch.Remove, p) {
			ch.Create = append(ch.Create, p)
		}
	}
	for _, p := range slices.Concat(ch.Remove, ch.Create) {
		for side, port := range [hal.NumSides]uint16{p.A, p.B} {
			if err := f.owned(side, port); err != nil {
				return nil, err
			}
		}
	}
	if len(ch.Remove)+len(ch.Create) == 0 {
		return nil, nil
	}
	return nil, handled{f.optics, true}.Apply(f.now(), ch)
}

// statusCodes are our codes for the statuses of package sonic.
var statusCodes = map[int]proto.Code{http.StatusForbidden: proto.Denied, http.StatusNotFound: proto.NotFound, http.StatusConflict: proto.Conflict,
	http.StatusMethodNotAllowed: proto.Unsupported, http.StatusRequestEntityTooLarge: proto.TooLarge, http.StatusInternalServerError: proto.HardwareFailed}

// connectByHand makes circuits for an operator who asks through the planner.
func (o *crossOptics) connectByHand(now time.Duration, c *proto.Command) error {
	if o.cross == nil || o.faulty != "" {
		return &proto.Error{Code: proto.HardwareFailed, Field: "connect", Reason: "the switch does not answer its agent: " + o.faulty}
	}
	var add []sonic.Connection
	for _, key := range c.Connect {
		from, to, _ := strings.Cut(key, "-")
		add = append(add, sonic.Connection{ID: key, A: from, B: to})
	}
	o.served.Now = now
	s := sonic.Server{Box: &face{optics: o}, Dialect: sonic.Auto}
	err := s.Update(c.Disconnect, add)
	if err == nil {
		return nil
	}
	e := &proto.Error{Code: proto.HardwareFailed, Field: "connect", Reason: err.Error()}
	var refused *sonic.Error
	switch {
	case errors.As(err, &refused):
		e.Code, e.Reason = cmp.Or(statusCodes[refused.Status], proto.Invalid), refused.Message
	case errors.Is(err, circuit.ErrNotReady), errors.Is(err, hal.ErrQueueFull):
		e.Code = proto.Busy
	}
	e.Reason = proto.Clip(e.Reason)
	return e
}

func (f *face) SetPorts(list []sonic.PortSetting) error {
	labels := maps.Clone(f.optics.agent.cfg.Labels)
	for _, p := range list {
		if p.Override == nil {
			continue
		}
		if err := f.owned(p.Side, uint16(p.Port)); err != nil {
			return err
		}
	}
	for _, p := range list {
		if p.Override != nil {
			q := Ask{Array: uint8(p.Side), Port: uint16(p.Port)}
			for q.Override.String() != *p.Override { // the server has looked
				q.Override++
			}
			if err := f.optics.holdPort(f.now(), q); err != nil {
				return err
			}
		}
		if p.Label != nil {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[portOf(p.Side, p.Port)] = *p.Label
		}
	}
	if maps.Equal(labels, f.optics.agent.cfg.Labels) {
		return nil
	}
	if f.optics.agent.cfg.KeepLabels != nil {
		if err := f.optics.agent.cfg.KeepLabels(labels); err != nil {
			return err
		}
	}
	f.optics.agent.cfg.Labels = labels
	return nil
}

// Records are a port's.
func (f *face) Records(side, port int, days bool) any {
	out := []proto.BinJSON{}
	s := proto.BinScope{Days: days, Place: int16(portPlace(side, uint16(port))), Module: -1}
	for next, more := uint32(0), true; more; more = next != 0 {
		var bins []proto.Bin
		bins, next, _ = f.optics.agent.pm.asked(f.now(), &s, next)
		for i := range bins {
			out = append(out, bins[i].JSON(""))
		}
	}
	return out
}

// Losses are the maker's, of one path or of all.
func (f *face) Losses(key string) (out []sonic.FactoryLoss) {
	t := f.optics.agent.cfg.Factory
	if t == nil {
		return nil
	}
	for at := range t.Ports * t.Ports {
		p := circuit.Pair{A: uint16(at / t.Ports), B: uint16(at % t.Ports)}
		for _, l := range t.Losses {
			if key == "" || key == p.String() {
				out = append(out, sonic.NewFactoryLoss(int(p.A), int(p.B), l.MilliTHz, l.Celsius, l.MilliDB[at]))
			}
		}
	}
	return out
}
