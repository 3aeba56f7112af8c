package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"ringlight/planner"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/mqtt"
)

const (
	// lease is how long a leader leads that nobody hears of. chosen: longer than etcd
	// takes to choose a leader of its own.
	lease = 5 * time.Second
	// attempt bounds one request. chosen: a client that waits longer for a member that
	// has died loses the lease meanwhile.
	attempt = time.Second
	// breath is between two attempts.
	breath = 100 * time.Millisecond
	// snapshotEvery batches. chosen: what is read at a start stays some seconds' worth.
	snapshotEvery = 4096
)

// Config of a store in etcd.
type Config struct {
	Endpoints []string // URLs of the members' clients
	Name      string   // keys begin with it and a slash
	CAFile    string   // PEM files, for https
	CertFile  string
	KeyFile   string
	Insecure  bool   // allow http beyond loopback
	Who       string // this process, for people
	Log       *slog.Logger

	unguarded bool   // a planted defect: this leader does not look whether it leads
	every     uint64 // batches between two snapshots; 0: snapshotEvery
}

// Parse reads etcd:URL,URL.
func Parse(text string) (endpoints []string, ok bool) {
	list, ok := strings.CutPrefix(text, "etcd:")
	return strings.Split(list, ","), ok
}

// Check reports what Open would refuse, without connecting.
func (c *Config) Check() error {
	_, err := c.client()
	return err
}

func (c *Config) client() (clientv3.Config, error) {
	out := clientv3.Config{Endpoints: c.Endpoints, DialTimeout: attempt, DialKeepAliveTime: 2 * lease, DialKeepAliveTimeout: lease, Logger: zap.NewNop()}
	if c.Name == "" || strings.HasPrefix(c.Name, "/") || strings.HasSuffix(c.Name, "/") {
		return out, proto.Wrong("store_name", "a name without a slash at its ends", "%q", c.Name)
	}
	secure := 0
	for _, e := range c.Endpoints {
		u, err := url.Parse(e)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.Path != "" && u.Path != "/" || u.RawQuery != "" {
			return out, proto.Wrong("store", "bolt:FILE, or etcd:URL,URL with http://host:port or https://host:port", "%q", e)
		}
		if u.Scheme == "https" {
			secure++
		} else if !c.Insecure && !mqtt.IsLoopback(u.Hostname()) {
			return out, proto.Wrong("store", "https:// beyond loopback, or -insecure", "%q is not encrypted", e)
		}
	}
	switch files := c.CAFile != "" || c.CertFile != "" || c.KeyFile != ""; {
	case secure != 0 && secure != len(c.Endpoints):
		return out, proto.Wrong("store", "all http:// or all https://", "%d of %d are https", secure, len(c.Endpoints))
	case secure == 0 && files:
		return out, proto.Wrong("store", "https:// with -store-ca, -store-cert or -store-key", "%q", strings.Join(c.Endpoints, ","))
	case secure == 0:
		return out, nil
	}
	var err error
	out.TLS, err = c.tls()
	return out, err
}

func (c *Config) tls() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12} // etcd 3.4 speaks no later one in all builds
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, proto.Wrong("store_ca", "a readable PEM file", "%v", err)
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, proto.Wrong("store_ca", "PEM certificates", "none in %s", c.CAFile)
		}
	}
	if c.CertFile == "" && c.KeyFile == "" {
		return t, nil
	}
	if _, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile); err != nil {
		return nil, proto.Wrong("store_cert", "a readable pair -store-cert and -store-key", "%v", err)
	}
	t.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile) // again: short-lived ones are replaced in place
		return &pair, err
	}
	return t, nil
}

// Store is one process's view of a store in etcd.
type Store struct {
	cfg     Config
	client  *clientv3.Client
	cluster uint64
	ctx     context.Context
	cancel  context.CancelFunc
	done    sync.WaitGroup
	vacant  chan struct{} // there may be no leader
	writing sync.Mutex    // one commit at a time
	closing sync.Once

	mu       sync.Mutex
	state    map[string][]byte
	head     head
	headRev  int64             // of the key head, when it was read or written last
	parts    map[string][]byte // of batches that head has not reached
	standing server.Standing
	reign    int64 // the leader key's revision, as this process made it
	written  sum   // of the batch that this process writes, or wrote last
	leaseID  clientv3.LeaseID
	// unwritten is why the write under way has failed so far; nil: it has not, or none is.
	unwritten error
	changed   chan struct{}
}

var _ server.Store = (*Store)(nil)

func (s *Store) key(format string, args ...any) string {
	return s.cfg.Name + "/" + fmt.Sprintf(format, args...)
}

func (s *Store) walKey(seq uint64, part int) string { return s.key("wal/%016x/%04x", seq, part) }

// Open connects, reads what there is and begins to stand for election. It waits for
// the cluster, and says so. A store of another cluster is refused, and so are endpoints
// of two.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	s, err := dial(ctx, cfg)
	if err != nil {
		return nil, err
	}
	at := int64(0)
	if err = s.admit(ctx, found); err == nil {
		at, err = s.read(ctx)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	s.done.Add(2)
	go s.follow(at)
	go s.campaign()
	return s, nil
}

// dial makes a store that has read nothing. It waits until a member answers.
func dial(ctx context.Context, cfg Config) (*Store, error) {
	c, err := cfg.client()
	if err != nil {
		return nil, err
	}
	cfg.every = cmp.Or(cfg.every, snapshotEvery)
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	s := &Store{cfg: cfg, vacant: make(chan struct{}, 1), changed: make(chan struct{}), state: map[string][]byte{}, parts: map[string][]byte{}}
	if s.client, err = clientv3.New(c); err != nil {
		return nil, proto.Wrong("store", "a cluster of etcd", "%v", err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for said := false; ; {
		if s.cluster, err = s.onlyCluster(ctx); err == nil {
			return s, nil
		}
		if fatal(err) || ctx.Err() != nil {
			s.stop()
			return nil, errors.Join(err, ctx.Err())
		}
		if !said {
			said = true
			cfg.Log.Warn("waits for the store: no member of etcd answers", "endpoints", strings.Join(cfg.Endpoints, ","), "reason", err)
		}
		s.pause(ctx)
	}
}

// onlyCluster asks every endpoint of which cluster it is.
func (s *Store) onlyCluster(ctx context.Context) (id uint64, err error) {
	type answer struct {
		endpoint string
		id       uint64
		err      error
	}
	answers := make(chan answer, len(s.cfg.Endpoints))
	for _, e := range s.cfg.Endpoints {
		go func() {
			ctx, cancel := context.WithTimeout(ctx, attempt)
			defer cancel()
			a := answer{endpoint: e}
			var r *clientv3.StatusResponse
			if r, a.err = s.client.Status(ctx, e); a.err == nil {
				a.id = r.Header.ClusterId
			}
			answers <- a
		}()
	}
	first := answer{}
	for range s.cfg.Endpoints {
		a := <-answers
		switch {
		case a.err != nil:
			err = fmt.Errorf("%s: %w", a.endpoint, a.err)
		case first.id == 0:
			first = a
		case first.id != a.id:
			return 0, proto.Wrong("store", "endpoints of one cluster", "%s is of cluster %x, %s of %x", first.endpoint, first.id, a.endpoint, a.id)
		}
	}
	if first.id != 0 {
		return first.id, nil
	}
	return 0, err
}

// What admit does about the cluster that a store says it is of.
type admission int

const (
	look  admission = iota // refuse another one
	found                  // and write down this one where there is none yet
	adopt                  // write down this one
)

// admit looks whether the store is of this cluster.
func (s *Store) admit(ctx context.Context, how admission) error {
	key, ours := s.key("cluster"), fmt.Sprintf("%016x", s.cluster)
	return s.persist(ctx, func(ctx context.Context) error {
		r, err := s.get(ctx, attempt, key)
		if err != nil {
			return err
		}
		if len(r.Kvs) > 0 && string(r.Kvs[0].Value) == ours || len(r.Kvs) == 0 && how == look {
			return nil
		}
		if len(r.Kvs) > 0 && how != adopt {
			return proto.Wrong("store", "the cluster that the store was made in; for one that was restored or copied on purpose, ocs-planner store adopt",
				"it was made in cluster %s, this is %s", r.Kvs[0].Value, ours)
		}
		_, err = s.client.Put(ctx, key, ours)
		return err
	})
}

// same refuses an answer of another cluster.
func (s *Store) same(h *pb.ResponseHeader) error {
	if h.GetClusterId() == s.cluster {
		return nil
	}
	return proto.Wrong("store", "endpoints of one cluster", "a member of cluster %x answered, the store is in %x", h.GetClusterId(), s.cluster)
}

// fatal: trying again changes nothing.
func fatal(err error) bool {
	return errors.As(err, new(*proto.Error)) || errors.Is(err, errDamaged)
}

var errDamaged = errors.New("damaged")

// persist tries until it is done, an attempt at a time.
func (s *Store) persist(ctx context.Context, try func(context.Context) error) error {
	for {
		one, cancel := context.WithTimeout(ctx, attempt)
		err := try(one)
		cancel()
		if err == nil || fatal(err) {
			return err
		}
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		s.pause(ctx)
	}
}

func (s *Store) pause(ctx context.Context) {
	select {
	case <-time.After(breath):
	case <-ctx.Done():
	case <-s.ctx.Done():
	}
}

// Standing is where this process stands.
func (s *Store) Standing() (server.Standing, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standing, s.changed
}

// locked runs f with mu held.
func (s *Store) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// last is the head, as it was read or written last.
func (s *Store) last() (h head) {
	s.locked(func() { h = s.head })
	return h
}

// told is called with mu held when the standing is another one.
func (s *Store) told() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// number is that of the election, from what no other one has.
func (s *Store) number() uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", s.cluster, s.cfg.Name)
	return h.Sum64() | 1
}

// Load is everything that was read or written here, sorted by key.
func (s *Store) Load() (planner.State, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(planner.State, 0, len(s.state))
	for _, k := range slices.Sorted(maps.Keys(s.state)) {
		out = append(out, planner.Record{Key: k, Value: s.state[k]})
	}
	return out, nil
}

// apply is called with mu held.
func (s *Store) apply(records []planner.Record) {
	for _, r := range records {
		if r.Value == nil {
			delete(s.state, r.Key)
		} else {
			s.state[r.Key] = r.Value
		}
	}
}

// Close resigns, so that another one leads at once, and lets go.
func (s *Store) Close() (err error) {
	s.closing.Do(func() {
		err = s.resign()
		s.stop()
	})
	return err
}

func (s *Store) stop() {
	s.cancel()
	s.done.Wait()
	_ = s.client.Close()
}
