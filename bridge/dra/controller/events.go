package controller

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// What pods of a ring are told that is short of nodes: nothing of theirs is changed.
const (
	Short = "the claim does not follow a replaced node: for a whole ring delete its pods and the claim"
	Stuck = "no pod of the claim has begun: delete those that have nodes, and another ring is taken"
)

// advice is what to do about a ring that is short of nodes; "": no pod has a node, and the
// scheduler takes another.
func (c *controller) advice(h *Held) (what string) {
	for _, p := range c.sharers(h) {
		if p.Status.Phase != corev1.PodPending {
			return Short
		}
		if p.Spec.NodeName != "" {
			what = Stuck
		}
	}
	return what
}

// Events are what is told of a ring, by the reason, and whether it is a warning; of circuits
// with that word in place of Ring, and that they are refused. docs/kubernetes.md has the same.
var Events = map[string]bool{"RingWaiting": false, "RingReady": false, "RingDegraded": true, "RingDown": true, RingLost: true}

// announce tells claim and pods of what differs from the conditions that the claim has: the text
// too, of warnings and of circuits whose pods have nodes. A ring that is lost is told as that alone.
func (c *controller) announce(h *Held, now []metav1.Condition) {
	n, reason, kind := now[0], "Ring"+now[0].Reason, corev1.EventTypeNormal
	warns, told := Events[reason]
	if h.circuits != nil {
		reason = "Circuits" + n.Reason
		warns, told = warns || n.Reason == "Refused", told || n.Reason == "Refused"
	} else if now[1].Status == metav1.ConditionTrue {
		n, reason, warns, told = now[1], RingLost, true, true
	}
	i := slices.IndexFunc(h.told(), func(b metav1.Condition) bool { return b.Type == n.Type })
	text, whole := n.Message, warns || h.circuits != nil && !h.lacks()
	if !told || i >= 0 && h.told()[i].Status == n.Status && h.told()[i].Reason == n.Reason && (h.told()[i].Message == n.Message || !whole) {
		return
	}
	if warns {
		kind = corev1.EventTypeWarning
	}
	if h.circuits == nil {
		text = strings.TrimSuffix(h.device.Pool+": "+text, ": ")
	}
	if reason == RingLost {
		text += ": another ring is taken"
	}
	c.events.Event(h.claim, kind, reason, text)
	for _, p := range c.sharers(h) {
		c.events.Event(p, kind, reason, text)
	}
}
