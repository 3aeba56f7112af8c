package mqtt

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/limit"
)

// Config of a Link. Zero durations and sizes take the defaults below.
type Config struct {
	Broker        string        // mqtt://host[:1883] or mqtts://host[:8883], or several with commas between: the members of one cluster
	ClientID      string        // one per life in the fabric; a second one with it takes over
	Will          *proto.Packet // what the broker publishes when we are lost
	Last          func() []byte // payload that is published in its place when the link is closed; nil: the same
	Subscriptions []string      // held over reconnects, granted before LinkUp
	CAFile        string        // PEM, with mqtts; none: the system's
	CertFile      string        // PEM, own certificate, read again at each connection
	KeyFile       string        // PEM
	PasswordFile  string        // user:password, or the password alone where Broker names the user; read again at each connection
	Insecure      bool          // allow mqtt beyond loopback
	Uncached      bool          // nothing is left with the broker: all goes and comes at QoS 0 and unretained, the will too
	Ordered       bool          // deliver in the order of arrival, else one goroutine a message takes part
	Queue         int           // packets in each queue
	Guard         Guard         // judges what comes sealed, and seals what goes; nil: seals are taken off and not looked at
	Intake        limit.Rate    // of the messages on each topic; zero: any. A Shed packet counts what came beyond it
	MinReconnect  time.Duration // first pause before another try
	MaxReconnect  time.Duration // longest pause; each is jittered between 0 and its length
	KeepAlive     time.Duration
	Seed          uint64 // of the jitter; 0 draws one
}

// Defaults.
const (
	DefaultQueue        = 8192 // chosen: one packet each way of a cell of 4,000 nodes, twice
	DefaultMinReconnect = 500 * time.Millisecond
	DefaultMaxReconnect = 30 * time.Second // chosen: with jitter, a fleet is back within 90 s of its broker
	// refusedMaxReconnect is the longest pause where nobody listened. chosen: a broker that
	// begins hears 10,000 links within four seconds, at first 5,000 tries a second. With 1 ms
	// of one processor for each TLS handshake it lags 6.4 s behind at most, which is within
	// connectTimeout; who gets no word by then waits as after any other failure.
	refusedMaxReconnect = 4 * time.Second
	ClusterMaxReconnect = 4 * time.Second  // chosen: the others of a cluster are there, or choose a leader within 11 s; a fleet of 3,000 tries 500 times a second at each of three
	DefaultKeepAlive    = 15 * time.Second // chosen: the will fires after 1.5 of it, 23 s
)

const (
	connectTimeout = 10 * time.Second // TCP, TLS and the broker's word
	grantTimeout   = 10 * time.Second // for the answer to subscriptions
	writeTimeout   = 5 * time.Second  // a half-open peer must not hold the writer
	pingTimeout    = 5 * time.Second
	goodbyeTime    = 250 * time.Millisecond // for a clean DISCONNECT to leave

	inflight     = 1024            // chosen: unacknowledged publications; embedded brokers keep 8192
	quickLoss    = 5 * time.Second // a connection that lives shorter counts as a failed one
	maxDoubling  = 16              // of the pause; far above MaxReconnect/MinReconnect
	queueBytes   = 32 << 20        // in each queue: 512 of the longest messages
	queuedPacket = 4 << 10         // or so much for each packet, if that is less
	packetBytes  = 128             // what a packet costs besides topic and payload

	intakeTopics = 1 << 16     // chosen: the topics of a cell of 10,000 nodes; beyond, those not known share
	intakeBytes  = 4 << 10     // a longer message counts as several
	shedEvery    = time.Second // between two Shed packets
)

// What agents and planners read. chosen: the busiest topics, a node's events
// and answers, carry some tens of messages a second, and a burst of a thousand
// pages of an operator passes; a planner of 10,000 nodes answers a page in some
// 100 us, and has other things to do.
const (
	intakeInterval = 5 * time.Millisecond // of one topic
	intakeBurst    = 1024
	askInterval    = 2 * time.Millisecond // of all operators together
	askBurst       = 4096
	wrongInterval  = 50 * time.Millisecond // of all that does not fit its topic; chosen: enough to be told what is wrong
	wrongBurst     = 256
)

// DefaultIntake is for agents and planners.
var DefaultIntake = limit.Rate{Interval: intakeInterval, Burst: intakeBurst}

var (
	allRequests = limit.Rate{Interval: askInterval, Burst: askBurst}
	allWrong    = limit.Rate{Interval: wrongInterval, Burst: wrongBurst}
)

// care is what the broker is asked to take of a publication.
func (c *Config) care(p *proto.Packet) (qos byte, retain bool) {
	if c.Uncached {
		return 0, false
	}
	return p.QoS, p.Retain
}

// subscribed is the QoS of subscriptions.
func (c *Config) subscribed() byte {
	if c.Uncached {
		return 0
	}
	return 1
}

func (c *Config) withDefaults() Config {
	d := *c
	d.Queue = cmp.Or(d.Queue, DefaultQueue)
	d.MinReconnect = cmp.Or(d.MinReconnect, DefaultMinReconnect)
	if d.MaxReconnect == 0 {
		if d.MaxReconnect = DefaultMaxReconnect; strings.Contains(d.Broker, ",") {
			d.MaxReconnect = ClusterMaxReconnect
		}
	}
	d.KeepAlive = cmp.Or(d.KeepAlive, DefaultKeepAlive)
	return d
}

// endpoint is a checked broker address.
type endpoint struct {
	address string      // host:port
	user    string      // of the URL
	tls     *tls.Config // nil: plain
}

// Check reports what Dial would refuse, without connecting.
func (c *Config) Check() error {
	_, err := c.endpoints()
	return err
}

// maxBrokers of one list. chosen: clusters have three or five.
const maxBrokers = 16

// endpoints checks the list of brokers.
func (c *Config) endpoints() (list []endpoint, err error) {
	urls := strings.Split(c.Broker, ",")
	if len(urls) > maxBrokers {
		return nil, proto.Wrong("broker", fmt.Sprintf("at most %d brokers", maxBrokers), "%d", len(urls))
	}
	for _, u := range urls {
		e, err := c.endpoint(u)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

func (c *Config) endpoint(broker string) (endpoint, error) {
	u, err := url.Parse(broker)
	if err != nil {
		return endpoint{}, proto.Wrong("broker", "mqtt://host:port or mqtts://host:port", "no URL")
	}
	port := map[string]string{"mqtt": "1883", "mqtts": "8883"}[u.Scheme]
	if _, open := u.User.Password(); open || u.User != nil && c.PasswordFile == "" {
		return endpoint{}, proto.Wrong("broker", "user and password in password_file, or mqtt://user@host:port with it", "%q", u.Redacted())
	}
	if port == "" || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
		return endpoint{}, proto.Wrong("broker", "mqtt://host:port or mqtts://host:port", "%q", u.Redacted())
	}
	if u.Port() != "" {
		port = u.Port()
	}
	e := endpoint{address: net.JoinHostPort(u.Hostname(), port), user: u.User.Username()}
	if _, _, err := c.login(e.user); err != nil {
		return e, err
	}
	switch {
	case c.ClientID == "":
		return e, proto.Wrong("client_id", "not empty", "empty")
	case c.MaxReconnect < 0 || c.MinReconnect < 0 || c.MaxReconnect != 0 && c.MaxReconnect < c.MinReconnect:
		return e, proto.Wrong("max_reconnect", "at least min_reconnect", "%v", c.MaxReconnect)
	case u.Scheme == "mqtts":
		e.tls, err = cert.Client(u.Hostname(), c.CAFile, c.CertFile, c.KeyFile)
		return e, err
	case c.CAFile != "" || c.CertFile != "" || c.KeyFile != "":
		return e, proto.Wrong("broker", "mqtts:// with -ca, -cert or -key", "%q", broker)
	case !c.Insecure && !IsLoopback(u.Hostname()):
		return e, proto.Wrong("broker", "mqtts:// beyond loopback, or -insecure", "%q is not encrypted", c.Broker)
	}
	return e, nil
}

// IsLoopback reports whether a host name or address stays on this machine.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
