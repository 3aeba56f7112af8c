package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/proto"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

func pkiIssuer(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki issuer")
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for its file; default: that of -dir")
	f.fs.IntVar(&f.days, "days", 365, "`NUMBER` of days that it may give certificates")
	stolen := f.fs.Bool("stolen", false, "an earlier issuer's key is stolen: certificates of all issuers before the last count no more")
	folder, name, err := f.one(args, "one name")
	if err != nil {
		return err
	}
	r := f.request(0)
	r.Stolen = *stolen
	one, err := folder.Issuer(r, name)
	if err != nil {
		return pkiError(err)
	}
	return f.tell(folder, out, []pki.Issued{one})
}

func pkiToken(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki token")
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for the tokens; default: that of -dir")
	f.fs.IntVar(&f.days, "days", 7, "`NUMBER` of days that a token is good for, by the planner's clock")
	folder, words, err := f.open(args, true)
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
	folder, err := f.none(args, true)
	if err != nil {
		return err
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
	folder, words, err := f.open(args, true)
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
