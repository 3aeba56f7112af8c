package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
	"ringlight/proto/pki"
	"ringlight/proto/seal"
)

// pkiFlags are those of every command on a folder of keys.
type pkiFlags struct {
	fs    *flag.FlagSet
	dir   string
	json  bool
	out   string
	days  int
	hosts string
	role  string
	key   string
	words string // file with the passphrase of the root's key
}

func newPKI(name string) *pkiFlags {
	f := &pkiFlags{fs: cli.NewFlags(name)}
	f.fs.StringVar(&f.dir, "dir", "./pki", "`FOLDER` with the root; keep it off the network")
	f.fs.BoolVar(&f.json, "json", false, "print JSON")
	f.fs.StringVar(&f.words, "passphrase", os.Getenv("RINGLIGHT_PASSPHRASE"), "`FILE` whose first line the root's key is kept under, - to be asked on the terminal")
	return f
}

// issuing adds the flags of those that make keys and certificates.
func (f *pkiFlags) issuing(hosts bool) *pkiFlags {
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for key and certificate; default: that of -dir")
	f.fs.IntVar(&f.days, "days", 365, "`NUMBER` of days that the certificate is good for")
	if hosts {
		f.fs.StringVar(&f.hosts, "host", "", "`NAMES` and addresses under which it is reached, with commas between them")
	}
	return f
}

// open reads the command line and opens the folder.
func (f *pkiFlags) open(args []string, sign bool) (*pki.Folder, []string, error) {
	words, err := cli.Parse(f.fs, args, f.help())
	if err != nil {
		return nil, nil, err
	}
	folder, err := pki.Open(f.dir, sign, f.passphrase(false))
	return folder, words, pkiError(err)
}

func (f *pkiFlags) help() string { return help(strings.ReplaceAll(f.fs.Name(), " ", "-")) }

// none is open where no word may stand.
func (f *pkiFlags) none(args []string, sign bool) (*pki.Folder, error) {
	folder, words, err := f.open(args, sign)
	if err == nil && len(words) > 0 {
		err = wrongUsage(f.fs.Name(), "no further word", "%q", cli.Clip(strings.Join(words, " ")))
	}
	return folder, err
}

// one is open, to sign, where one name must stand, which limit says.
func (f *pkiFlags) one(args []string, limit string) (*pki.Folder, string, error) {
	folder, words, err := f.open(args, true)
	if err == nil && len(words) != 1 {
		err = wrongUsage("name", limit, "%q", cli.Clip(strings.Join(words, " ")))
	}
	if err != nil {
		return nil, "", err
	}
	return folder, words[0], nil
}

// pkiError: what a folder refuses is bad input; what the disk refuses is not.
func pkiError(err error) error {
	if e := new(proto.Error); errors.As(err, &e) {
		return cli.Usage(e.Field, e.Limit, "%s", e.Reason)
	}
	return err
}

func (f *pkiFlags) request(role proto.Role, names ...proto.Holder) pki.Request {
	r := pki.Request{Names: names, Role: role, Days: f.days, Out: f.out}
	if f.hosts != "" {
		r.Hosts = strings.Split(f.hosts, ",")
	}
	return r
}

// issue makes keys and certificates and tells where they are.
func (f *pkiFlags) issue(folder *pki.Folder, role proto.Role, out io.Writer, names ...proto.Holder) error {
	list, err := folder.Issue(f.request(role, names...))
	if err != nil {
		return pkiError(err)
	}
	return f.tell(folder, out, list)
}

func (f *pkiFlags) tell(folder *pki.Folder, out io.Writer, list []pki.Issued) error {
	ca, trust := folder.Files()
	if f.json {
		return printJSON(out, map[string]any{"issued": list, "ca": ca, "trust": trust, "edition": folder.Trust.Edition})
	}
	for _, i := range list {
		fmt.Fprintf(out, "%s  key %s, until %s\n", i.Name, i.ID, i.NotAfter.Format("2006-01-02"))
		if i.KeyFile != i.CertFile { // an issuer's file has both
			fmt.Fprintf(out, "  %s\n", cmp.Or(i.KeyFile, "key as before"))
		}
		fmt.Fprintf(out, "  %s\n", i.CertFile)
	}
	_, err := fmt.Fprintf(out, "edition %d of %s; authority %s\n", folder.Trust.Edition, trust, ca)
	return err
}

func pkiInit(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki init")
	fabric := f.fs.String("fabric", "f1", "`NAME` of the fabric")
	domain := f.fs.String("domain", "ringlight", "`DOMAIN` of the names in certificates, spiffe://DOMAIN/f1/n/7")
	if _, err := cli.ParseNone(f.fs, args, f.help()); err != nil {
		return err
	}
	var under []pki.Passphrase
	if f.words != "" {
		under = append(under, f.passphrase(true))
	}
	folder, err := pki.Init(f.dir, *fabric, *domain, under...)
	if err != nil {
		return pkiError(err)
	}
	return f.tell(folder, out, nil)
}

func pkiPlanner(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki planner").issuing(true)
	folder, h, err := f.holder(args, proto.HolderPlanner)
	if err != nil {
		return err
	}
	return f.issue(folder, proto.RolePlanner, out, h)
}

func pkiBroker(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki broker").issuing(true)
	folder, h, err := f.holder(args, proto.HolderPlanner)
	if err != nil {
		return err
	}
	one, err := folder.Broker(f.request(0), h.ID)
	if err != nil {
		return pkiError(err)
	}
	return f.tell(folder, out, []pki.Issued{one})
}

// holder is one, where the name is that of a holder.
func (f *pkiFlags) holder(args []string, kind proto.HolderKind) (folder *pki.Folder, h proto.Holder, err error) {
	folder, name, err := f.one(args, "one name")
	if err != nil {
		return nil, h, err
	}
	if !strings.Contains(name, "/") {
		name = folder.Trust.Fabric + "/" + string(kind) + "/" + name
	}
	h, err = proto.ParseHolder(name)
	if err == nil && (h.Fabric != folder.Trust.Fabric || h.Kind != kind) {
		err = wrongUsage("name", folder.Trust.Fabric+"/"+string(kind)+"/NAME", "%q", name)
	}
	return folder, h, pkiError(err)
}

func pkiNode(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki node").issuing(true)
	folder, words, err := f.open(args, true)
	if err != nil {
		return err
	}
	names, err := nodesOf(folder, words)
	if err != nil {
		return err
	}
	return f.issue(folder, proto.RoleNode, out, names...)
}

// nodesOf are the nodes that words such as 7 and 0-63 name.
func nodesOf(folder *pki.Folder, words []string) (names []proto.Holder, err error) {
	if len(words) == 0 {
		return nil, wrongUsage("node", "numbers, such as 7 or 0-63", "none")
	}
	for _, w := range words {
		first, last, isRange := strings.Cut(w, "-")
		if !isRange {
			last = first
		}
		a, err1 := strconv.ParseUint(first, 10, 32)
		b, err2 := strconv.ParseUint(last, 10, 32)
		if err1 != nil || err2 != nil || b < a || b-a >= maxNodesAtOnce {
			return nil, wrongUsage("node", fmt.Sprintf("numbers, such as 7 or 0-63, at most %d", maxNodesAtOnce), "%q", w)
		}
		for n := a; n <= b; n++ {
			names = append(names, proto.Topics{Fabric: folder.Trust.Fabric}.NodeHolder(proto.NodeID(n)))
		}
	}
	return names, nil
}

// maxNodesAtOnce bounds one command. chosen: a cell, and its switches.
const maxNodesAtOnce = 16_384

func pkiOperator(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki operator").issuing(false)
	f.fs.StringVar(&f.role, "role", "view", "`ROLE`: view asks; operate also drains, holds and moves single nodes and sides; admin also changes jobs and the fabric")
	folder, h, err := f.holder(args, proto.HolderOperator)
	if err != nil {
		return err
	}
	role, ok := proto.OperatorRole(f.role)
	if !ok {
		return wrongUsage("role", "view, operate or admin", "%q", f.role)
	}
	return f.issue(folder, role, out, h)
}

func pkiRenew(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki renew")
	f.fs.IntVar(&f.days, "days", 365, "`NUMBER` of days that the certificate is good for")
	folder, words, err := f.open(args, true)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return wrongUsage("cert", "PEM files with certificates", "none")
	}
	var list []pki.Issued
	for _, file := range words {
		one, err := folder.Renew(file, f.days)
		if err != nil {
			return pkiError(err)
		}
		list = append(list, one)
	}
	return f.tell(folder, out, list)
}

// trustedJSON is the form that scripts rely on.
type trustedJSON struct {
	Name string `json:"name"`
	Role string `json:"role"`
	ID   string `json:"key_id"`
}

func trustedOf(t *seal.Trust) []trustedJSON {
	out := []trustedJSON{}
	for _, k := range t.All() {
		out = append(out, trustedJSON{k.Holder.String(), k.Role.String(), seal.IDOf(k.Public[:]).String()})
	}
	for i, k := range slices.Concat(t.Issuers, t.Former) {
		role := "former issuer"
		if i == 0 {
			role = "issuer"
		}
		out = append(out, trustedJSON{t.Fabric + "/issuer/+", role, seal.IDOf(k[:]).String()})
	}
	return out
}

func pkiList(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki list")
	folder, err := f.none(args, false)
	if err != nil {
		return err
	}
	t := folder.Trust
	if f.json {
		return printJSON(out, map[string]any{"fabric": t.Fabric, "edition": t.Edition, "root": seal.IDOf(t.Root[:]).String(), "keys": trustedOf(t)})
	}
	fmt.Fprintf(out, "fabric %s, edition %d, root %s\n", t.Fabric, t.Edition, seal.IDOf(t.Root[:]))
	rows(out, "NAME\tROLE\tKEY", trustedOf(t), func(k trustedJSON) string {
		return fmt.Sprintf("%s\t%s\t%s", k.Name, k.Role, k.ID)
	})
	return nil
}

// changed tells what an edition changed.
func (f *pkiFlags) changed(folder *pki.Folder, out io.Writer, verb, name string, ids []seal.KeyID) error {
	list := []string{}
	for _, id := range ids {
		list = append(list, id.String())
	}
	for _, name := range folder.Unlisted() {
		fmt.Fprintf(os.Stderr, "ocsctl: mosquitto refuses certificates of %s: append its list of revoked ones, with its key's id, to %s, then: ocsctl pki trust sign\n", name, filepath.Join(f.dir, "crl.pem"))
	}
	_, trust := folder.Files()
	if f.json {
		return printJSON(out, map[string]any{verb: list, "name": name, "trust": trust, "edition": folder.Trust.Edition})
	}
	_, err := fmt.Fprintf(out, "edition %d of %s %s %s: %s\n", folder.Trust.Edition, trust, verb, name, cmp.Or(strings.Join(list, ", "), "by name, no key of it is in this folder"))
	return err
}

func pkiRevoke(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki revoke")
	f.fs.StringVar(&f.key, "key", "", "only the key whose `NUMBER` begins so")
	folder, name, err := f.one(args, "one name, as ocsctl pki list has it")
	if err != nil {
		return err
	}
	gone, err := folder.Revoke(name, f.key)
	if err != nil {
		return pkiError(err)
	}
	return f.changed(folder, out, "revokes", name, gone)
}

func pkiSign(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki trust sign")
	renew := f.fs.Bool("new-root", false, "with a new root, sealed by the former ones too")
	folder, err := f.none(args, true)
	if err != nil {
		return err
	}
	if *renew {
		err = folder.NewRoot()
	} else {
		err = folder.Seal()
	}
	if err != nil {
		return pkiError(err)
	}
	root := seal.IDOf(folder.Trust.Root[:])
	return f.changed(folder, out, "sealed_by", "root", slices.Insert(folder.Trust.Roots()[1:], 0, root))
}

func pkiACL(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki acl")
	broker := f.fs.String("broker", "mosquitto", "`KIND` of broker: mosquitto or nats; the planner's own has these rights by itself")
	folder, words, err := f.open(args, false)
	if err != nil {
		return err
	}
	write, known := map[string]func(io.Writer) error{"mosquitto": folder.Mosquitto, "nats": folder.NATS}[*broker]
	if len(words) > 0 || !known {
		return wrongUsage("broker", "mosquitto or nats", "%q", strings.TrimSpace(*broker+" "+strings.Join(words, " ")))
	}
	return write(out)
}
