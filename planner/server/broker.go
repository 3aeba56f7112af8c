package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	mochi "github.com/mochi-mqtt/server/v2"

	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
	"ringlight/proto/seal"
)

// Settings of the embedded broker, each for a defect of its defaults.
const (
	// Its default of a day deletes retained messages of 3.1.1 clients; 0 is
	// never.
	brokerMessageExpiry = 0
	// A subscriber with a full channel loses QoS 1 messages silently;
	// 64 lost 932 of 10,000 acknowledgements.
	brokerPending = 8192
	// Its default is no limit. chosen: the longest message and its topic.
	brokerPacketSize = proto.MaxPayload + 1024
	brokerInflight   = 32_768
	// Seconds after which a client that is gone is forgotten by the clock. At 0
	// one whose end takes longer than a second frees its name too early, and
	// ends the next one's subscriptions with its own. chosen: no end takes so
	// long; sessions are not kept, for which see OnConnect.
	brokerSessionExpiry = 60
)

// BrokerConfig of an embedded broker.
type BrokerConfig struct {
	Listen   string // host:port; port 0 takes a free one
	CAFile   string // PEM, of clients' certificates
	CertFile string // PEM, own; with KeyFile and CAFile the listener is mqtts
	KeyFile  string
	Insecure bool // allow mqtt beyond loopback
	// Passwords is a file of ocsctl pki password: who logs in has the rights of the user's
	// name, with TLS or, on loopback, without. Certificates are not asked for then.
	Passwords string
	// Trust gives clients of a TLS listener the rights of their names; nil: those
	// whom the authority certifies may do everything.
	Trust func() *seal.Trust
	Log   *slog.Logger
}

// Broker is an embedded broker. It keeps nothing: after Close and a new start
// on its Addr, every client comes back and says again what counts.
type Broker struct {
	server  *mochi.Server
	addr    string
	scheme  string
	limits  *limits
	dropped atomic.Uint64
	close   func() error
}

// StartBroker starts an embedded broker on a loopback address.
func StartBroker(listen string, log *slog.Logger) (*Broker, error) {
	return StartBrokerWith(BrokerConfig{Listen: listen, Log: log})
}

// StartBrokerWith starts an embedded broker. Beyond loopback it wants TLS with
// client certificates. The error is a *proto.Error when the configuration is
// at fault.
func StartBrokerWith(cfg BrokerConfig) (*Broker, error) {
	tlsConfig, err := cfg.check()
	if err != nil {
		return nil, err
	}
	b := &Broker{scheme: "mqtt://"}
	var trust func() *seal.Trust
	if tlsConfig != nil {
		b.scheme, trust = "mqtts://", cfg.Trust
	}
	var users *logins
	if cfg.Passwords != "" {
		trust = nil
		if users, err = openLogins(cfg.Passwords); err != nil {
			return nil, err
		}
	}
	log := limit.Logger(cfg.Log)
	l, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("server: broker: %w", err)
	}
	b.addr = l.Addr().String()
	var in net.Listener = limit.Listen(l, limit.Connections{Max: affordable(), First: connectPatience, Write: writePatience}, log)
	if tlsConfig != nil {
		in = tls.NewListener(in, tlsConfig)
	}
	if err := b.serve(in, trust, users, log); err != nil {
		l.Close()
		return nil, fmt.Errorf("server: broker on %s: %w", cfg.Listen, err)
	}
	return b, nil
}

func (b *Broker) serve(in net.Listener, trust func() *seal.Trust, users *logins, log *slog.Logger) error {
	b.server = mochi.New(brokerOptions(log))
	b.close = sync.OnceValue(b.server.Close)
	b.limits = &limits{broker: b, log: log, client: map[*mochi.Client]*account{}, names: map[*mochi.Client]proto.Grants{}, conns: map[net.Conn]*mochi.Client{}, trust: trust, kept: retained{sizes: map[string]int{}}}
	if b.limits.logins = users; users != nil {
		stop := make(chan struct{})
		go b.followLogins(stop)
		b.close = sync.OnceValue(func() error { close(stop); return b.server.Close() })
	}
	if err := b.server.AddHook(b.limits, nil); err != nil {
		return err
	}
	if err := b.server.AddListener(&accept{in: in, server: b.server, log: log, over: make(chan struct{}), left: b.limits.left}); err != nil {
		return err
	}
	return b.server.Serve()
}

// Check reports what StartBrokerWith would refuse before it listens.
func (c *BrokerConfig) Check() error {
	_, err := c.check()
	return err
}

func brokerOptions(log *slog.Logger) *mochi.Options {
	caps := mochi.NewDefaultServerCapabilities()
	caps.MaximumMessageExpiryInterval = brokerMessageExpiry
	caps.MaximumClientWritesPending = brokerPending
	caps.MaximumPacketSize = brokerPacketSize
	caps.MaximumInflight = brokerInflight
	caps.MaximumSessionExpiryInterval = brokerSessionExpiry
	return &mochi.Options{Capabilities: caps, Logger: slog.New(quiet{log.Handler()})}
}

func (c *BrokerConfig) check() (*tls.Config, error) {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return nil, proto.Wrong("listen", "host:port", "%v", err)
	}
	if c.Passwords != "" {
		if _, err := openLogins(c.Passwords); err != nil {
			return nil, err
		}
		if c.CertFile != "" && c.KeyFile != "" {
			return cert.Server("", c.CertFile, c.KeyFile)
		}
	}
	if c.CAFile == "" && c.CertFile == "" && c.KeyFile == "" {
		if !c.Insecure && !mqtt.IsLoopback(host) {
			return nil, proto.Wrong("listen", "a loopback address, or -ca -cert -key, or -insecure", "%q is open to others and not encrypted", c.Listen)
		}
		return nil, nil
	}
	if c.CAFile == "" || c.CertFile == "" || c.KeyFile == "" {
		return nil, proto.Wrong("cert", "-ca, -cert and -key together", "one is missing")
	}
	return cert.Server(c.CAFile, c.CertFile, c.KeyFile)
}

// Addr is where the broker listens, host:port.
func (b *Broker) Addr() string { return b.addr }

// URL is where this machine reaches the broker.
func (b *Broker) URL() string {
	host, port, err := net.SplitHostPort(b.addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return b.scheme + net.JoinHostPort("127.0.0.1", port)
	}
	return b.scheme + b.addr
}

// Dropped counts messages that slow clients lost.
func (b *Broker) Dropped() uint64 { return b.dropped.Load() }

// Close throws every client out and stops listening; again is nothing.
func (b *Broker) Close() error { return b.close() }

// quiet lets only errors of the broker's own log through: every client that
// leaves is a warning to it.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelError && q.Handler.Enabled(ctx, l)
}

func (q quiet) WithAttrs(a []slog.Attr) slog.Handler { return quiet{q.Handler.WithAttrs(a)} }
func (q quiet) WithGroup(name string) slog.Handler   { return quiet{q.Handler.WithGroup(name)} }
