package bench

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// seen is what a watcher of the API server saw of a pool, and when.
type seen struct {
	at         time.Time
	generation int64
	state      string // "": its slice is gone
}

// watcher sees the slices as any other program does.
type watcher struct {
	mu    sync.Mutex
	pools map[string][]seen
}

func watchSlices(ctx context.Context, t *testing.T, cfg *rest.Config) *watcher {
	t.Helper()
	w := &watcher{pools: map[string][]seen{}}
	kube, err := kubernetes.NewForConfig(cfg) // a connection of its own
	if err != nil {
		t.Fatal(err)
	}
	see := func(x any, there bool) {
		if gone, ok := x.(cache.DeletedFinalStateUnknown); ok {
			x = gone.Obj
		}
		s, ok := x.(*resourceapi.ResourceSlice)
		if !ok {
			return
		}
		o := seen{at: time.Now()}
		if there {
			a := s.Spec.Devices[0].Attributes
			o.generation, o.state = *a["generation"].IntValue, *a["state"].StringValue
		}
		w.mu.Lock()
		w.pools[s.Spec.Pool.Name] = append(w.pools[s.Spec.Pool.Name], o)
		w.mu.Unlock()
	}
	informer := informers.NewSharedInformerFactory(kube, 0).Resource().V1().ResourceSlices().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(x any) { see(x, true) }, UpdateFunc: func(_, x any) { see(x, true) }, DeleteFunc: func(x any) { see(x, false) }}); err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(ctx)
	return w
}

// change is what the planner wrote down of a ring, by its own clock.
type change struct {
	at         time.Time
	generation int64
	state      string // "": the generation was decided, whatever the state; "gone": the ring has ended
}

// is: a slice shows the ring as this change left it.
func (c *change) is(s *seen) bool {
	if c.state == "gone" || s.state == "" {
		return c.state == "gone" && s.state == ""
	}
	return c.generation == s.generation && (c.state == "" || c.state == s.state)
}

var (
	field = regexp.MustCompile(`(\w+)=("(?:[^"\\]|\\.)*"|\S+)`)
	rings = regexp.MustCompile(`ring (\d+)( has no node left)?`)
)

// changes reads the planner's log.
func changes(t *testing.T, dir string) map[string][]change {
	t.Helper()
	f, err := os.Open(filepath.Join(dir, "ocs-planner.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string][]change{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		x := map[string]string{}
		for _, m := range field.FindAllStringSubmatch(lines.Text(), -1) {
			x[m[1]] = strings.Trim(m[2], `"`)
		}
		c := change{}
		if c.at, err = time.Parse(time.RFC3339Nano, x["time"]); err != nil {
			continue // what a person is told
		}
		c.generation, _ = strconv.ParseInt(x["generation"], 10, 64) // 0 elsewhere
		if state, ok := strings.CutPrefix(x["msg"], "ring "); ok && x["ring"] != "" {
			c.state = state
			out["ring-"+x["ring"]] = append(out["ring-"+x["ring"]], c)
		}
		if x["msg"] != "generation committed" {
			continue
		}
		for _, m := range rings.FindAllStringSubmatch(x["text"], -1) {
			if c.state = ""; m[2] != "" {
				c.state = "gone"
			}
			name := "ring-" + m[1]
			if last := len(out[name]) - 1; c.state == "" && last >= 0 && out[name][last].generation == c.generation {
				continue // a text names a ring once for each of its nodes
			}
			out[name] = append(out[name], c)
		}
	}
	return out
}

// behind is how long each change was not to be seen: until a slice showed the ring as
// it was then or later, or the ring was again as its slice had it all the time.
func behind(changes []change, slice []seen) (out []lag) {
	var waits []change
	var now seen
	caught := func(upTo int, at time.Time) {
		for _, c := range waits[:upTo] {
			out = append(out, lag{c.at, max(0, at.Sub(c.at))})
		}
		waits = slices.Clone(waits[upTo:])
	}
	for len(changes) > 0 || len(slice) > 0 {
		if len(slice) == 0 || len(changes) > 0 && !changes[0].at.After(slice[0].at) {
			c := changes[0]
			if changes = changes[1:]; c.state == "" && len(waits) == 0 && c.is(&now) {
				continue
			}
			if waits = append(waits, c); c.is(&now) {
				caught(len(waits), c.at)
			}
			continue
		}
		now, slice = slice[0], slice[1:]
		for i := len(waits) - 1; i >= 0; i-- {
			if waits[i].is(&now) {
				caught(i+1, now.at)
				break
			}
		}
	}
	for _, c := range waits {
		out = append(out, lag{c.at, never})
	}
	return out
}

const never = 24 * time.Hour

// lag is how long a change was not to be seen.
type lag struct {
	at time.Time
	d  time.Duration
}

// Goal: what counts as behind is what it says.
// Method: a ring's life and slices of it, by hand.
func TestBehind(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	life := []change{{at(0), 1, ""}, {at(100), 1, "in_service"}, {at(1000), 1, "forming"}, {at(1004), 1, "in_service"}, {at(2000), 1, "degraded"}, {at(2010), 2, ""}, {at(2300), 2, "in_service"}, {at(3000), 3, "gone"}}
	for _, c := range []struct {
		slices []seen
		want   []int
	}{
		{[]seen{{at(50), 1, "forming"}, {at(400), 1, "in_service"}, {at(2100), 2, "forming"}, {at(2600), 2, "in_service"}, {at(3500), 0, ""}}, []int{50, 300, 4, 0, 100, 90, 300, 500}},
		{[]seen{{at(400), 1, "in_service"}, {at(2600), 2, "in_service"}}, []int{400, 300, 4, 0, 600, 590, 300, -1}},
		{nil, []int{-1, -1, -1, -1, -1, -1, -1, 3000}},
	} {
		if c.slices == nil {
			c.want = []int{3000, 2900, 2000, 1996, 1000, 990, 700, 0} // no slice is what the end of a ring is
		}
		var got []int
		for _, l := range behind(life, c.slices) {
			if l.d == never {
				got = append(got, -1)
			} else {
				got = append(got, int(l.d.Milliseconds()))
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: behind %v, want %v", c.slices, got, c.want)
		}
	}
}

// judge compares what the watcher saw with what the planner wrote, and prints it.
func (w *watcher) judge(t *testing.T, dir string, from time.Time, back []time.Time) {
	t.Helper()
	const bound, excuse = 2 * time.Second, 20 * time.Second // a lease is another's after 15 s, looked at every 2
	w.mu.Lock()
	defer w.mu.Unlock()
	var alone, restarted []time.Duration
	for pool, list := range changes(t, dir) { // any order: sorted below
		for _, l := range behind(list, w.pools[pool]) {
			if l.at.Before(from) {
				continue // the cluster was not there yet
			}
			to := &alone
			if slices.ContainsFunc(back, func(k time.Time) bool { return l.at.Add(l.d).After(k) && l.at.Before(k.Add(excuse)) }) {
				to = &restarted
			}
			if *to = append(*to, l.d); l.d > bound && to == &alone {
				t.Errorf("%s: the planner's change at %v was seen %v later: planner %+v, slices %+v", pool, l.at.UTC().Format("15:04:05.000"), l.d, list, w.pools[pool])
			}
		}
	}
	for _, x := range []struct {
		what string
		all  []time.Duration
	}{{"", alone}, {", a controller killed then or in the 20 s before", restarted}} {
		slices.Sort(x.all)
		n := len(x.all)
		if n == 0 {
			continue
		}
		at := func(share int) time.Duration { return x.all[min(n-1, n*share/1000)].Round(time.Millisecond) }
		t.Logf("from the planner's change to a watcher of slices%s: p50 %v, p90 %v, p99 %v, p99.9 %v, most %v, of %d changes", x.what, at(500), at(900), at(990), at(999), at(1000), n)
	}
	if len(alone) == 0 {
		t.Error("no change of a ring was seen")
	}
}
