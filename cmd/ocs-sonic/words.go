package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
)

// Modules, below data/.
const (
	wanted = "sonic-ocs:sonic-ocs/"
	states = "sonic-ocs-states:sonic-ocs-states/"
)

// heads are what columns are called where it is not as in the data.
var heads = map[string]string{"cross_connect_id": "id", "simplex_port_id": "id", "config_status": "state"}

// rows reads a list.
func (c *call) rows(container string) ([]map[string]string, error) {
	if !strings.Contains(container, ":") {
		container = wanted + container
	}
	var doc map[string]map[string][]map[string]string
	err := c.ask("GET", "data/"+container, nil, &doc)
	for _, lists := range doc { // any order: there is one
		for _, list := range lists { // any order: there is one
			return list, err
		}
	}
	return nil, err
}

// list prints a list as SONiC's commands do: columns below dashes, two spaces between.
func list(container string, columns ...string) func(*call) error {
	return func(c *call) error {
		if len(c.words) > 0 && !slices.Equal(c.words, []string{"status"}) {
			return cli.Usage("command", "nothing more", "%q", strings.Join(c.words, " "))
		}
		rows, err := c.rows(container)
		if err != nil {
			return err
		}
		table := [][]string{nil, nil}
		for _, name := range columns {
			head := name
			if other, ok := heads[name]; ok {
				head = other
			}
			table[0] = append(table[0], head)
		}
		for _, row := range rows {
			var cells []string
			for _, name := range columns {
				cells = append(cells, row[name])
			}
			table = append(table, cells)
		}
		for i := range columns {
			width := 0
			for _, cells := range table {
				if len(cells) > i {
					width = max(width, len(cells[i]))
				}
			}
			table[1] = append(table[1], strings.Repeat("-", width))
			for _, cells := range table {
				cells[i] += strings.Repeat(" ", width-len(cells[i])+2)
			}
		}
		for _, cells := range table {
			if _, err := fmt.Fprintln(c.out, strings.TrimRight(strings.Join(cells, ""), " ")); err != nil {
				return err
			}
		}
		return nil
	}
}

// maxRange bounds what two dots may mean. chosen: the ports of the widest switch.
const maxRange = 1024

// keys reads 1A-2B,3A-4B and 1A..4A-5B..8B.
func keys(text string) (out []map[string]string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		a, b, ok := strings.Cut(part, "-")
		from, err := ports(a, "A")
		to, err2 := ports(b, "B")
		if !ok || err != nil || err2 != nil || len(from) != len(to) {
			return nil, cli.Usage("id", "connections such as 1A-2B,3A-4B or 1A..4A-5B..8B", "%q", cli.Clip(part))
		}
		for i := range from {
			out = append(out, map[string]string{"cross_connect_id": from[i] + "-" + to[i], "a_side": from[i], "b_side": to[i]})
		}
	}
	return out, nil
}

// ports reads 3A, or 3A..7A.
func ports(text, side string) (out []string, err error) {
	first, last, several := strings.Cut(text, "..")
	if !several {
		last = first
	}
	low, err := strconv.Atoi(strings.TrimSuffix(first, side))
	high, err2 := strconv.Atoi(strings.TrimSuffix(last, side))
	if err != nil || err2 != nil || !strings.HasSuffix(first, side) || !strings.HasSuffix(last, side) || low < 1 || high < low || high-low >= maxRange {
		return nil, fmt.Errorf("%q is no port of side %s", text, side)
	}
	for n := low; n <= high; n++ {
		out = append(out, strconv.Itoa(n)+side)
	}
	return out, nil
}

// bulk carries out a change in one act; missing are keys of it that were not there.
func (c *call) bulk(input map[string]any) (deleted int, err error) {
	var result struct {
		Output struct {
			Deleted int      `json:"deleted_count"`
			Failed  []string `json:"failed_keys"`
		} `json:"sonic-ocs:output"`
	}
	if err = c.ask("POST", "operations/sonic-ocs:bulk-update", map[string]any{"sonic-ocs:input": input}, &result); err == nil && len(result.Output.Failed) > 0 {
		err = fmt.Errorf("failed: %s", strings.Join(result.Output.Failed, ", "))
	}
	return result.Output.Deleted, err
}

func add(c *call) error {
	mode := "update"
	if len(c.words) == 2 {
		mode = c.words[1]
	}
	if len(c.words) == 0 || len(c.words) > 2 || mode != "update" && mode != "safe" && mode != "overwrite" {
		return cli.Usage("command", "ID[,ID] [update|safe|overwrite]", "%q", strings.Join(c.words, " "))
	}
	list, err := keys(c.words[0])
	if err != nil {
		return err
	}
	input := map[string]any{"add": list}
	if mode != "update" {
		have, err := c.rows("OCS_CROSS_CONNECT")
		if err != nil {
			return err
		}
		var others []string
		for _, h := range have {
			if slices.ContainsFunc(list, func(n map[string]string) bool { return n["cross_connect_id"] == h["cross_connect_id"] }) {
				continue
			}
			others = append(others, h["cross_connect_id"])
			if mode == "safe" && slices.ContainsFunc(list, func(n map[string]string) bool { return n["a_side"] == h["a_side"] || n["b_side"] == h["b_side"] }) {
				return fmt.Errorf("%s has a port of it; without safe it goes", h["cross_connect_id"])
			}
		}
		if mode == "overwrite" {
			input["delete"] = others
		}
	}
	_, err = c.bulk(input)
	return err
}

func remove(c *call) error {
	if len(c.words) != 1 {
		return cli.Usage("command", "ID[,ID]", "%q", strings.Join(c.words, " "))
	}
	list, err := keys(c.words[0])
	if err != nil {
		return err
	}
	var names []string
	for _, n := range list {
		names = append(names, n["cross_connect_id"])
	}
	deleted, err := c.bulk(map[string]any{"delete": names})
	if err == nil && deleted < len(names) {
		return fmt.Errorf("%d of %d were not there", len(names)-deleted, len(names))
	}
	return err
}

// set changes one thing of a port.
func set(leaf string) func(*call) error {
	return func(c *call) error {
		if len(c.words) != 2 {
			return cli.Usage("command", "a port and what it is to have", "%q", strings.Join(c.words, " "))
		}
		port := map[string]string{"simplex_port_id": c.words[0], leaf: c.words[1]}
		return c.ask("PATCH", "data/"+wanted+"OCS_PORT", map[string]any{"sonic-ocs:OCS_PORT": map[string]any{"OCS_PORT_LIST": []any{port}}}, nil)
	}
}
