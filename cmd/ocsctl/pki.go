package main

import (
	"cmp"
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
	fs     *flag.FlagSet
	answer io.Writer
	folder *pki.Folder // once it is open
	dir    string
	json   bool
	out    string
	days   int
	hosts  string
	words  string // file with the passphrase of the root's key
}

func newPKI(name string, answer io.Writer) *pkiFlags {
	f := &pkiFlags{fs: cli.NewFlags(name), answer: answer}
	f.fs.StringVar(&f.dir, "dir", "./pki", "`FOLDER` with the root; keep it off the network")
	f.fs.BoolVar(&f.json, "json", false, "print JSON")
	f.fs.StringVar(&f.words, "passphrase", os.Getenv("RINGLIGHT_PASSPHRASE"), "`FILE` whose first line the root's key is kept under, - to be asked on the terminal")
	return f
}

// issuing adds the flags of those that make keys and certificates.
func (f *pkiFlags) issuing() *pkiFlags {
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for key and certificate; default: that of -dir")
	return f.lasting()
}

// lasting adds that of those that make certificates.
func (f *pkiFlags) lasting() *pkiFlags {
	f.fs.IntVar(&f.days, "days", 365, "`NUMBER` of days that the certificate is good for")
	return f
}

// reached adds that of those whose certificate says where its holder is.
func (f *pkiFlags) reached() *pkiFlags {
	f.fs.StringVar(&f.hosts, "host", "", "`NAMES` and addresses under which it is reached, with commas between them")
	return f
}

// open reads the command line and opens the folder.
func (f *pkiFlags) open(args []string, sign bool) (words []string, err error) {
	if words, err = cli.Parse(f.fs, args, f.help()); err == nil {
		f.folder, err = pki.Open(f.dir, sign, f.passphrase(false))
	}
	return words, err
}

func (f *pkiFlags) help() string { return help(strings.ReplaceAll(f.fs.Name(), " ", "-")) }

// none is open where no word may stand.
func (f *pkiFlags) none(args []string, sign bool) error {
	words, err := f.open(args, sign)
	if err == nil && len(words) > 0 {
		err = wrongUsage(f.fs.Name(), "no further word", "%q", cli.Clip(strings.Join(words, " ")))
	}
	return err
}

// one is open, to sign, where one name must stand, which limit says.
func (f *pkiFlags) one(args []string, limit string) (string, error) {
	words, err := f.open(args, true)
	if err == nil && len(words) != 1 {
		err = wrongUsage("name", limit, "%q", cli.Clip(strings.Join(words, " ")))
	}
	if err != nil {
		return "", err
	}
	return words[0], nil
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
func (f *pkiFlags) issue(role proto.Role, names ...proto.Holder) error {
	return f.tell(f.folder.Issue(f.request(role, names...)))
}

// tell tells what was made, unless err says why it was not.
func (f *pkiFlags) tell(list []pki.Issued, err error) error {
	if err != nil {
		return err
	}
	ca, trust := f.folder.Files()
	if f.json {
		return printJSON(f.answer, map[string]any{"issued": list, "ca": ca, "trust": trust, "edition": f.folder.Trust.Edition})
	}
	for _, i := range list {
		fmt.Fprintf(f.answer, "%s  key %s, until %s\n", i.Name, i.ID, i.NotAfter.Format("2006-01-02"))
		if i.KeyFile != i.CertFile { // an issuer's file has both
			fmt.Fprintf(f.answer, "  %s\n", cmp.Or(i.KeyFile, "key as before"))
		}
		fmt.Fprintf(f.answer, "  %s\n", i.CertFile)
	}
	_, err = fmt.Fprintf(f.answer, "edition %d of %s; authority %s\n", f.folder.Trust.Edition, trust, ca)
	return err
}

func pkiInit(f *pkiFlags, args []string) error {
	fabric := f.fs.String("fabric", "f1", "`NAME` of the fabric")
	domain := f.fs.String("domain", "ringlight", "`DOMAIN` of the names in certificates, spiffe://DOMAIN/f1/n/7")
	_, err := cli.ParseNone(f.fs, args, f.help())
	if err != nil {
		return err
	}
	var under []pki.Passphrase
	if f.words != "" {
		under = append(under, f.passphrase(true))
	}
	f.folder, err = pki.Init(f.dir, *fabric, *domain, under...)
	return f.tell(nil, err)
}

func pkiPlanner(f *pkiFlags, args []string) error {
	h, err := f.issuing().reached().holder(args, proto.HolderPlanner)
	if err != nil {
		return err
	}
	return f.issue(proto.RolePlanner, h)
}

func pkiBroker(f *pkiFlags, args []string) error {
	h, err := f.issuing().reached().holder(args, proto.HolderPlanner)
	if err != nil {
		return err
	}
	one, err := f.folder.Broker(f.request(0), h.ID)
	return f.tell([]pki.Issued{one}, err)
}

// holder is one, where the name is that of a holder.
func (f *pkiFlags) holder(args []string, kind proto.HolderKind) (h proto.Holder, err error) {
	name, err := f.one(args, "one name")
	if err != nil {
		return h, err
	}
	fabric := f.folder.Trust.Fabric
	if !strings.Contains(name, "/") {
		name = fabric + "/" + string(kind) + "/" + name
	}
	h, err = proto.ParseHolder(name)
	if err == nil && (h.Fabric != fabric || h.Kind != kind) {
		err = wrongUsage("name", fabric+"/"+string(kind)+"/NAME", "%q", name)
	}
	return h, err
}

func pkiNode(f *pkiFlags, args []string) error {
	names, err := f.issuing().reached().nodes(args)
	if err != nil {
		return err
	}
	return f.issue(proto.RoleNode, names...)
}

// nodes is open, to sign, where nodes must stand.
func (f *pkiFlags) nodes(args []string) ([]proto.Holder, error) {
	words, err := f.open(args, true)
	if err != nil {
		return nil, err
	}
	return f.nodesOf(words)
}

// nodesOf are the nodes that words such as 7 and 0-63 name.
func (f *pkiFlags) nodesOf(words []string) (names []proto.Holder, err error) {
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
			names = append(names, proto.Topics{Fabric: f.folder.Trust.Fabric}.NodeHolder(proto.NodeID(n)))
		}
	}
	return names, nil
}

// maxNodesAtOnce bounds one command. chosen: a cell, and its switches.
const maxNodesAtOnce = 16_384

func pkiOperator(f *pkiFlags, args []string) error {
	named := f.fs.String("role", "view", "`ROLE`: view asks; operate also drains, holds and moves single nodes and sides; admin also changes jobs and the fabric")
	h, err := f.issuing().holder(args, proto.HolderOperator)
	if err != nil {
		return err
	}
	role, ok := proto.OperatorRole(*named)
	if !ok {
		return wrongUsage("role", "view, operate or admin", "%q", *named)
	}
	return f.issue(role, h)
}

func pkiRenew(f *pkiFlags, args []string) error {
	words, err := f.lasting().open(args, true)
	if err == nil && len(words) == 0 {
		err = wrongUsage("cert", "PEM files with certificates", "none")
	}
	list := make([]pki.Issued, len(words))
	for i := 0; i < len(words) && err == nil; i++ {
		list[i], err = f.folder.Renew(words[i], f.days)
	}
	return f.tell(list, err)
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
		out = append(out, trustedJSON{t.Fabric + "/issuer/+", cli.Either(i == 0, "issuer", "former issuer"), seal.IDOf(k[:]).String()})
	}
	return out
}

func pkiList(f *pkiFlags, args []string) error {
	if err := f.none(args, false); err != nil {
		return err
	}
	t := f.folder.Trust
	if f.json {
		return printJSON(f.answer, map[string]any{"fabric": t.Fabric, "edition": t.Edition, "root": seal.IDOf(t.Root[:]).String(), "keys": trustedOf(t)})
	}
	fmt.Fprintf(f.answer, "fabric %s, edition %d, root %s\n", t.Fabric, t.Edition, seal.IDOf(t.Root[:]))
	rows(f.answer, "NAME\tROLE\tKEY", trustedOf(t), func(k trustedJSON) string {
		return fmt.Sprintf("%s\t%s\t%s", k.Name, k.Role, k.ID)
	})
	return nil
}

// changed tells what an edition changed, unless err says why it did not.
func (f *pkiFlags) changed(verb, name string, ids []seal.KeyID, err error) error {
	if err != nil {
		return err
	}
	list := []string{}
	for _, id := range ids {
		list = append(list, id.String())
	}
	for _, name := range f.folder.Unlisted() {
		fmt.Fprintf(os.Stderr, "ocsctl: mosquitto refuses certificates of %s: append its list of revoked ones, with its key's id, to %s, then: ocsctl pki trust sign\n", name, filepath.Join(f.dir, "crl.pem"))
	}
	_, trust := f.folder.Files()
	if f.json {
		return printJSON(f.answer, map[string]any{verb: list, "name": name, "trust": trust, "edition": f.folder.Trust.Edition})
	}
	_, err = fmt.Fprintf(f.answer, "edition %d of %s %s %s: %s\n", f.folder.Trust.Edition, trust, verb, name, cmp.Or(strings.Join(list, ", "), "by name, no key of it is in this folder"))
	return err
}

func pkiRevoke(f *pkiFlags, args []string) error {
	key := f.fs.String("key", "", "only the key whose `NUMBER` begins so")
	name, err := f.one(args, "one name, as ocsctl pki list has it")
	if err != nil {
		return err
	}
	gone, err := f.folder.Revoke(name, *key)
	return f.changed("revokes", name, gone, err)
}

func pkiSign(f *pkiFlags, args []string) error {
	renew := f.fs.Bool("new-root", false, "with a new root, sealed by the former ones too")
	if err := f.none(args, true); err != nil {
		return err
	}
	sign := f.folder.Seal
	if *renew {
		sign = f.folder.NewRoot
	}
	if err := sign(); err != nil {
		return err
	}
	t := f.folder.Trust
	return f.changed("sealed_by", "root", slices.Insert(t.Roots()[1:], 0, seal.IDOf(t.Root[:])), nil)
}

func pkiACL(f *pkiFlags, args []string) error {
	broker := f.fs.String("broker", "mosquitto", "`KIND` of broker: mosquitto or nats; the planner's own has these rights by itself")
	words, err := f.open(args, false)
	if err != nil {
		return err
	}
	write, known := map[string]func(io.Writer) error{"mosquitto": f.folder.Mosquitto, "nats": f.folder.NATS}[*broker]
	if len(words) > 0 || !known {
		return wrongUsage("broker", "mosquitto or nats", "%q", strings.TrimSpace(*broker+" "+strings.Join(words, " ")))
	}
	return write(f.answer)
}
