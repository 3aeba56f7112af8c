package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

func pkiIssuer(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki issuer")
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for its file; default: that of -dir")
	f.fs.IntVar(&f.days, "days", 365, "`NUMBER` of days that it may give certificates")
	stolen := f.fs.Bool("stolen", false, "an earlier issuer's key is stolen: certificates of all issuers before the last count no more")
	folder, words, err := f.open(args, `Makes a key that vouches for nodes, and for nothing else: a planner that has it (-issuer
FILE) gives a node with a token its certificate, and has keys replaced before their
certificates end. Again, with another name: that one takes its place, and all nodes' keys
are replaced. Who is away meanwhile is known by the former key until it is back; after a
theft make one, wait until all nodes have other keys, and make another with -stolen.

example: ocsctl pki issuer a`, true)
	if err != nil {
		return err
	}
	if len(words) != 1 {
		return wrongUsage("name", "one name", "%q", cli.Clip(strings.Join(words, " ")))
	}
	r := f.request(0)
	r.Stolen = *stolen
	one, err := folder.Issuer(r, words[0])
	if err != nil {
		return pkiError(err)
	}
	return f.tell(folder, out, []pki.Issued{one})
}

func pkiToken(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki token")
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for the tokens; default: that of -dir")
	f.fs.IntVar(&f.days, "days", 7, "`NUMBER` of days that a token is good for, by the planner's clock")
	folder, words, err := f.open(args, `Makes a token for each node: a file by which an agent without a key (token in its
configuration) asks for its certificate. Its key is made on the node and never leaves it.
The first key that comes with a token has it; another one is refused, and an alarm stands.

example: ocsctl pki token 0-63 -out tokens`, true)
	if err != nil {
		return err
	}
	names, err := nodesOf(folder, words)
	if err != nil {
		return err
	}
	list, err := folder.Tokens(f.request(0, names...))
	if err != nil {
		return pkiError(err)
	}
	if f.json {
		return printJSON(out, map[string]any{"tokens": list, "edition": folder.Trust.Edition})
	}
	for _, i := range list {
		fmt.Fprintf(out, "%s  until %s\n", i.KeyFile, i.NotAfter.Format("2006-01-02 15:04"))
	}
	return nil
}

func pkiTrustRenew(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki trust renew")
	folder, words, err := f.open(args, `Has every node's key replaced that a planner gave a certificate for: the next edition of
the trust document says so, and the planner asks node after node. The former keys count
until the new ones are in use.

example: ocsctl pki trust renew`, true)
	if err != nil {
		return err
	}
	if len(words) > 0 {
		return wrongUsage("pki trust renew", "no further word", "%q", cli.Clip(strings.Join(words, " ")))
	}
	if err := folder.Renewal(); err != nil {
		return pkiError(err)
	}
	ids := []seal.KeyID{}
	for _, k := range folder.Trust.Issuers {
		ids = append(ids, seal.IDOf(k[:]))
	}
	return f.changed(folder, out, "renews", string(proto.HolderNode)+"/+, by issuers", ids)
}

func pkiAdd(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki trust add")
	cert := f.fs.String("cert", "", "PEM `FILE` with a certificate of the key, from any authority")
	f.fs.StringVar(&f.role, "role", "", "`ROLE` of an operator: view, operate or admin")
	folder, words, err := f.open(args, `Trusts a key that its holder, or another authority, made. Its name is what its topics
begin with; TLS beyond it is that authority's business.

example: ocsctl pki trust add f1/op/bob -role view -cert bob.pem`, true)
	if err != nil {
		return err
	}
	if len(words) != 1 || *cert == "" {
		return wrongUsage("name", "a name, and -cert", "%q", strings.Join(words, " "))
	}
	h, err := proto.ParseHolder(words[0])
	if err != nil {
		return pkiError(err)
	}
	role, isOperator := proto.OperatorRole(f.role)
	switch {
	case h.Kind == proto.HolderNode:
		role = proto.RoleNode
	case h.Kind == proto.HolderPlanner:
		role = proto.RolePlanner
	case !isOperator:
		return wrongUsage("role", "view, operate or admin", "%q", f.role)
	}
	if h.Fabric != folder.Trust.Fabric {
		return wrongUsage("name", "of fabric "+folder.Trust.Fabric, "%q", words[0])
	}
	id, err := folder.Add(h, role, *cert)
	if err != nil {
		return pkiError(err)
	}
	return f.changed(folder, out, "trusts", h.String(), []seal.KeyID{id})
}
