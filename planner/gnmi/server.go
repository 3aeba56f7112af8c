package gnmi

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	pb "github.com/openconfig/gnmi/proto/gnmi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"ringlight/proto"
	"ringlight/proto/cert"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
)

// Limits for strangers. chosen: a collector per rack, each with a stream, on connections
// of its own.
const (
	maxConnections = 2048
	maxStreams     = 1536    // Subscribe at once, shared fairly among addresses
	maxOfOne       = 128     // calls at once of one connection
	maxMessage     = 1 << 20 // of what is asked: a Set of all circuits of a switch
	maxHeaders     = 16 << 10
	buffer         = 4 << 10  // of a connection, of what comes
	writeBuffer    = 16 << 10 // of one that writes just now: a record of TLS
	maxPaths       = 128      // of one request
	maxElems       = 32       // of one path
	maxUpdates     = 100_000
	maxAnswers     = 8 // that are made at once; the others wait. chosen: each may look at all there is
	// firstPatience bounds a handshake, and what a stream waits for its first request.
	firstPatience = 10 * time.Second
	// writePatience is how long one message may take to be taken.
	writePatience = 10 * time.Second
	idlePatience  = 5 * time.Minute  // of a connection without a call
	pollPatience  = 10 * time.Minute // of a stream that nobody polls
	alivePeriod   = 30 * time.Second // HTTP/2 pings on a silent connection
	rightsPeriod  = 2 * time.Second  // how often it is looked whether a stream may still be
)

// Config of a Server.
type Config struct {
	Addr                      string // host:port
	CAFile, CertFile, KeyFile string // PEM files; none: plainly, on loopback alone
	Source                    Source
	// May says why who has a certificate, nil: none, may not ask that; nil when it may.
	May func(who *x509.Certificate, q *proto.OpRequest) error
	Log *slog.Logger
}

// Check reports what Start would refuse before it listens.
func (c *Config) Check() error {
	_, err := c.tls()
	return err
}

func (c *Config) tls() (*tls.Config, error) {
	host, _, err := net.SplitHostPort(c.Addr)
	switch {
	case err != nil:
		return nil, proto.Wrong("gnmi", "host:port", "%v", err)
	case c.CAFile != "" && c.CertFile != "" && c.KeyFile != "":
		return cert.Server(c.CAFile, c.CertFile, c.KeyFile)
	case !mqtt.IsLoopback(host):
		return nil, proto.Wrong("gnmi", "a loopback address, or -ca, -cert and -key", "%q is open to others; it is served to those with a certificate alone", c.Addr)
	}
	return nil, nil
}

// Server is a running one.
type Server struct {
	pb.UnimplementedGNMIServer
	Config
	facts
	mirror *mirror
	room   chan struct{} // for answers
	grpc   *grpc.Server
	addr   string
	done   chan struct{}

	mu      sync.Mutex
	streams map[chan struct{}]string // whose it is, by address; closed when another has its place
	// audiences are those of streams, by what they asked for.
	audiences map[string]*audience
}

// Start serves. The error is a *proto.Error when the configuration is at fault.
func Start(cfg Config) (*Server, error) {
	secure, err := cfg.tls()
	if err != nil {
		return nil, err
	}
	cfg.Log = limit.Logger(cfg.Log)
	l, err := net.Listen("tcp", cfg.Addr)
	if err != nil {
		return nil, fmt.Errorf("gnmi: %w", err)
	}
	f := facts{cfg.Source, time.Now}
	s := &Server{Config: cfg, facts: f, mirror: newMirror(f), room: make(chan struct{}, maxAnswers), addr: l.Addr().String(), done: make(chan struct{}), streams: map[chan struct{}]string{}, audiences: map[string]*audience{}}
	hands := keeping{credentials.NewTLS(secure)}
	if secure == nil {
		hands = keeping{insecure.NewCredentials()}
	}
	s.grpc = grpc.NewServer(grpc.Creds(hands), encodesOnce, grpc.MaxRecvMsgSize(maxMessage), grpc.MaxConcurrentStreams(maxOfOne), grpc.MaxHeaderListSize(maxHeaders),
		grpc.ReadBufferSize(buffer), grpc.WriteBufferSize(writeBuffer), grpc.ConnectionTimeout(firstPatience), grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idlePatience, Time: alivePeriod, Timeout: writePatience}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: alivePeriod / 3, PermitWithoutStream: true}))
	pb.RegisterGNMIServer(s.grpc, s)
	go func() {
		defer close(s.done)
		if err := s.grpc.Serve(limit.Listen(l, limit.Connections{Max: maxConnections, First: firstPatience, Write: writePatience}, cfg.Log)); err != nil {
			cfg.Log.Error("gnmi server ended", "reason", err)
		}
	}()
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() string { return s.addr }

// Close ends every call.
func (s *Server) Close() error {
	s.grpc.Stop()
	<-s.done
	return nil
}

// keeping keeps a call's connection at hand: so it is admitted with its first call, and not
// before, as gRPC's own deadline goes with that.
type keeping struct {
	credentials.TransportCredentials
}

// handed is a connection that a call came over.
type handed struct {
	credentials.AuthInfo
	conn *limit.Conn
}

func (a keeping) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	conn, info, err := a.TransportCredentials.ServerHandshake(raw)
	return conn, handed{info, limit.Of(raw)}, err
}

func (a keeping) Clone() credentials.TransportCredentials {
	return keeping{a.TransportCredentials.Clone()}
}

// caller is who calls.
type caller struct {
	leaf *x509.Certificate // nil: none
	name string            // for the audit chain
	peer string            // address
	conn *limit.Conn
}

func callerOf(ctx context.Context) (c caller) {
	c.name = "loopback"
	p, ok := peer.FromContext(ctx)
	if !ok {
		return c
	}
	c.peer = limit.Peer(p.Addr.String())
	h, _ := p.AuthInfo.(handed)
	if c.conn = h.conn; c.conn != nil {
		c.conn.Admit()
	}
	if t, ok := h.AuthInfo.(credentials.TLSInfo); ok && len(t.State.PeerCertificates) > 0 {
		c.leaf = t.State.PeerCertificates[0]
		c.name = c.leaf.Subject.CommonName
	}
	return c
}

// reads is what anybody asks for who reads.
var reads = proto.OpRequest{Noun: proto.NounStatus, Bundle: -1}

func (s *Server) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, do grpc.UnaryHandler) (out any, err error) {
	defer s.survive(&err)
	if err := s.May(callerOf(ctx).leaf, &reads); err != nil {
		return nil, coded(err)
	}
	err = s.takeTurn(ctx, func() (err error) {
		out, err = do(ctx, req)
		return err
	})
	return out, coded(err)
}

// takeTurn makes an answer when there is room for it.
func (s *Server) takeTurn(ctx context.Context, do func() error) error {
	select {
	case s.room <- struct{}{}:
		defer func() { <-s.room }()
		return do()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Server) stream(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, do grpc.StreamHandler) (err error) {
	defer s.survive(&err)
	if err := s.May(callerOf(ss.Context()).leaf, &reads); err != nil {
		return coded(err)
	}
	return coded(do(srv, ss))
}

// survive turns a broken invariant into the end of one call: the planner goes on.
func (s *Server) survive(err *error) {
	if why := recover(); why != nil {
		s.Log.Error("a gNMI call failed", "reason", why, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the planner's gNMI failed; its log says why")
	}
}

var codeOf = map[proto.Code]codes.Code{proto.Invalid: codes.InvalidArgument, proto.Malformed: codes.InvalidArgument, proto.TooLarge: codes.ResourceExhausted, proto.NotFound: codes.NotFound,
	proto.Busy: codes.Unavailable, proto.Denied: codes.PermissionDenied, proto.Conflict: codes.FailedPrecondition, proto.Duplicate: codes.AlreadyExists,
	proto.Expired: codes.DeadlineExceeded, proto.Unsupported: codes.Unimplemented, proto.HardwareFailed: codes.Aborted}

// coded is an error as gRPC has it, in our words.
func coded(err error) error {
	var wire *proto.Error
	if !errors.As(err, &wire) {
		if _, already := status.FromError(err); already || err == nil {
			return err
		}
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return status.FromContextError(err).Err()
		}
		return status.Error(codes.Unavailable, err.Error())
	}
	code, ok := codeOf[wire.Code]
	if !ok {
		code = codes.Internal
	}
	return status.Error(code, wire.Error())
}

// Capabilities says which models there are.
func (s *Server) Capabilities(context.Context, *pb.CapabilityRequest) (*pb.CapabilityResponse, error) {
	r := &pb.CapabilityResponse{SupportedEncodings: []pb.Encoding{pb.Encoding_JSON_IETF, pb.Encoding_JSON, pb.Encoding_PROTO}, GNMIVersion: version}
	for _, m := range models {
		r.SupportedModels = append(r.SupportedModels, &pb.ModelData{Name: m.module, Organization: m.organization, Version: m.revision})
	}
	return r, nil
}

const version = "0.10.0" // of github.com/openconfig/gnmi/proto, that requests are read by

// asked is a path that was asked for, whole.
type asked struct {
	*pb.Path // as it was said
	elems    []*pb.PathElem
	model    *model // nil: of the root
	schema   *schema
	kinds    kinds
	device   string // switch-3, "" of the fabric
}

// ask reads a path below a prefix.
func ask(prefix, p *pb.Path) (a asked, err error) {
	a = asked{Path: p, device: deviceOf(cmp.Or(prefix.GetTarget(), p.GetTarget()))}
	for _, e := range slices.Concat(prefix.GetElem(), p.GetElem()) {
		if _, name, qualified := strings.Cut(e.GetName(), ":"); qualified { // as RFC 7951 may have it
			e = &pb.PathElem{Name: name, Key: e.GetKey()}
		}
		a.elems = append(a.elems, e)
	}
	if n := len(a.elems); n > maxElems {
		return a, proto.Wrong("path", fmt.Sprintf("at most %d elements", maxElems), "%d", n)
	}
	//lint:ignore SA1019 who speaks gNMI of before 0.4 alone is told so
	if len(a.elems) == 0 && len(p.GetElement()) > 0 {
		return a, proto.Wrong("path", "elem", "element is of before gNMI 0.4")
	}
	if origin := cmp.Or(p.GetOrigin(), prefix.GetOrigin()); origin != "" && origin != "openconfig" && origin != "ringlight" {
		return a, proto.Wrong("origin", "openconfig, ringlight or none", "%.40q", origin)
	}
	if a.model, a.schema, err = find(a.elems); err != nil {
		return a, err
	}
	if a.kinds = kindsOf(a.elems); a.device != "" {
		a.kinds = ofSwitches
	} else if at, err := whose(a.elems); err != nil {
		return a, err
	} else if at >= 0 {
		a.kinds = ofRecords
	}
	if a.model != nil && a.model.device != (a.device != "") {
		return a, proto.Wrong("target", map[bool]string{true: targetPrefix + "N", false: "that of the planner"}[a.model.device], "/%s of %.40q", a.model.root.name, a.device)
	}
	return a, nil
}

// covers says whether the path leads to an entry, or to a part of it.
func (a *asked) covers(e *entry) bool { return a.device == e.device && covers(a.elems, e.path) }

// devices are the switches among targets.
func (a *asked) devices() []string {
	if a.device == "" {
		return nil
	}
	return []string{a.device}
}

// exact: the path has no * and every key.
func (a *asked) exact() bool {
	if a.model == nil {
		return false
	}
	at := (*schema)(nil)
	for i, e := range a.elems {
		if at = a.model.root; i > 0 {
			_, at, _ = find(a.elems[:i+1])
		}
		if e.GetName() == "*" || at.key != "" && (e.GetKey()[at.key] == "" || e.GetKey()[at.key] == "*") {
			return false
		}
	}
	return true
}

// askAll reads the paths of a request; none is the root.
func askAll(prefix *pb.Path, paths []*pb.Path) (all []asked, k kinds, err error) {
	if len(paths) > maxPaths {
		return nil, 0, proto.Wrong("path", fmt.Sprintf("at most %d in a request", maxPaths), "%d", len(paths))
	}
	for _, p := range paths {
		a, err := ask(prefix, p)
		if err != nil {
			return nil, 0, err
		}
		all, k = append(all, a), k|a.kinds
	}
	return all, k, nil
}

// encoding says what a client wants to read; ASCII and bytes are not known.
func encoding(e pb.Encoding) (pb.Encoding, error) {
	switch e {
	case pb.Encoding_JSON, pb.Encoding_JSON_IETF, pb.Encoding_PROTO:
		return e, nil
	}
	return e, &proto.Error{Code: proto.Unsupported, Field: "encoding", Limit: "JSON, JSON_IETF or PROTO", Reason: e.String()}
}
