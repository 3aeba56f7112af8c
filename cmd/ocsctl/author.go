package main

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"os/user"

	"ringlight/proto"
)

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
	data, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return ""
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	return cert.Subject.CommonName
}
