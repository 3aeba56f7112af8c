package client

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"ringlight/planner/job"
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

// Goal: of several copies the one that leads is found, asked first from then on, and
// given up when it is gone; who retries nothing has asked each of them once.
// Method: an address where nobody listens, one that follows, two that lead, one of
// which ends; what each was asked.
func TestCopyThatLeadsIsFound(t *testing.T) {
	asked := map[string]int{}
	serve := func(name string, leads bool) *httptest.Server {
		return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked[name]++
			if !leads {
				http.Error(w, `{"error":{"code":"busy","message":"follows"}}`, http.StatusServiceUnavailable)
				return
			}
			_, _ = w.Write([]byte("{}"))
		}))
	}
	none := httptest.NewServer(nil)
	none.Close()
	follows, first, second := serve("follows", false), serve("first", true), serve("second", true)
	defer follows.Close()
	defer second.Close()
	c, err := New(Config{URL: none.URL + "," + follows.URL + ", " + first.URL + "/," + second.URL})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		if i == 2 {
			first.Close()
		}
		if _, err := c.As("me").Put(t.Context(), "j", &job.Wish{}); err != nil {
			t.Fatal(err)
		}
	}
	if asked["follows"] != 1 || asked["first"] != 2 || asked["second"] != 2 {
		t.Errorf("asked %v", asked)
	}
	second.Close()
	var wire *proto.Error
	if _, err := c.Topology(t.Context()); !errors.As(err, &wire) || asked["follows"] != 2 {
		t.Error(err, asked)
	}
	for _, bad := range []string{"", "http://a,", "http://a,unix:", "http://a,ftp://b"} {
		if _, err := New(Config{URL: bad}); !errors.As(err, &wire) || wire.Field != "http" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
