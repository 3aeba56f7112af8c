package pki

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// NATS writes the rights of a fabric as the users of nats-server 2, each known by the subject
// of a certificate, in which the key's number is. All rights are those of proto's table; every
// key is listed, as there are no patterns.
func (f *Folder) NATS(w io.Writer) error {
	t := f.Trust
	var b strings.Builder
	fmt.Fprintf(&b, `# Users of nats-server 2 for fabric %[1]s, edition %[2]d, by ocsctl pki.
authorization {
  users: [
`, t.Fabric, t.Edition)
	subjects := map[string][]string{} // of a key
	for _, i := range f.issued.Certificates {
		if !slices.Contains(subjects[i.Key], i.Subject) {
			subjects[i.Key] = append(subjects[i.Key], i.Subject)
		}
	}
	done := map[string]bool{}
	for _, k := range t.All() {
		list := subjects[seal.IDOf(k.Public[:]).String()]
		if len(list) == 0 { // of another authority
			list = []string{"CN=" + k.Holder.String()}
		}
		for _, subject := range list {
			if !done[subject] {
				natsUser(&b, subject, k.Holder)
			}
			done[subject] = true
		}
	}
	b.WriteString("  ]\n}\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func natsUser(b *strings.Builder, subject string, h proto.Holder) {
	fmt.Fprintf(b, "    { user: %q, allowed_connection_types: [\"MQTT\"], permissions: {\n", subject)
	for i, what := range []string{"publish", "subscribe"} {
		var list []string
		for _, g := range h.Grants() {
			if i == 0 && g.Publish || i == 1 && g.Receive {
				list = append(list, fmt.Sprintf("%q", natsSubject(g.Filter)))
			}
		}
		fmt.Fprintf(b, "      %s: { allow: [%s] }\n", what, strings.Join(list, ", "))
	}
	b.WriteString("    } }\n")
}

// natsSubject is a filter as NATS writes it; names of ours have no dots.
func natsSubject(filter string) string {
	return strings.NewReplacer("/", ".", "+", "*", "#", ">").Replace(filter)
}
