package fabric

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Changes says key by key, in alphabetical order, what two descriptions have
// differently; it is empty where they are one.
func (f *Fabric) Changes(to *Fabric) []string {
	a, b := f.keys(), to.keys()
	either := maps.Clone(a)
	maps.Copy(either, b)
	var out []string
	for _, key := range slices.Sorted(maps.Keys(either)) {
		if bytes.Equal(a[key], b[key]) {
			continue
		}
		text := key + " " + clip(a[key]) + ", then " + clip(b[key])
		switch key {
		case "node_names":
			text = key + " " + renamed(f.NodeNames, to.NodeNames)
		case "fibres":
			if text = fmt.Sprintf("fibres %d new, %d gone", len(to.NewFibres(f)), len(f.NewFibres(to))); len(to.NewFibres(f))+len(f.NewFibres(to)) == 0 {
				text = "fibres in another order, or with other labels"
			}
		}
		out = append(out, text)
	}
	return out
}

// renamed tells of the first node that has another name, and how many more have.
func renamed(was, then []string) string {
	name := func(list []string, n int) string {
		if n < len(list) && list[n] != "" {
			return list[n]
		}
		return strconv.Itoa(n)
	}
	text, more := "", 0
	for n := range max(len(was), len(then)) {
		switch a, b := name(was, n), name(then, n); {
		case a == b:
		case text == "":
			text = fmt.Sprintf("of node %d: %.80q, then %.80q", n, a, b)
		default:
			more++
		}
	}
	if more > 0 {
		text += fmt.Sprintf(", and of %d more", more)
	}
	return text
}

// NewFibres are those that another description has not between the same ports.
func (f *Fabric) NewFibres(was *Fabric) []Fibre {
	var out []Fibre
	for _, x := range f.AllFibres() {
		if to, crossed, ok := was.At(x.A); !ok || to != x.B || crossed != x.Crossed {
			out = append(out, x)
		}
	}
	return out
}

// MayBecome says which keys of a fabric that runs no edit can change, as one
// error; each is an *Error.
func (f *Fabric) MayBecome(to *Fabric) error {
	a, b := f.keys(), to.keys()
	for _, key := range []string{"name", "gpus_per_node"} {
		if !bytes.Equal(a[key], b[key]) {
			return wrong(key, clip(a[key])+": a fabric that runs keeps it; a fabric of its own for another", "%s", clip(b[key]))
		}
	}
	if f.Core == nil && to.Core == nil {
		return nil
	}
	if f.Core == nil || to.Core == nil {
		return wrong("core", "a fabric that runs keeps having one, or none", "%s", map[bool]string{true: "absent", false: "given"}[to.Core == nil])
	}
	for _, x := range f.Core.keeps(to.Core) {
		if is, then := a["core."+x.key], b["core."+x.key]; !bytes.Equal(is, then) {
			return wrong("core."+x.key, fmt.Sprintf("%s: a core that runs keeps it, as %s", clip(is), x.why), "%s", clip(then))
		}
	}
	is, then := f.Core.Rows(), to.Core.Rows()
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if is[key] != then[key] {
			return wrong("core."+key, fmt.Sprintf("%d: a core that runs keeps it, as fibres hang there on every switch", is[key]), "%s, which comes to %d", clip(b["core."+key]), then[key])
		}
	}
	return nil
}

// Rows are the keys that say where fibres hang on every switch of leaves and spines, or
// of servers: as they are, or as they come to be where they are absent.
func (c *Core) Rows() map[string]int {
	switch {
	case c.Direct != nil:
		return map[string]int{"second_port": c.second()}
	case c.LeafSpine != nil && c.LeafSpine.Switches > 0:
		return map[string]int{"spine_port": c.firstSpine(), "ports_per_spine": c.SpinePortsPerSwitch()}
	}
	return nil
}

// kept is a key of a core that no edit changes, and why.
type kept struct{ key, why string }

// keeps are the sizes on which the numbers hang under which agents of switches, ports
// and GPUs are known, and what nobody can change beneath jobs that run. What is at the
// end of its numbers may come and go.
func (c *Core) keeps(to *Core) []kept {
	out := []kept{{"kind", "it is another network"}, {"wiring", "every fibre would hang elsewhere"},
		{"gpus_per_server", "addresses of GPUs are counted by it"}, {"leaf_links", "uplinks of leaves are counted by it"}}
	if c.Spineless || to.Spineless {
		out = append(out, kept{"spineless", "every fibre would hang elsewhere"}, kept{"spines_per_pod", "uplinks of leaves are counted by it"})
	}
	if c.SpinesPerPod > 1 || to.SpinesPerPod > 1 {
		out = append(out, kept{"spine_ports", "switches are counted group by group, and agents of later groups would have other numbers"})
	}
	if c.LeafSpine != nil {
		out = append(out, kept{"gpus_per_leaf", "uplinks of leaves are counted by it"},
			kept{"switches", "uplinks of leaves are shared out among them"}, kept{"any_to_any", "jobs are placed by it"})
		if c.LeafSpine.Switches == 0 {
			out = append(out, kept{"spines", "links of leaves are shared out among them"})
		}
	}
	if c.Direct != nil {
		out = append(out, kept{"degree", "numbers of servers' agents come after those of the switches of all interfaces"})
	}
	return out
}

// Renumber is the number that a server has in another core, or -1: it is in the same
// place of the same leaf and pod.
func (c *Core) Renumber(to *Core, server int) int {
	leaf, place := server/max(1, c.LeafServers()), server%max(1, c.LeafServers())
	switch {
	case c.Direct != nil:
		leaf, place = 0, server
	case place >= to.LeafServers():
		return -1
	case c.LeafSpine == nil && leaf%c.LeavesPerPod >= to.LeavesPerPod:
		return -1
	case c.LeafSpine == nil:
		leaf = leaf/c.LeavesPerPod*to.LeavesPerPod + leaf%c.LeavesPerPod
	}
	if n := leaf*to.LeafServers() + place; n < to.Servers() {
		return n
	}
	return -1
}

func (f *Fabric) keys() (keys map[string]json.RawMessage) {
	all := *f
	all.Fibres = f.AllFibres()
	text, err := json.Marshal(&all)
	if err == nil {
		err = json.Unmarshal(text, &keys)
	}
	if err != nil {
		panic("fabric: invariant: a description is a JSON object: " + err.Error())
	}
	var core map[string]json.RawMessage
	if raw := keys["core"]; raw != nil && json.Unmarshal(raw, &core) == nil {
		delete(keys, "core")
		for key, value := range core { // any order: each by itself
			keys["core."+key] = value
		}
	}
	return keys
}

// clip keeps a value to what fits a line; lists of names do not.
func clip(value json.RawMessage) string {
	const most = 40
	switch {
	case value == nil:
		return "absent"
	case len(value) > most:
		return string(value[:most]) + ".."
	}
	return string(value)
}
