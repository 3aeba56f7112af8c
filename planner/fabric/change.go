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
	keys := slices.Sorted(maps.Keys(a))
	for key := range b { // any order: sorted below
		if a[key] == nil {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var out []string
	for _, key := range keys {
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
	for _, key := range []string{"name", "gpus_per_node", "core"} {
		if !bytes.Equal(a[key], b[key]) {
			return wrong(key, clip(a[key])+": a fabric that runs keeps it; a fabric of its own for another", "%s", clip(b[key]))
		}
	}
	if f.Nodes == 0 {
		return wrong("nodes", "a fabric with nodes: circuits are changed by circuit apply", "%d", to.Nodes)
	}
	return nil
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
