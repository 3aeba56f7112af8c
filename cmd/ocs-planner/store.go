package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner"
	"ringlight/planner/server"
	"ringlight/planner/server/etcd"
)

// storePatience is how long a cluster may take to answer a command. chosen.
const storePatience = 15 * time.Second

// storeCommand looks at a store that no planner writes, or copies it.
func storeCommand(ctx context.Context, args []string, t cli.Terminal) error {
	fs := cli.NewFlags("ocs-planner store")
	c := defaults()
	cli.Options(fs, &c, "state", "store", "store-name", "store-ca", "store-cert", "store-key", "insecure")
	asJSON := fs.Bool("json", false, "print JSON")
	words, err := cli.Parse(fs, args, `export writes what the store holds as lines of JSON, to stdout without a FILE;
import makes a new store of that; copy makes one of another store, each
bolt:FILE or etcd:URL,URL; check says what a store holds; audit writes its audit
chain, for ocsctl audit verify. A copy has the same
sha256. The file of a planner that runs is its alone: stop it first, no light
depends on it. A store in etcd is refused in another cluster than its own; adopt
makes one that was restored there on purpose the new cluster's.

example: ocs-planner store export -state planner.db backup.jsonl
example: ocs-planner store copy bolt:planner.db etcd:http://127.0.0.1:2379`)
	if err != nil {
		return err
	}
	least := map[string][2]int{"export": {0, 1}, "import": {0, 1}, "check": {0, 0}, "copy": {2, 2}, "adopt": {0, 0}, "audit": {0, 0}}
	if len(words) == 0 || len(words)-1 < least[words[0]][0] || len(words)-1 > least[words[0]][1] {
		return cli.Usage("store", "export [FILE], import [FILE], copy FROM TO, check, audit or adopt", "%d words", len(words))
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	head, err := store(ctx, words, &c, t)
	switch {
	case err != nil || words[0] == "audit" || words[0] == "export" && len(words) == 1:
		return err
	case *asJSON:
		return cli.PrintJSON(t.Out, head)
	}
	_, err = fmt.Fprintf(t.Out, "fabric %s, last term %d, %d records\nsha256 %s\n", head.Fabric, head.Term, head.Records, head.SHA256)
	return err
}

func store(ctx context.Context, words []string, c *Config, t cli.Terminal) (none server.StoreHead, err error) {
	p := c.place()
	if err := p.check(); err != nil {
		return none, err
	}
	switch words[0] {
	case "check":
		return server.CheckStore(ctx, p.at())
	case "audit":
		st, err := p.at().Read(ctx)
		if err != nil {
			return none, err
		}
		text, err := planner.AuditOf(st)
		_, bad := io.WriteString(t.Out, text)
		return none, errors.Join(bad, err)
	case "adopt":
		if p.etcd == nil {
			return none, cli.Usage("store", "etcd:URL,URL", "a file is of no cluster")
		}
		if err := etcd.Adopt(ctx, *p.etcd); err != nil {
			return none, err
		}
		return server.CheckStore(ctx, p.at())
	case "copy":
		var at [2]server.Place
		for i := range at {
			one := *c
			one.Store = words[1+i]
			p := one.place()
			if err := p.check(); err != nil {
				return none, err
			}
			at[i] = p.at()
		}
		return server.CopyStore(ctx, at[0], at[1])
	case "export":
		return export(ctx, words[1:], p.at(), t)
	case "import":
		in := t.In
		if len(words) > 1 && words[1] != "-" {
			f, err := os.Open(words[1])
			if err != nil {
				return none, cli.Usage("import", "", "%w", err)
			}
			defer f.Close()
			in = f
		}
		return server.ImportStore(ctx, in, p.at())
	}
	return none, cli.Usage("store", "export, import, copy, check, audit or adopt", "%q", words[0])
}

func export(ctx context.Context, file []string, from server.Place, t cli.Terminal) (head server.StoreHead, err error) {
	if len(file) == 0 || file[0] == "-" {
		return server.ExportStore(ctx, from, t.Out)
	}
	out, err := os.OpenFile(file[0], os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return head, cli.Usage("export", "a file that is not there yet", "%w", err)
	}
	head, err = server.ExportStore(ctx, from, out)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		_ = os.Remove(file[0])
	}
	return head, err
}
