package main

import (
	"fmt"
	"strings"

	"ringlight/proto"
	"ringlight/proto/pki"
)

func pkiMosquitto(f *pkiFlags, args []string) error {
	s := &pki.Server{At: "/etc/mosquitto/ringlight"}
	f.fs.StringVar(&s.Others, "others", "127.0.0.1:8884", "`HOST:PORT` at which planners and operators come; who reaches it can end a node's connection by its client id")
	f.fs.BoolVar(&s.ByPassword, "passwords", false, "user and password say who comes (ocsctl pki password), not certificates: see docs/security.md for what that leaves open")
	return f.configure(pki.KindMosquitto, s, args)
}

func pkiNATS(f *pkiFlags, args []string) error {
	s := &pki.Server{At: "/etc/nats/ringlight"}
	f.fs.StringVar(&s.Routes, "routes", "", "`HOST:PORT,..` of the other servers of a cluster, each with a folder of its own; port 6222")
	return f.configure(pki.KindNATS, s, args)
}

// configure writes a broker's folder and tells what is in it.
func (f *pkiFlags) configure(kind string, s *pki.Server, args []string) error {
	f.fs.StringVar(&s.At, "at", s.At, "`FOLDER` at which it will lie on the broker's machine")
	f.fs.StringVar(&s.Listen, "listen", ":8883", "`HOST:PORT` at which nodes come; nats: everybody")
	name, err := f.lasting().reached().one(args, "one name, of the broker")
	if err != nil {
		return err
	}
	r := f.request(0)
	s.Name, s.Days, s.Hosts = name, r.Days, r.Hosts
	files, err := f.folder.Configure(kind, *s)
	if err != nil {
		return err
	}
	edition := f.folder.Trust.Edition
	if f.json {
		return printJSON(f.answer, map[string]any{"files": files, "at": s.At, "edition": edition})
	}
	_, err = fmt.Fprintf(f.answer, "edition %d: to %s on the broker's machine go\n  %s\n", edition, s.At, strings.Join(files, "\n  "))
	return err
}

func pkiPassword(f *pkiFlags, args []string) error {
	f.fs.StringVar(&f.out, "out", "", "`FOLDER` for the files; default: that of -dir")
	words, err := f.open(args, true)
	if err != nil {
		return err
	}
	var names []proto.Holder
	for _, w := range words {
		var list []proto.Holder
		if strings.Contains(w, "/") {
			list = make([]proto.Holder, 1)
			list[0], err = proto.ParseHolder(w)
		} else {
			list, err = f.nodesOf([]string{w})
		}
		if err != nil {
			return err
		}
		names = append(names, list...)
	}
	if len(names) == 0 {
		return wrongUsage("name", "names, such as f1/op/alice, 7 or 0-63", "none")
	}
	files, err := f.folder.Passwords(pki.Request{Names: names, Out: f.out})
	if err != nil {
		return err
	}
	if f.json {
		return printJSON(f.answer, map[string]any{"files": files})
	}
	_, err = fmt.Fprintln(f.answer, strings.Join(files, "\n"))
	return err
}
