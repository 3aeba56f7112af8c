package main

import (
	"fmt"
	"strings"

	"ringlight/proto"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

func pkiIssuer(f *pkiFlags, args []string) error {
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for its file; default: that of -dir")
	f.fs.IntVar(&f.days, "days", 365, "`NUMBER` of days that it may give certificates")
	stolen := f.fs.Bool("stolen", false, "an earlier issuer's key is stolen: certificates of all issuers before the last count no more")
	name, err := f.one(args, "one name")
	if err != nil {
		return err
	}
	r := f.request(0)
	r.Stolen = *stolen
	one, err := f.folder.Issuer(r, name)
	return f.tell([]pki.Issued{one}, err)
}

func pkiToken(f *pkiFlags, args []string) error {
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for the tokens; default: that of -dir")
	f.fs.IntVar(&f.days, "days", 7, "`NUMBER` of days that a token is good for, by the planner's clock")
	names, err := f.nodes(args)
	if err != nil {
		return err
	}
	list, err := f.folder.Tokens(f.request(0, names...))
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(f.answer, map[string]any{"tokens": list, "edition": f.folder.Trust.Edition})
	}
	for _, i := range list {
		fmt.Fprintf(f.answer, "%s  until %s\n", i.KeyFile, i.NotAfter.Format("2006-01-02 15:04"))
	}
	return nil
}

func pkiTrustRenew(f *pkiFlags, args []string) error {
	if err := f.none(args, true); err != nil {
		return err
	}
	err := f.folder.Renewal()
	ids := []seal.KeyID{}
	for _, k := range f.folder.Trust.Issuers {
		ids = append(ids, seal.IDOf(k[:]))
	}
	return f.changed("renews", string(proto.HolderNode)+"/+, by issuers", ids, err)
}

func pkiAdd(f *pkiFlags, args []string) error {
	cert := f.fs.String("cert", "", "PEM `FILE` with a certificate of the key, from any authority")
	named := f.fs.String("role", "", "`ROLE` of an operator: view, operate or admin")
	words, err := f.open(args, true)
	if err != nil {
		return err
	}
	if len(words) != 1 || *cert == "" {
		return wrongUsage("name", "a name, and -cert", "%q", strings.Join(words, " "))
	}
	h, err := proto.ParseHolder(words[0])
	if err != nil {
		return err
	}
	role, isOperator := proto.OperatorRole(*named)
	switch {
	case h.Kind == proto.HolderNode:
		role = proto.RoleNode
	case h.Kind == proto.HolderPlanner:
		role = proto.RolePlanner
	case !isOperator:
		return wrongUsage("role", "view, operate or admin", "%q", *named)
	}
	if h.Fabric != f.folder.Trust.Fabric {
		return wrongUsage("name", "of fabric "+f.folder.Trust.Fabric, "%q", words[0])
	}
	id, err := f.folder.Add(h, role, *cert)
	return f.changed("trusts", h.String(), []seal.KeyID{id}, err)
}
