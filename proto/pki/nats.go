package pki

import (
	"fmt"
	"io"
	"strings"

	"ringlight/proto"
)

// NATS writes the rights of a fabric as the users of nats-server 2, each known by the name
// in the certificate, with what a server's configuration needs. All rights are those of
// proto's table; every holder is listed, as there are no patterns.
func (f *Folder) NATS(w io.Writer) error {
	t := f.Trust
	var b strings.Builder
	fmt.Fprintf(&b, `# Users of nats-server for fabric %[1]s, edition %[2]d, by ocsctl pki acl -broker nats. Each
# server of the cluster includes this file and has besides:
#
#   server_name: NAME
#   listen: 127.0.0.1:4222
#   max_payload: 131072
#   jetstream { store_dir: "/var/lib/nats" }
#   cluster { name: %[1]s, listen: "0.0.0.0:6222", routes: [] } # of the others, with tls
#   mqtt {
#     listen: "0.0.0.0:8883"
#     tls { ca_file: "ca.pem", cert_file: "%[1]s-broker-NAME.pem", key_file: "%[1]s-broker-NAME.key", verify_and_map: true, min_version: "1.3" }
#   }
#
# It goes with cache off of planner and agents. nats-server binds no client ids: who is let
# in can throw another off by its id. After a change: nats-server --signal reload, which ends
# connections of who is named no more; a second key under one name it cannot tell apart.
authorization {
  users: [
`, t.Fabric, t.Edition)
	holders, err := f.listed()
	if err != nil {
		return err
	}
	for _, k := range t.NodeList() {
		holders = append(holders, k.Holder)
	}
	done := map[proto.Holder]bool{}
	for _, h := range holders {
		if done[h] {
			continue // a second key of a node
		}
		done[h] = true
		fmt.Fprintf(&b, "    { user: \"CN=%s\", allowed_connection_types: [\"MQTT\"], permissions: {\n", h)
		for i, what := range []string{"publish", "subscribe"} {
			var list []string
			for _, g := range h.Grants() {
				if i == 0 && g.Publish || i == 1 && g.Receive {
					list = append(list, fmt.Sprintf("%q", subject(g.Filter)))
				}
			}
			fmt.Fprintf(&b, "      %s: { allow: [%s] }\n", what, strings.Join(list, ", "))
		}
		b.WriteString("    } }\n")
	}
	b.WriteString("  ]\n}\n")
	_, err = io.WriteString(w, b.String())
	return err
}

// subject is a filter as NATS writes it; names of ours have no dots.
func subject(filter string) string {
	return strings.NewReplacer("/", ".", "+", "*", "#", ">").Replace(filter)
}
