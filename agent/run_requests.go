package agent

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"ringlight/hal/sonic"
	"ringlight/proto/limit"
)

// Requests is where RESTCONF is served to tools that drive a switch, and to whom.
type Requests struct {
	Address string
	TLS     *tls.Config // nil: plainly
	// May says why one may not ask, nil when it may; who is nil without TLS.
	May func(r *http.Request, who *x509.Certificate) error
}

// Limits of a request. chosen: a change of all ports of the widest switch; a tool that looks
// once a minute keeps its connection.
const (
	maxRequest  = 1 << 20
	requestIdle = 2 * time.Minute
)

// request serves a connection: a request, its answer, the next.
func (v *scriptServer) request(ctx context.Context, conn *limit.Conn) {
	peer, who := io.ReadWriter(conn), (*x509.Certificate)(nil)
	if v.requests.TLS != nil {
		t := tls.Server(conn, v.requests.TLS)
		if t.HandshakeContext(ctx) != nil {
			return
		}
		defer t.Close()
		peer, who = t, t.ConnectionState().PeerCertificates[0] // the listener wants one
	}
	id, replies := v.open()
	defer func() { v.tell(ctx, Input{Kind: InRequest, ID: id}); v.answer(id, nil) }()
	room := &io.LimitedReader{R: peer}
	for in := bufio.NewReader(room); ; {
		room.N = 2 * maxRequest
		r, err := http.ReadRequest(in)
		if cut, ok := errors.AsType[net.Error](err); err == io.EOF || ok && cut.Timeout() {
			return // it has ended, or was idle for too long: an answer to nothing would be taken for the next one's
		}
		var body, reply []byte
		if err == nil {
			body, err = io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
		}
		status := 0
		if err != nil {
			status, reply = sonic.ErrorReply(sonic.Refuse("malformed-message", "", "the request: %.200v", err))
			r = &http.Request{Close: true}
		} else if len(body) > maxRequest {
			status, reply = sonic.ErrorReply(sonic.Refuse("too-big", "", "the document: want at most %d bytes", maxRequest))
			r.Close = true
		} else if err := v.requests.May(r, who); err != nil {
			status, reply = sonic.ErrorReply(sonic.Refuse("access-denied", "", "%v", err))
		} else {
			conn.Admit()
			v.tell(ctx, Input{Kind: InRequest, ID: id, Line: append([]byte(r.Method+" "+r.RequestURI+"\n"), body...)})
			select {
			case raw, open := <-replies:
				head, rest, _ := bytes.Cut(raw, []byte("\n"))
				if status, err = strconv.Atoi(string(head)); !open || err != nil {
					return // one client too many
				}
				reply = rest
			case <-ctx.Done():
				return
			}
		}
		out := fmt.Appendf(nil, "HTTP/1.1 %d %s\r\nCache-Control: no-store\r\n", status, http.StatusText(status))
		if status != http.StatusNoContent {
			out = fmt.Appendf(out, "Content-Type: application/yang-data+json\r\nContent-Length: %d\r\n", len(reply))
		}
		if r.Close {
			out = append(out, "Connection: close\r\n"...)
		}
		if out = append(out, "\r\n"...); r.Method != http.MethodHead {
			out = append(out, reply...)
		}
		if _, err := peer.Write(out); err != nil || r.Close || ctx.Err() != nil {
			return
		}
		conn.SetReadDeadline(time.Now().Add(requestIdle))
	}
}
