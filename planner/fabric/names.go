package fabric

import (
	"fmt"
	"strconv"
	"strings"

	"ringlight/proto"
)

// maxLabel bounds the name of a node and the label of a fibre. chosen: a host
// name's longest part is 63.
const maxLabel = 64

// NodeName is what people call a node, "" where the description does not say.
func (f *Fabric) NodeName(id proto.NodeID) string {
	if int(id) >= len(f.NodeNames) {
		return ""
	}
	return f.NodeNames[id]
}

// FindNode finds a node by its name or its number.
func (f *Fabric) FindNode(text string) (proto.NodeID, bool) {
	if id, err := strconv.ParseUint(text, 10, 32); err == nil {
		return proto.NodeID(id), id < uint64(f.Nodes)
	}
	id, ok := f.byName[text]
	return id, ok
}

// ParseNames reads the names of nodes in HBD order, one a line.
func ParseNames(data []byte) []string {
	names := strings.Split(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")
	for len(names) > 0 && strings.TrimSpace(names[len(names)-1]) == "" {
		names = names[:len(names)-1]
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return names
}

// validateNames checks that a name is one node's alone, and no number.
func (f *Fabric) validateNames() []error {
	if n := len(f.NodeNames); n > f.Nodes {
		return []error{wrong("node_names", fmt.Sprintf("at most %d, one a node", f.Nodes), "%d", n)}
	}
	var errs []error
	seen := map[string]int{}
	for i, name := range f.NodeNames {
		field := fmt.Sprintf("node_names[%d]", i)
		other, taken := seen[name]
		switch {
		case name == "":
			continue
		case !IsNodeName(name):
			errs = append(errs, wrong(field, "1 to 64 letters, digits and . _ - /, and not digits alone", "%.80q", name))
		case taken:
			errs = append(errs, wrong(field, "one node a name", "%q is node %d", name, other))
		}
		seen[name] = i
		if len(errs) == maxErrors {
			break
		}
	}
	return errs
}

// IsNodeName says whether a node may be called so; if not, it may be a number.
func IsNodeName(s string) bool { return validLabel(s) && strings.Trim(s, "0123456789") != "" }

// validLabel: it can stand in a table, a topic's filter of a log and a CSV file.
func validLabel(s string) bool {
	for _, c := range s {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-/", c) {
			return false
		}
	}
	return s != "" && len(s) <= maxLabel
}
