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

// hook tells whoever starts repairs of each alarm as it begins and as it is over, by
// CloudEvents 1.0. What is not taken comes again, before anything after it; a planner that
// starts tells again of all that stands, by the same ids.
type hook struct {
	url, fabric string
	told        map[string]alarm
	failed      bool
}

// alarm is what is told of one.
type alarm struct {
	proto.AlarmStatus
	Severity string `json:"severity"`
	Host     string `json:"host,omitempty"` // the node's name

	from uint64 // since when, or where that is not known when it was seen, in ms
}

// tellAlarms tells the hook, if there is one, until ctx ends.
func (s *server) tellAlarms(ctx context.Context) {
	if s.cfg.Webhook == "" {
		return
	}
	h := hook{url: s.cfg.Webhook, fabric: s.topics.Fabric, told: map[string]alarm{}}
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
			s.cfg.Log.Warn("alarms are told", "webhook", h.url, "taken", !h.failed, "reason", err)
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
func (h *hook) tell(ctx context.Context, stand map[string]alarm) error {
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

// post tells one thing of an alarm.
func (h *hook) post(ctx context.Context, a alarm, what string) error {
	status, said, err := client.Post(ctx, hookPatience, h.url, "application/cloudevents+json; charset=utf-8", map[string]any{"specversion": "1.0", "type": "dev.ringlight.alarm." + what, "source": "/ringlight/" + h.fabric,
		"id": fmt.Sprintf("%s/%d/%s", a.ID, a.from, what), "subject": a.Subject, "time": time.Now().UTC(), "datacontenttype": "application/json", "data": a})
	if err == nil && status/100 != 2 {
		err = fmt.Errorf("the answer is %s", said)
	}
	return err
}
