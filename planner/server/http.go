package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"

	"ringlight/planner"
	"ringlight/planner/jobapi"
	"ringlight/planner/view"
	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
)

// The planner's HTTP server is for eyes, scrapers and those who ask for jobs:
// every handler but theirs only reads. On loopback and on a unix socket it speaks plainly; beyond them only
// over TLS with client certificates, whatever the link to the broker may do.

const (
	// maxHTTP connections at once. chosen: 1,536 who watch jobs, 64 viewers with
	// a stream each and a page's other requests, and some scrapers.
	maxHTTP = 2048
	// httpPatience bounds a request's header, and what a peer takes at a time.
	// chosen: a person's browser over a slow line.
	httpPatience = 10 * time.Second
	httpIdle     = time.Minute // between two requests of a connection
	// bodyPatience bounds a request's body, from its header on. chosen: as above, twice.
	bodyPatience = 2 * httpPatience
	maxHeader    = 16 << 10
	unixPrefix   = "unix:"
	socketMode   = 0o660
	healthPath   = "/healthz"
	readyPath    = "/readyz"
	leaderPath   = "/leader"
	notLeading   = "does not lead"
)

// HTTPConfig of the HTTP server.
type HTTPConfig struct {
	Addr     string // host:port, or unix:PATH
	CAFile   string // PEM files, for an address beyond loopback
	CertFile string
	KeyFile  string
	Log      *slog.Logger
}

// Check reports what startHTTP would refuse before it listens.
func (c *HTTPConfig) Check() error {
	_, err := c.tls()
	return err
}

func (c *HTTPConfig) tls() (*tls.Config, error) {
	if path, ok := strings.CutPrefix(c.Addr, unixPrefix); ok {
		if path == "" {
			return nil, proto.Wrong("http", "host:port, or unix:PATH", "no path")
		}
		return nil, nil
	}
	host, _, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return nil, proto.Wrong("http", "host:port, or unix:PATH", "%v", err)
	}
	if mqtt.IsLoopback(host) {
		return nil, nil
	}
	if c.CAFile == "" || c.CertFile == "" || c.KeyFile == "" {
		return nil, proto.Wrong("http", "a loopback address, unix:PATH, or -ca, -cert and -key", "%q is open to others; it is served to those with a certificate alone", c.Addr)
	}
	return cert.Server(c.CAFile, c.CertFile, c.KeyFile)
}

// HTTP is a running HTTP server.
type HTTP struct {
	server *http.Server
	url    string
	done   chan struct{}
}

// startHTTP serves a handler. The error is a *proto.Error when the
// configuration is at fault.
func startHTTP(cfg HTTPConfig, h http.Handler) (*HTTP, error) {
	tlsConfig, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	log := limit.Logger(cfg.Log)
	l, err := listen(cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("server: http: %w", err)
	}
	s := &HTTP{url: "http://" + l.Addr().String(), done: make(chan struct{})}
	hosts := mqtt.IsLoopback
	in := net.Listener(limit.Listen(l, limit.Connections{Max: maxHTTP, First: httpPatience, Write: httpPatience}, log))
	switch {
	case l.Addr().Network() == "unix":
		s.url, hosts = cfg.Addr, func(string) bool { return true } // no name leads a browser here
	case tlsConfig != nil:
		in, s.url = tls.NewListener(in, tlsConfig), "https://"+l.Addr().String()
		hosts = certified(tlsConfig.Certificates[0].Leaf)
	}
	s.server = &http.Server{Handler: guarded(hosts, h), ReadHeaderTimeout: httpPatience, IdleTimeout: httpIdle, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnState: func(c net.Conn, state http.ConnState) {
			switch own := limit.Of(c); {
			case own == nil:
			case state == http.StateActive:
				own.Admit()
			case state == http.StateIdle:
				own.Idle()
			}
		}}
	go func() {
		defer close(s.done)
		if err := s.server.Serve(in); !errors.Is(err, http.ErrServerClosed) {
			log.Error("http server ended", "reason", err)
		}
	}()
	return s, nil
}

// listen takes the place of a socket that nobody answers on.
func listen(addr string) (net.Listener, error) {
	path, unix := strings.CutPrefix(addr, unixPrefix)
	if !unix {
		return net.Listen("tcp", addr)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode()&fs.ModeSocket != 0 {
		conn, err := net.Dial("unix", path)
		if err == nil {
			conn.Close()
			return nil, &os.PathError{Op: "listen", Path: path, Err: syscall.EADDRINUSE}
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// Nobody else's from its first moment: Linux makes it with the mode of the descriptor,
	// less the umask.
	mode := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) (err error) {
		never := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), socketMode) })
		return cmp.Or(never, err)
	}}
	l, err := mode.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, socketMode); err != nil { // of one group, whatever the umask
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// URL is where the server is reached from this machine, unix:PATH for a socket.
func (s *HTTP) URL() string { return s.url }

// Close ends every connection.
func (s *HTTP) Close() error {
	err := s.server.Close()
	<-s.done
	return err
}

// guarded lets through what only reads, asked for under a name that is ours: a
// page of a stranger whose name was bent to this address is refused.
func guarded(ours func(host string) bool, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = strings.Trim(r.Host, "[]")
		}
		switch {
		case !ours(host):
			http.Error(w, "this name is not ours", http.StatusMisdirectedRequest)
		case r.Method != http.MethodGet && r.Method != http.MethodHead && !strings.HasPrefix(r.URL.Path, "/v1/"):
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD: but for jobs, what is served here changes nothing", http.StatusMethodNotAllowed)
		default:
			if r.Body != http.NoBody { // the server waits for one even where nobody reads it
				_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyPatience)) // a connection has one
			}
			w.Header().Set("X-Content-Type-Options", "nosniff")
			w.Header().Set("Cache-Control", "no-store")
			h.ServeHTTP(w, r)
		}
	})
}

func (c *Config) http() (all []HTTPConfig) {
	if c.HTTP == "" {
		return nil
	}
	for addr := range strings.SplitSeq(c.HTTP, ",") {
		all = append(all, HTTPConfig{Addr: strings.TrimSpace(addr), CAFile: c.CAFile, CertFile: c.CertFile, KeyFile: c.KeyFile, Log: c.Log})
	}
	return all
}

// certified are the names in a certificate.
func certified(leaf *x509.Certificate) func(string) bool {
	return func(host string) bool { return leaf.VerifyHostname(host) == nil }
}

// Read runs f in the planner's goroutine between two of its steps: f reads
// what it needs, keeps nothing that the planner may change, and is short.
func (s *server) Read(ctx context.Context, f func(*planner.Planner)) error {
	return s.read(ctx, s.reads, f)
}

// settled lets jobs be read when nothing of the planner is on its way to the store, and
// when it knows of their light.
type settled struct{ *server }

// startPatience is how long whoever reads of jobs waits for a planner that begins.
// chosen: in it one has heard its nodes where some of them are dead.
const startPatience = 10 * time.Second

// Read is the server's own, and sees nothing that a planner which is killed and
// started again would not know of.
func (s settled) Read(ctx context.Context, f func(*planner.Planner)) error {
	for end := time.Now().Add(startPatience); ; {
		var leads bool
		var busy error
		err := s.read(ctx, s.rests, func(p *planner.Planner) {
			if busy, leads = p.Jobs.Busy(), s.leads(); busy == nil {
				f(p)
			}
		})
		if err != nil || busy == nil || !leads || time.Now().After(end) {
			return cmp.Or(err, busy)
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (s *server) read(ctx context.Context, by chan<- func(*planner.Planner), f func(*planner.Planner)) error {
	done := make(chan struct{})
	select {
	case by <- func(p *planner.Planner) { s.warn(time.Now()); f(p); close(done) }:
	case <-ctx.Done():
		return ctx.Err()
	case <-s.ended:
		return errEnded
	}
	select {
	case <-done:
		return nil
	case <-s.ended:
		return errEnded
	}
}

// errEnded is what a Read returns when the planner has ended.
var errEnded = errors.New("server: the planner has ended")

// serve starts all that serves the planner.
func (s *server) serve() (stop func() error, err error) {
	web, err := s.serveHTTP()
	if err != nil || s.cfg.Serve == nil {
		return web, err
	}
	end, err := s.cfg.Serve(Door{s})
	if err != nil {
		return nil, errors.Join(err, web())
	}
	return func() error { return errors.Join(end(), web()) }, nil
}

// serveHTTP starts the servers that the configuration asks for, if any.
func (s *server) serveHTTP() (stop func() error, err error) {
	if s.cfg.HTTP == "" {
		return func() error { return nil }, nil
	}
	mux := http.NewServeMux()
	seen := view.New(s.link.Broker, s)
	s.scrapes(mux, seen.Load)
	s.routes(mux)
	seen.Mount(mux)
	jobapi.New(settled{s}, s.mayAct).Mount(mux)
	ctx, cancel := context.WithCancel(context.Background())
	go seen.Follow(ctx)
	var all []*HTTP
	var urls []string
	stop = func() (err error) {
		cancel()
		for _, h := range all {
			err = errors.Join(err, h.Close())
		}
		return err
	}
	for _, cfg := range s.cfg.http() {
		h, err := startHTTP(cfg, s.trusting(mux))
		if err != nil {
			return nil, errors.Join(err, stop())
		}
		all, urls = append(all, h), append(urls, h.URL())
		s.cfg.Log.Info("http server started", "url", h.URL())
	}
	if s.cfg.HTTPReady != nil {
		s.cfg.HTTPReady(strings.Join(urls, ","))
	}
	return stop, nil
}

// routes are what the HTTP server shows.
func (s *server) routes(mux *http.ServeMux) {
	// not is why the answer is none, down the same where the planner has ended.
	page := func(path, down string, look func(p *planner.Planner) (says, not string)) {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, r *http.Request) {
			says, not := "", ""
			if err := s.Read(r.Context(), func(p *planner.Planner) { says, not = look(p) }); err != nil {
				not = cmp.Or(down, err.Error())
			}
			if not != "" {
				http.Error(w, not, http.StatusServiceUnavailable)
				return
			}
			fmt.Fprintln(w, says)
		})
	}
	page(healthPath, "", func(p *planner.Planner) (says, not string) {
		o := p.Overview()
		return fmt.Sprintf("ok: term %d, generation %d", o.Term, o.Generation), ""
	})
	page(leaderPath, notLeading, func(*planner.Planner) (says, not string) { // for balancers
		return "leads", map[bool]string{false: notLeading}[s.leads()]
	})
	page(readyPath, "", func(p *planner.Planner) (says, not string) {
		o, leads := p.Overview(), s.leads()
		is, not := p.Alarms.NotReady(leads)
		return fmt.Sprintf("ok: %s, term %d, generation %d; the fabric is %s", map[bool]string{true: "leads", false: "follows"}[leads], o.Term, o.Generation, is), not
	})
}
