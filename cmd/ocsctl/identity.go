package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/user"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
	"ringlight/proto/guard"
	"ringlight/proto/mqtt"
)

// identify lets an operator's certificate say who asks: its name is that of the
// topics, its fabric the one that is asked, and its key seals the questions. Without
// one, or with one of another kind, everybody is a name drawn at random.
func (c *clientFlags) identify(cl *client, to *mqtt.Config) error {
	if (c.cert == "") != (c.key == "") {
		return wrongUsage("key", "-cert, which says who asks, and -key, which seals it", "one of the two")
	}
	if c.cert == "" {
		return c.logIn(cl, to)
	}
	s, h, err := guard.NewSealer(c.cert, c.key)
	if errors.Is(err, guard.ErrNoHolder) || err == nil && h.Kind != proto.HolderOperator {
		return nil // of a site with names of its own
	}
	if err != nil {
		e := proto.AsError(err)
		return cli.Usage(e.Field, e.Limit, "%s", e.Reason)
	}
	if c.ca == "" && !guard.Encrypted(c.broker) {
		to.CertFile, to.KeyFile = "", "" // for seals alone
	}
	to.Guard = s
	return c.become(cl, to, h, "certificate")
}

// become asks under the name in a certificate or of a user.
func (c *clientFlags) become(cl *client, to *mqtt.Config, h proto.Holder, by string) error {
	if c.fabric != "" && c.fabric != h.Fabric {
		return wrongUsage("fabric", h.Fabric+", of which the "+by+" is", "%q", c.fabric)
	}
	// Two terminals of one operator are two clients: the broker knows them by this.
	to.ClientID = h.OperatorClient(strings.TrimPrefix(cl.Name, "ctl-"))
	cl.Name, c.fabric = h.ID, h.Fabric
	return nil
}

// logIn lets the user of a password say who asks, where it is an operator's name: a
// broker with rights by name lets it ask under no other.
func (c *clientFlags) logIn(cl *client, to *mqtt.Config) error {
	user, err := to.User()
	if err != nil {
		return cli.AsUsage(err)
	}
	h, err := proto.ParseHolder(user)
	if err != nil || h.Kind != proto.HolderOperator {
		return nil // of a site with names of its own
	}
	return c.become(cl, to, h, "user")
}

// author says who asks for an act: the name in the certificate, else the
// user's at this host.
func (c *clientFlags) author() string {
	const most = 64 // as the audit of a certificate's name
	name := certName(c.cert)
	if name == "" {
		name = "unknown"
		if u, err := user.Current(); err == nil {
			name = u.Username
		}
		if host, err := os.Hostname(); err == nil {
			name += "@" + host
		}
	}
	name = proto.Clip(name)
	return name[:min(most, len(name))]
}

// certName is the common name of a PEM file's first certificate, "" where
// there is none.
func certName(file string) string {
	data, _ := os.ReadFile(file)
	if block, _ := pem.Decode(data); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return cert.Subject.CommonName
		}
	}
	return ""
}
