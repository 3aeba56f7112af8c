package cert

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"strconv"
	"sync"
	"time"

	"ringlight/proto"
)

// built is when the sources were last changed, in seconds, as the Makefile says it.
var built string

// clock is the machine's.
var clock = time.Now

// latest is the later of the clock and of what is known to be past: the commit that
// this program was built from, and the beginnings of certificates that are believed.
func latest(list ...*x509.Certificate) time.Time {
	t := clock()
	if s, err := strconv.ParseInt(built, 10, 64); err == nil && s > t.Unix() {
		t = time.Unix(s, 0)
	}
	for _, c := range list {
		if c != nil && c.NotBefore.After(t) {
			t = c.NotBefore
		}
	}
	return t
}

// authority are the certificates of a CA file.
type authority struct {
	pool *x509.CertPool // nil: the system's
	list []*x509.Certificate
}

func readAuthority(file string) (a authority, err error) {
	if file == "" {
		return a, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return a, proto.Wrong("ca", "a readable PEM file", "%v", err)
	}
	a.pool = x509.NewCertPool()
	for b, rest := pem.Decode(raw); b != nil; b, rest = pem.Decode(rest) {
		if c, err := x509.ParseCertificate(b.Bytes); err == nil {
			a.pool.AddCert(c)
			a.list = append(a.list, c)
		}
	}
	if len(a.list) == 0 {
		return a, proto.Wrong("ca", "PEM certificates", "none in %s", file)
	}
	return a, nil
}

// readPair reads the own certificate and key; with no files there is none.
func readPair(certFile, keyFile string) (*tls.Certificate, error) {
	if certFile == "" && keyFile == "" {
		return &tls.Certificate{}, nil
	}
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, proto.Wrong("cert", "a readable pair, -cert and -key", "of %q and %q: %v", certFile, keyFile, err)
	}
	return &pair, nil
}

// files are those of one end, as they were last read.
type files struct {
	ca, cert, key string

	mu   sync.Mutex
	seen [3]mark
	roof authority
	own  *tls.Certificate
}

// mark is by what a file is known to be another.
type mark struct {
	size int64
	time time.Time
}

// read reads what has changed. A pair that does not belong together is one of which
// half has been replaced: until the other half comes, the former holds.
func (f *files) read() (authority, *tls.Certificate, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var now [3]mark
	for i, name := range []string{f.ca, f.cert, f.key} {
		if st, err := os.Stat(name); err == nil {
			now[i] = mark{st.Size(), st.ModTime()}
		}
	}
	if f.own != nil && now == f.seen {
		return f.roof, f.own, nil
	}
	roof, err := readAuthority(f.ca)
	own, pairErr := readPair(f.cert, f.key)
	if f.own == nil {
		if err := cmp.Or(pairErr, err); err != nil {
			return roof, own, err
		}
	}
	if err == nil {
		f.roof = roof
	}
	if pairErr == nil {
		f.own = own
	}
	if err == nil && pairErr == nil {
		f.seen = now
	}
	return f.roof, f.own, nil
}
