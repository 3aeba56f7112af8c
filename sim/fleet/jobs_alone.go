package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// parseAlone reads a job of a leaf-spine core: JOB:GPUSg, JOB:GPUSg/DURATION
// or JOB:GPUSg/DURATION/PAUSE, with what it declares to take and how long it may
// be dark to make room. ok: it has that form.
func parseAlone(word string) (s proto.JobSpec, ok bool, err error) {
	form := strings.Split(word, "/")
	if !strings.HasSuffix(form[0], "g") {
		return s, false, nil
	}
	var more string
	if n, _ := fmt.Sscanf(form[0]+" .", "%d:%dg%s", &s.Job, &s.DP, &more); n != 3 || more != "." || len(form) > 3 {
		return s, false, fmt.Errorf("job %q", word)
	}
	s.TP, s.EP, s.PP = 1, 1, 1
	for n, to := range [2]*uint64{&s.DurationMillis, &s.MayPauseMillis} {
		if n+1 >= len(form) {
			break
		}
		d, err := time.ParseDuration(form[n+1])
		if err != nil || d < 0 {
			return s, false, fmt.Errorf("job %q: %q is no duration", word, form[n+1])
		}
		*to = uint64(d.Milliseconds())
	}
	return s, true, nil
}

// aloneLists draws lists of jobs of all sizes that the empty core has room for,
// for up to one and a half times what there is: some wait.
func aloneLists(core *fabric.Core, seed uint64, lists int) []string {
	type job struct{ id, gpus int }
	draw := random{seed: detmath.Hash(seed, streamJobs)}
	sizes, all := AloneSizes(core), core.Servers()*core.GPUsPerServer
	var out []string
	var list []job
	id := 0
	for range lists {
		used := 0
		list = slices.DeleteFunc(list, func(job) bool { return draw.chance(350_000) })
		for _, j := range list {
			used += j.gpus
		}
		for tries := 0; used < all && tries < 6; tries++ {
			n := sizes[draw.below(len(sizes))]
			for again := 0; n <= core.GPUsPerLeaf && again < 2; again++ { // most go beyond a leaf
				n = sizes[draw.below(len(sizes))]
			}
			if used+n <= all*3/2 {
				id++
				list = append(list, job{id, n})
				used += n
			}
		}
		words := make([]string, len(list))
		for n, j := range list {
			words[n] = fmt.Sprintf("%d:%dg/%ds", j.id, j.gpus, 60+j.gpus)
		}
		text := noJobs
		if len(words) > 0 {
			text = strings.Join(words, " ")
		}
		out = append(out, text)
	}
	return out
}

// AloneSizes are numbers of GPUs, up to half of all: parts of a server, servers
// of a leaf, and l x s of whole servers.
func AloneSizes(core *fabric.Core) []int {
	t, leaf, spines := core.GPUsPerServer, core.GPUsPerLeaf, core.Spines
	var sizes []int
	add := func(n int) {
		if n <= core.Leaves()*leaf/2 && !slices.Contains(sizes, n) {
			sizes = append(sizes, n)
		}
	}
	for n := 1; n <= t; n++ {
		add(n)
	}
	for n := t; n <= leaf; n += t {
		add(n)
	}
	for l := 2; l <= core.Leaves(); l++ {
		for s := t; s <= min(spines, leaf); s += t {
			add(l * s)
		}
	}
	return sizes
}
