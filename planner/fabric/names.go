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

// ServerName is what people call a server of the core, by its number through all
// leaves; where the description does not say it has its leaf and its number there.
func (f *Fabric) ServerName(server int) string {
	switch {
	case server < len(f.ServerNames) && f.ServerNames[server] != "":
		return f.ServerNames[server]
	case f.Core.LeafServers() == 0:
		return fmt.Sprintf("server%d", server)
	}
	return fmt.Sprintf("leaf%d-server%d", server/f.Core.LeafServers(), server%f.Core.LeafServers())
}

// validateNames checks that a name is one node's, or one server's, alone, and no number.
func validateNames(of string, names []string, most int) []error {
	if n := len(names); n > most {
		return []error{wrong(of+"_names", fmt.Sprintf("at most %d, one a %s", most, of), "%d", n)}
	}
	var errs []error
	seen := map[string]int{}
	for i, name := range names {
		field := fmt.Sprintf("%s_names[%d]", of, i)
		other, taken := seen[name]
		switch {
		case name == "":
			continue
		case !IsNodeName(name):
			errs = append(errs, wrong(field, "1 to 64 letters, digits and . _ - /, and not digits alone", "%.80q", name))
		case taken:
			errs = append(errs, wrong(field, "one "+of+" a name", "%q is %s %d", name, of, other))
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
	return s != "" && len(s) <= maxLabel && !strings.ContainsFunc(s, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-/", c)
	})
}
