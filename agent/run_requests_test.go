package agent

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"ringlight/proto/limit"
)

// Goal: a connection on which nothing is asked ends without a word, which its client would
// take for the answer to what it asks next.
// Method: a peer that says nothing until its time is over.
func TestIdleConnectionGetsNoAnswer(t *testing.T) {
	under, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := limit.Listen(under, limit.Connections{Max: 1, First: 10 * time.Millisecond, Write: time.Second}, nil)
	defer l.Close()
	client, err := net.Dial("tcp", under.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	v := &scriptServer{tell: func(context.Context, Input) {}, requests: &Requests{}, out: map[uint64]chan []byte{}}
	v.request(t.Context(), limit.Of(conn))
	_ = conn.Close()
	if said, err := io.ReadAll(client); len(said) > 0 || err != nil {
		t.Errorf("it was told %q, %v", said, err)
	}
}
