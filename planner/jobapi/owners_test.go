package jobapi

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"ringlight/planner"
	"ringlight/proto"
)

// Goal: none of many owners touches what is another's, whatever the names of jobs and
// owners begin with. Method: an operator without a name with ring-777, controllers k8s and
// k8s-b, a watcher of the Slurm cluster ring that releases all of its list, and 20 more ask,
// change, release, replace and read files of each other's jobs at random, with the jobs'
// revisions and stale ones; a book of whose each job is says what every answer must be, and
// after each step no job of another has a new revision.
func TestOwnersTouchOnlyTheirOwn(t *testing.T) {
	url, _ := served(t)
	type entry struct {
		owner, etag string
		tp          int // 0: released
	}
	owners := []string{"", "k8s", "k8s-b", "slurm/ring"}
	for i := range 20 {
		owners = append(owners, fmt.Sprintf("o%d", i), fmt.Sprintf("o%d-b", i))
	}
	owners = owners[:24]
	ids := []string{"ring-1", "ring-12", "k8s-1", "k8s-b-1", "k8s", "slurm", "o1-1", "o1-b-1", "a", "b"}
	book := map[string]entry{}
	first := ask(t, "PUT", url+"/v1/jobs/ring-777", `{"tp":32}`)
	book["ring-777"] = entry{"", first.etag, 32}
	ids = append(ids, "ring-777")
	mine := func(id, owner string) string {
		if owner == "" {
			return url + "/v1/jobs/" + id
		}
		sep := "?"
		if strings.Contains(id, "?") {
			sep = "&"
		}
		return url + "/v1/jobs/" + id + sep + "owner=" + strings.ReplaceAll(owner, "/", "%2F")
	}
	refused, sweeps := 0, 0
	for step := range 1500 {
		r := rand.New(rand.NewPCG(31, uint64(step)))
		owner, id := owners[r.IntN(len(owners))], ids[r.IntN(len(ids))]
		if is, there := book[id]; there && r.IntN(2) == 0 {
			owner = is.owner
		}
		is, known := book[id]
		alive := is.tp != 0
		others := alive && is.owner != owner
		stale := known && r.IntN(4) == 0
		var match []string
		if known && r.IntN(2) == 0 || stale {
			match = []string{is.etag}
			if stale {
				match[0] = `"999999"`
			}
		}
		var a answer
		want := []int{200, 201}
		tp := []int{16, 32}[r.IntN(2)]
		verb := []string{"submit", "release", "replace", "files", "sweep"}[r.IntN(5)]
		switch {
		case id == "ring-777" && owner == "" && (verb == "release" || verb == "submit"):
			continue // the operator keeps it
		case verb == "submit":
			wish := fmt.Sprintf(`{"tp":%d,"owner":%q}`, tp, owner)
			if owner == "" {
				wish = fmt.Sprintf(`{"tp":%d}`, tp)
			}
			a = ask(t, "PUT", url+"/v1/jobs/"+id, wish, match...)
			switch {
			case others || alive && tp != is.tp:
				want = []int{409, 412}
			case stale:
				want = []int{412}
			default:
				book[id] = entry{owner, a.etag, tp}
			}
		case verb == "release":
			a = ask(t, "DELETE", mine(id, owner), "", match...)
			switch {
			case !known:
				want = []int{404}
			case others:
				want = []int{409, 412}
			case stale && alive:
				want = []int{412}
			case !alive:
				want = []int{200, 409, 412} // it has ended, whosever it was
			default:
				book[id] = entry{is.owner, a.etag, 0}
			}
		case verb == "replace":
			a = ask(t, "POST", strings.Replace(mine(id, owner), "/jobs/"+id, "/jobs/"+id+"/replace", 1), `{"out":0}`)
			want = []int{400, 404, 409} // none has a place
			if others {
				want = []int{409}
			}
		case verb == "files":
			a = ask(t, "GET", mine(id+"/files/ranks", owner), "")
			want = []int{404, 409} // no light
			if others && owner != "" && a.Error.Field != "owner" {
				t.Fatalf("step %d: files of %s's %s for %q: %d %s", step, is.owner, id, owner, a.status, a.text)
			}
		default: // as a watcher that finds none of its cluster's jobs in the queue
			owner = []string{"k8s", "k8s-b", "slurm/ring"}[r.IntN(3)]
			for _, id := range slices.Sorted(maps.Keys(book)) {
				list := ask(t, "GET", url+"/v1/jobs?owner="+strings.ReplaceAll(owner, "/", "%2F"), "")
				has := strings.Contains(list.text, fmt.Sprintf("%q", "id")+":"+fmt.Sprintf("%q", id)+",")
				if e := book[id]; has != (e.tp != 0 && e.owner == owner) {
					t.Fatalf("step %d: list of %s, %s of %q: %s", step, owner, id, e.owner, list.text)
				}
				if has {
					a = ask(t, "DELETE", mine(id, owner), "")
					book[id] = entry{owner, a.etag, 0}
				}
			}
			sweeps++
			continue
		}
		if !slices.Contains(want, a.status) {
			t.Fatalf("step %d: %s of %s (%+v) by %q, match %v: %d %s, want %v", step, verb, id, is, owner, match, a.status, a.text, want)
		}
		if a.status >= 400 {
			refused++
			if now := ask(t, "GET", url+"/v1/jobs/"+id, ""); known && (now.etag != is.etag || alive == (now.job.State == "released")) {
				t.Fatalf("step %d: %s of %s by %q was refused, and it is %s %s, was %+v", step, verb, id, owner, now.etag, now.job.State, is)
			}
		}
	}
	if now := ask(t, "GET", url+"/v1/jobs/ring-777", ""); now.etag != first.etag || now.job.State == "released" {
		t.Errorf("ring-777: %s %s, was %s", now.etag, now.job.State, first.etag)
	}
	t.Logf("%d owners, %d refused, %d sweeps, 0 touched another's", len(owners), refused, sweeps)
	if refused < 500 || sweeps < 100 {
		t.Error("hardly anything was tried")
	}
}

// Goal: what no message can carry is the client's to change, not to ask for again.
func TestWhatNoMessageCarriesIsRefused(t *testing.T) {
	for code, want := range map[proto.Code]int{proto.Malformed: 400, proto.TooLarge: 400, proto.Invalid: 400, proto.Busy: 503} { // any order: each by itself
		if got := status(&proto.Error{Code: code, Field: "name"}); got != want {
			t.Errorf("%s: %d", code, got)
		}
	}
}

// untouched is a planner that nobody asks.
type untouched struct{ *testing.T }

func (u untouched) Read(context.Context, func(*planner.Planner)) error {
	u.Error("the planner is read")
	return nil
}

func (u untouched) Ask(context.Context, proto.OpRequest) (*proto.OpReply, error) {
	u.Error("the planner is asked")
	return &proto.OpReply{}, nil
}

// Goal: the planner looks at one count of traffic at a time, however many are told at once.
// Method: while one is looked at another client gives up.
func TestCountsAreLookedAtOneByOne(t *testing.T) {
	a := New(untouched{t}, func(*http.Request) error { return nil })
	done, err := a.alone(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(gone, "POST", "/v1/jobs/a/traffic", strings.NewReader(`{"mp":[[0,1,5]]}`))
	if err := a.traffic(httptest.NewRecorder(), r); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	done()
	if again, err := a.alone(t.Context()); err != nil {
		t.Error(err)
	} else {
		again()
	}
}
