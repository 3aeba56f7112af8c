package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/server"
	"ringlight/planner/server/etcd"
)

// place is where a store is: a file, or a cluster of etcd.
type place struct {
	file string
	etcd *etcd.Config
	err  error
}

// place reads the configuration's keys of the store.
func (c *Config) place() (p place) {
	if c.Store == "" {
		return place{file: c.State}
	}
	if file, ok := strings.CutPrefix(c.Store, "bolt:"); ok {
		return place{file: file}
	}
	endpoints, ok := etcd.Parse(c.Store)
	if !ok {
		return place{err: cli.Usage("store", "bolt:FILE, or etcd:URL,URL", "%q", c.Store)}
	}
	host, _ := os.Hostname() // for people; none is none
	return place{etcd: &etcd.Config{Endpoints: endpoints, Name: c.StoreName, CAFile: c.StoreCA, CertFile: c.StoreCert, KeyFile: c.StoreKey,
		Insecure: c.Insecure, Who: fmt.Sprintf("%s, process %d", host, os.Getpid())}}
}

// check reports what the place would be refused for, without looking at it.
func (p place) check() error {
	if p.etcd != nil {
		return p.etcd.Check()
	}
	return p.err
}

// name is the place for people.
func (p place) name() string {
	if p.etcd != nil {
		return "etcd:" + strings.Join(p.etcd.Endpoints, ",") + " " + p.etcd.Name
	}
	return p.file
}

// at is the place for those who read or make a store of which no planner is in service.
func (p place) at() server.Place {
	if p.etcd != nil {
		return etcd.Place(*p.etcd)
	}
	return server.File(p.file)
}

// opener opens what is no file; nil: it is one.
func (p place) opener(log *slog.Logger) func(context.Context) (server.Store, error) {
	if p.etcd == nil {
		return nil
	}
	return func(ctx context.Context) (server.Store, error) {
		cfg := *p.etcd
		cfg.Log = log
		s, err := etcd.Open(ctx, cfg)
		if err != nil {
			return nil, err // a nil *Store is no nil Store
		}
		return s, nil
	}
}
