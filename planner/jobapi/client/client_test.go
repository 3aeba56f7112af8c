package client

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"ringlight/proto"
)

// Goal: a planner that takes a connection and never answers is away, so that
// nobody waits for it for ever.
// Method: a listener that nobody accepts from, and patience of 20 ms.
func TestPlannerThatStandsStillIsAway(t *testing.T) {
	defer func(d time.Duration) { answerTime = d }(answerTime)
	answerTime = 20 * time.Millisecond
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := New(Config{URL: "http://" + l.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Topology(context.Background())
	var wire *proto.Error
	if !errors.As(err, &wire) || wire.Code != proto.Expired || wire.Field != "http" {
		t.Error(err)
	}
}
