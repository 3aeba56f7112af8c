package cert

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// Client is how every client of ours speaks TLS to a host. caFile "": the system's
// authorities; certFile "": no certificate of its own.
func Client(host, caFile, certFile, keyFile string) (*tls.Config, error) {
	f := &files{ca: caFile, cert: certFile, key: keyFile}
	if _, _, err := f.read(); err != nil {
		return nil, err
	}
	// The library judges the beginning of a certificate by the same clock as its end;
	// so it is judged here, on resumed connections too.
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: host, InsecureSkipVerify: true,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			_, own, err := f.read()
			return own, err
		},
		VerifyConnection: func(s tls.ConnectionState) error {
			roof, own, err := f.read()
			if err != nil {
				return err
			}
			return verify(roof, own, host, x509.ExtKeyUsageServerAuth, s.PeerCertificates)
		}}, nil
}

// verify holds what the other side shows against the authorities, its name, if it has to have
// one, its use and the time.
func verify(roof authority, own *tls.Certificate, host string, use x509.ExtKeyUsage, chain []*x509.Certificate) error {
	if len(chain) == 0 {
		return &tls.CertificateVerificationError{Err: errors.New("no certificate")}
	}
	known := append(append([]*x509.Certificate{own.Leaf}, roof.list...), chain...)
	o := x509.VerifyOptions{Roots: roof.pool, DNSName: host, CurrentTime: latest(known...), Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{use}}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	if new := heirs(roof.list, chain[1:]); len(new) > 0 {
		o.Roots = roof.pool.Clone()
		for _, c := range new {
			o.Roots.AddCert(c)
		}
	}
	if _, err := chain[0].Verify(o); err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: chain, Err: err}
	}
	return nil
}

// heirs are the roots of a chain that one of the list leads to, each by a certificate of the
// one before it, the newest first. An issuer of ours is none: it has uses, and none below it.
func heirs(list, chain []*x509.Certificate) (new []*x509.Certificate) {
	for _, c := range slices.Backward(chain) {
		if !c.IsCA || c.MaxPathLenZero || len(c.ExtKeyUsage) > 0 {
			continue
		}
		if slices.ContainsFunc(slices.Concat(list, new), func(by *x509.Certificate) bool {
			return bytes.Equal(c.RawIssuer, by.RawSubject) && c.CheckSignatureFrom(by) == nil
		}) {
			new = append(new, c)
		}
	}
	return new
}

// Server accepts certificates of the authority; with caFile "" it asks for none.
func Server(caFile, certFile, keyFile string) (*tls.Config, error) {
	f := &files{ca: caFile, cert: certFile, key: keyFile}
	now := func() (*tls.Config, error) {
		roof, own, err := f.read()
		if err != nil {
			return nil, err
		}
		if caFile == "" {
			return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*own}}, nil
		}
		return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*own}, ClientCAs: roof.pool, ClientAuth: tls.RequireAnyClientCert,
			// A connection that resumes is judged again, by the authorities of then.
			SessionTicketsDisabled: true, VerifyConnection: func(s tls.ConnectionState) error {
				return verify(roof, own, "", x509.ExtKeyUsageClientAuth, s.PeerCertificates)
			}}, nil
	}
	first, err := now()
	if err != nil {
		return nil, err
	}
	first.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return now() }
	return first, nil
}

// Explain says what to do about a connection that failed for a certificate; any other
// error stays as it is. certFile and caFile are one's own.
func Explain(err error, certFile, caFile string) error {
	var bad *tls.CertificateVerificationError
	var ended x509.CertificateInvalidError
	var strange x509.UnknownAuthorityError
	var name x509.HostnameError
	told := func(word string) bool { // of an alert there is the text alone
		text := err.Error()
		return strings.Contains(text, "remote error") && strings.Contains(text, word)
	}
	switch {
	case errors.As(err, &ended) && ended.Reason == x509.Expired && errors.As(err, &bad):
		c := ended.Cert
		return explained{err, "the other side's certificate, of " + c.Subject.CommonName + ", has ended on " + day(c.NotAfter) + ": where the root is, type ocsctl pki renew, with its file"}
	case errors.As(err, &name):
		return explained{err, "the other side's certificate is not for " + name.Host + ": make one with -host " + name.Host}
	case errors.As(err, &strange):
		return explained{err, "the other side's certificate is by an authority that is not in " + cmp.Or(caFile, "this machine's") + ": bring the ca.pem of ocsctl pki"}
	case told("expired certificate"), hasEnded(certFile):
		end := ""
		if own, e := readCert(certFile); e == nil {
			end = ", which ends on " + day(own.NotAfter) + ","
		}
		return explained{err, "the certificate " + certFile + end + " is not good any more: where the root is, type ocsctl pki renew " + certFile + ", or ocsctl pki token for a new one"}
	case told("unknown certificate authority"), told("unknown authority"), told("bad certificate"):
		return explained{err, "the other side does not know the authority of " + certFile + ": bring it the ca.pem of ocsctl pki"}
	}
	return err
}

// hasEnded: a server that refuses a certificate may be gone before it is heard why.
func hasEnded(certFile string) bool {
	own, err := readCert(certFile)
	return err == nil && latest(own).After(own.NotAfter)
}

func readCert(file string) (*x509.Certificate, error) {
	a, err := readAuthority(file) // skips the key, where that is in the file too
	if err != nil || len(a.list) == 0 {
		return nil, errors.New("none")
	}
	return a.list[0], nil
}

func day(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") + " UTC" }

// explained is an error in plain words, with the library's behind it.
type explained struct {
	error
	text string
}

func (e explained) Error() string { return e.text + " (" + e.error.Error() + ")" }
func (e explained) Unwrap() error { return e.error }

// Handshake ends the handshake of a connection that came in; of another kind of
// connection there is none. The error names the certificate that was refused, and why.
func Handshake(conn net.Conn) error {
	t, ok := conn.(*tls.Conn)
	if !ok {
		return nil
	}
	err := t.Handshake()
	var bad *tls.CertificateVerificationError
	if !errors.As(err, &bad) || len(bad.UnverifiedCertificates) == 0 {
		return nil // what is no word on a certificate is noise of the network
	}
	// Closed with something unread, a connection loses its last message.
	raw := t.NetConn()
	_ = raw.SetReadDeadline(time.Now().Add(lastWord)) // it is closed in any case
	_, _ = io.Copy(io.Discard, io.LimitReader(raw, lastBytes))
	return Explain(err, "", "the authorities' file")
}

const (
	lastWord  = time.Second // for the other side to hear why
	lastBytes = 4096        // chosen: a CONNECT with its will
)
