package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"ringlight/proto"
	"ringlight/proto/pki"
)

func pkiMosquitto(_ context.Context, args []string, out io.Writer) error {
	s := &pki.Server{At: "/etc/mosquitto/ringlight"}
	f := newPKI("pki mosquitto")
	f.fs.StringVar(&s.Others, "others", "127.0.0.1:8884", "`HOST:PORT` at which planners and operators come; who reaches it can end a node's connection by its client id")
	f.fs.BoolVar(&s.ByPassword, "passwords", false, "user and password say who comes (ocsctl pki password), not certificates: see docs/security.md for what that leaves open")
	return f.configure(pki.KindMosquitto, s, args, out)
}

func pkiNATS(_ context.Context, args []string, out io.Writer) error {
	s := &pki.Server{At: "/etc/nats/ringlight"}
	f := newPKI("pki nats")
	f.fs.StringVar(&s.Routes, "routes", "", "`HOST:PORT,..` of the other servers of a cluster, each with a folder of its own; port 6222")
	return f.configure(pki.KindNATS, s, args, out)
}

// configure writes a broker's folder and tells what is in it.
func (f *pkiFlags) configure(kind string, s *pki.Server, args []string, out io.Writer) error {
	f.fs.StringVar(&s.At, "at", s.At, "`FOLDER` at which it will lie on the broker's machine")
	f.fs.StringVar(&s.Listen, "listen", ":8883", "`HOST:PORT` at which nodes come; nats: everybody")
	f.fs.IntVar(&f.days, "days", 365, "`NUMBER` of days that the certificate is good for")
	f.fs.StringVar(&f.hosts, "host", "", "`NAMES` and addresses under which it is reached, with commas between them")
	folder, name, err := f.one(args, "one name, of the broker")
	if err != nil {
		return err
	}
	r := f.request(0)
	s.Name, s.Days, s.Hosts = name, r.Days, r.Hosts
	files, err := folder.Configure(kind, *s)
	if err != nil {
		return pkiError(err)
	}
	if f.json {
		return printJSON(out, map[string]any{"files": files, "at": s.At, "edition": folder.Trust.Edition})
	}
	_, err = fmt.Fprintf(out, "edition %d: to %s on the broker's machine go\n  %s\n", folder.Trust.Edition, s.At, strings.Join(files, "\n  "))
	return err
}

func pkiPassword(_ context.Context, args []string, out io.Writer) error {
	f := newPKI("pki password")
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for the files; default: that of -dir")
	folder, words, err := f.open(args, true)
	if err != nil {
		return err
	}
	var names []proto.Holder
	for _, w := range words {
		if strings.Contains(w, "/") {
			h, err := proto.ParseHolder(w)
			if err != nil {
				return pkiError(err)
			}
			names = append(names, h)
			continue
		}
		list, err := nodesOf(folder, []string{w})
		if err != nil {
			return err
		}
		names = append(names, list...)
	}
	if len(names) == 0 {
		return wrongUsage("name", "names, such as f1/op/alice, 7 or 0-63", "none")
	}
	files, err := folder.Passwords(pki.Request{Names: names, Out: f.out})
	if err != nil {
		return pkiError(err)
	}
	if f.json {
		return printJSON(out, map[string]any{"files": files})
	}
	_, err = fmt.Fprintln(out, strings.Join(files, "\n"))
	return err
}
