package planner_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ringlight/planner"
	"ringlight/planner/view"
	"ringlight/proto"
)

// still is a planner that nobody steps.
type still struct{ p *planner.Planner }

func (s still) Read(_ context.Context, f func(*planner.Planner)) error { f(s.p); return nil }

func (s still) Ask(context.Context, proto.OpRequest) (*proto.OpReply, error) {
	return &proto.OpReply{}, nil
}

// Goal: the page says of each state that is made what the checks found: its word, and each
// cause with its words. Method: the states of TestHowAFabricIs, and what the page reads.
func TestPageSaysHowAFabricIs(t *testing.T) {
	planner.EachMadeState(t, func(t *testing.T, p *planner.Planner) {
		mux := http.NewServeMux()
		view.New("", still{p}).Mount(mux)
		got := httptest.NewRecorder()
		mux.ServeHTTP(got, httptest.NewRequest("GET", "/view/status", nil))
		var page struct {
			Status struct {
				Health string `json:"health"`
			} `json:"status"`
			Alarms []struct {
				What string `json:"what"`
				Why  string `json:"why"`
			} `json:"alarms"`
			Total int `json:"alarms_total"`
		}
		if err := json.Unmarshal(got.Body.Bytes(), &page); err != nil {
			t.Fatal(err)
		}
		is, found := p.Alarms.Health()
		causes := ""
		for _, a := range found {
			if a.Under == "" {
				causes += a.What + ": " + a.Why + "\n"
			}
		}
		said := ""
		for _, a := range page.Alarms {
			said += a.What + ": " + a.Why + "\n"
		}
		if page.Status.Health != strings.ReplaceAll(is.String(), " ", "_") || said != causes || page.Total != strings.Count(causes, "\n") {
			t.Errorf("the page says %s\n%s, the checks %v\n%s", page.Status.Health, said, is, causes)
		}
	})
}
