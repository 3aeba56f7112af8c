package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// A node is told by its number, or by the name that the fabric's description
// gives it (node_names), which the planner is asked for.

// named is a node that was told by its name.
type named struct {
	field, word string
	id          *proto.NodeID
	bundle      *int16 // nil: none may stand behind the name
}

// nodeArg takes a node. The id of one that is told by name is there once a planner
// was asked: when with, one and change ask their question.
func (c *clientFlags) nodeArg(field, word string, id *proto.NodeID) error {
	if !fabric.IsNodeName(word) {
		n, err := number(field, word, 0)
		*id = proto.NodeID(n)
		return err
	}
	c.named = append(c.named, named{field: field, word: word, id: id})
	return nil
}

// placeArg takes a node, a bundle of it (bundle is not nil), or a switch.
func (c *clientFlags) placeArg(word string, id *proto.NodeID, bundle *int16) error {
	first, _, _ := strings.Cut(word, "/")
	_, isSwitch := strings.CutPrefix(first, "switch-")
	if !isSwitch && fabric.IsNodeName(first) && fabric.IsNodeName(word) {
		c.named = append(c.named, named{"node", word, id, bundle})
		return nil
	}
	at, b, err := parsePlace(word)
	if err == nil && b >= 0 && bundle == nil {
		err = wrongUsage("node", "a NODE or switch-N", "%q", cli.Clip(word))
	}
	if err != nil {
		return err
	}
	if *id = at; bundle != nil {
		*bundle = b
	}
	return nil
}

// findNamed asks for the names of all nodes, if one was told by name.
func (c *clientFlags) findNamed(ctx context.Context, cl *client) error {
	if len(c.named) == 0 {
		return nil
	}
	ids := map[string]proto.NodeID{}
	c.names = map[proto.NodeID]string{}
	if err := cl.Pages(ctx, proto.OpRequest{Noun: proto.NounNodes}, func(r *proto.OpReply) {
		for i := range r.Nodes {
			if n := &r.Nodes[i]; n.Name != "" {
				ids[n.Name] = n.Node
				c.names[n.Node] = n.Name
			}
		}
	}); err != nil {
		return err
	}
	for _, n := range c.named {
		if err := n.find(ids); err != nil {
			return err
		}
	}
	return nil
}

// nodesIn finds the nodes in a text of the planner or of ours, numberIn each.
var nodesIn, numberIn = regexp.MustCompile(`\bnodes? [0-9]+((, | and )[0-9]+)*\b`), regexp.MustCompile(`[0-9]+`)

// say says it as cli.Say does, with names to who told a node by name.
func (c *clientFlags) say(out io.Writer, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if len(c.names) > 0 {
		text = nodesIn.ReplaceAllStringFunc(text, func(nodes string) string {
			return numberIn.ReplaceAllStringFunc(nodes[strings.IndexByte(nodes, ' ')+1:], func(number string) string {
				id, _ := strconv.ParseUint(number, 10, 32)
				return cmp.Or(c.names[proto.NodeID(id)], "node "+number)
			})
		})
	}
	cli.Say(out, "%s", text)
}

func (n *named) find(ids map[string]proto.NodeID) error {
	word, bundle := n.word, int16(-1)
	id, known := ids[word]
	if at := strings.LastIndexByte(word, '/'); !known && at > 0 && n.bundle != nil { // a name may have a / itself
		_, b, err := parsePlace("0" + word[at:])
		if err != nil {
			return err
		}
		word, bundle = word[:at], b
		id, known = ids[word]
	}
	switch {
	case known:
		if *n.id = id; n.bundle != nil {
			*n.bundle = bundle
		}
		return nil
	case len(ids) == 0:
		return wrongUsage(n.field, "a number", "there is no node %q: the fabric's description has no node_names", cli.Clip(word))
	}
	return wrongUsage(n.field, fmt.Sprintf("a number, or one of the %d names that ocsctl node list shows", len(ids)), "there is no node %q%s", cli.Clip(word), cli.Meant(word, slices.Sorted(maps.Keys(ids))))
}
