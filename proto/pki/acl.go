package pki

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ringlight/proto"
)

// Mosquitto writes the rights of a fabric as an access list of mosquitto 2. Patterns with
// %u, the name in a certificate or the user's, serve any number of nodes; planners,
// operators and revoked names are listed. All rights are those of proto's table.
func (f *Folder) Mosquitto(w io.Writer) error {
	users, err := f.users()
	if err != nil {
		return err
	}
	return f.mosquitto(w, users)
}

func (f *Folder) mosquitto(w io.Writer, users map[string]string) error {
	t := f.Trust
	node := proto.Topics{Fabric: t.Fabric}.NodeHolder(0)
	operator := proto.Holder{Fabric: t.Fabric, Kind: proto.HolderOperator, ID: "x"}
	var b strings.Builder
	fmt.Fprintf(&b, `# Access list of mosquitto 2 for fabric %s, edition %d, by ocsctl pki. What nodes share,
# operators may read too: patterns are for everybody.
`, t.Fabric, t.Edition)
	own := func(h proto.Holder) {
		for _, g := range h.Grants() {
			if g.Own {
				fmt.Fprintf(&b, "pattern %s %s\n", access(g), strings.Replace(g.Filter, h.String(), "%u", 1))
			}
		}
	}
	own(node)
	own(operator)
	own(proto.Holder{Fabric: t.Fabric, Kind: proto.HolderEnrol, ID: "0"})
	for _, g := range node.Grants() {
		if !g.Own {
			fmt.Fprintf(&b, "pattern %s %s\n", access(g), g.Filter)
		}
	}
	for _, h := range f.listed(users) {
		fmt.Fprintf(&b, "\nuser %s\n", h)
		for _, g := range h.Grants() {
			if !g.Own {
				fmt.Fprintf(&b, "topic %s %s\n", access(g), g.Filter)
			}
		}
	}
	for _, name := range f.issued.Revoked {
		fmt.Fprintf(&b, "\nuser %s\ntopic deny #\n", name)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func access(g proto.Grant) string {
	switch {
	case g.Publish && g.Receive:
		return "readwrite"
	case g.Publish:
		return "write"
	}
	return "read"
}

// listed are the planners and operators that are trusted or have a password, each once.
func (f *Folder) listed(users map[string]string) (out []proto.Holder) {
	for _, k := range f.Trust.All() {
		out = append(out, k.Holder)
	}
	for name := range users { // any order: sorted
		h, _ := proto.ParseHolder(name) // checked by ReadUsers
		out = append(out, h)
	}
	out = slices.DeleteFunc(out, func(h proto.Holder) bool { return h.Kind == proto.HolderNode })
	slices.SortFunc(out, func(a, b proto.Holder) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(out)
}
