package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"ringlight/planner"
	"ringlight/planner/jobapi/client"
	"ringlight/proto"
)

const (
	hookPatience = 5 * time.Second // for an answer; chosen
	sameMillis   = 1000            // of two looks at what stands, whose clocks are not one; chosen
)

// outlets are the ways on which alarms leave: which key of the configuration has the
// place, what is no place, and who tells there that an alarm began or is over.
var outlets = []struct {
	name  string
	of    func(*Config) string // "": nobody is told
	check func(name, where string) error
	to    func(where, fabric string) post
}{
	{"webhook", func(c *Config) string { return c.Webhook }, client.CheckPost, hook},
}

func (c *Config) checkOutlets() error {
	for _, o := range outlets {
		if where := o.of(c); where != "" {
			if err := o.check(o.name, where); err != nil {
				return err
			}
		}
	}
	return nil
}

// post tells that an alarm is begun, or over.
type post func(ctx context.Context, a alarm, what string) error

// teller tells whoever starts repairs of each alarm as it begins and as it is over. What is
// not taken comes again, before anything after it; a planner that starts tells again of all
// that stands, by the same ids.
type teller struct {
	post   post
	told   map[string]alarm
	failed bool
}

// alarm is what is told of one.
type alarm struct {
	proto.AlarmStatus
	Severity string `json:"severity"`
	Host     string `json:"host,omitempty"` // the node's name

	from uint64 // since when, or where that is not known when it was seen, in ms
}

// tellAlarms tells all who are to be told, each by itself, until ctx ends.
func (s *server) tellAlarms(ctx context.Context) {
	for _, o := range outlets {
		if where := o.of(&s.cfg); where != "" {
			go s.tellOne(ctx, o.name, where, &teller{post: o.to(where, s.topics.Fabric), told: map[string]alarm{}})
		}
	}
}

func (s *server) tellOne(ctx context.Context, name, where string, h *teller) {
	for tick := time.NewTicker(time.Second); ctx.Err() == nil; <-tick.C {
		stand, leads := map[string]alarm{}, false
		err := s.Read(ctx, func(p *planner.Planner) {
			if leads = s.leads(); leads {
				stand = standing(p)
			}
		})
		if err != nil || !leads {
			continue // another one tells
		}
		if err = h.tell(ctx, stand); h.failed != (err != nil) {
			h.failed = !h.failed
			s.cfg.Log.Warn("alarms are told", name, where, "taken", !h.failed, "reason", err)
		}
	}
}

// standing are the alarms that a planner has, by their ids.
func standing(p *planner.Planner) map[string]alarm {
	out := map[string]alarm{}
	for _, a := range p.Alarms.List() {
		x := alarm{AlarmStatus: a, Severity: a.Severity.String()}
		if a.Node != nil {
			x.Host = p.Fabric.NodeName(*a.Node)
		}
		out[a.ID] = x
	}
	return out
}

// tell tells what has changed, as far as it is taken.
func (h *teller) tell(ctx context.Context, stand map[string]alarm) error {
	both := maps.Clone(h.told)
	maps.Copy(both, stand)
	for _, id := range slices.Sorted(maps.Keys(both)) {
		now, stands := stand[id]
		was, known := h.told[id]
		if known && (!stands || was.SinceMillis != 0 && now.SinceMillis > was.SinceMillis+sameMillis) {
			if err := h.post(ctx, was, "over"); err != nil {
				return err
			}
			delete(h.told, id)
			known = false
		}
		if stands && !known {
			now.from = cmp.Or(now.SinceMillis, uint64(time.Now().UnixMilli()))
			if err := h.post(ctx, now, "begun"); err != nil {
				return err
			}
			h.told[id] = now
		}
	}
	return nil
}

// hook tells by CloudEvents 1.0.
func hook(url, fabric string) post {
	return func(ctx context.Context, a alarm, what string) error {
		status, said, err := client.Post(ctx, hookPatience, url, "application/cloudevents+json; charset=utf-8", map[string]any{"specversion": "1.0", "type": "dev.ringlight.alarm." + what, "source": "/ringlight/" + fabric,
			"id": fmt.Sprintf("%s/%d/%s", a.ID, a.from, what), "subject": a.Subject, "time": time.Now().UTC(), "datacontenttype": "application/json", "data": a})
		if err == nil && status/100 != 2 {
			err = fmt.Errorf("the answer is %s", said)
		}
		return err
	}
}
