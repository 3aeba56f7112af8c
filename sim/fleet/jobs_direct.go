package fleet

import (
	"fmt"
	"slices"
	"strings"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// parseDirect reads a job of a direct core: JOB:SERVERSs/DEGREE, with mp behind
// the degree where every server also sends to others, and >JOB where it is next
// to one. ok: it has that form.
func parseDirect(word string) (s proto.JobSpec, ok bool, err error) {
	if !strings.Contains(word, "s/") {
		return s, false, nil
	}
	form, next, follows := strings.Cut(word, ">")
	form, mp := strings.CutSuffix(form, "mp")
	t := new(proto.JobTopology)
	var more string
	if n, _ := fmt.Sscanf(form+" .", "%d:%ds/%d%s", &s.Job, &s.Servers, &t.Degree, &more); n != 4 || more != "." {
		return s, false, fmt.Errorf("job %q", word)
	}
	if follows {
		if n, _ := fmt.Sscanf(next+" .", "%d%s", &s.Next, &more); n != 2 || more != "." {
			return s, false, fmt.Errorf("job %q", word)
		}
	}
	s.TP, s.EP, s.PP, s.Topology = 1, 1, 1, t
	s.DP = 0
	t.Bidirectional, t.Seed = t.Degree%2 == 0, uint64(s.Job)
	all := proto.Reduce{Bytes: 1 << 30}
	for x := range s.Servers {
		all.Servers = append(all.Servers, uint16(x))
		if to := (x*7 + 3) % s.Servers; mp && to != x {
			t.MP = append(t.MP, proto.Demand{From: uint16(x), To: uint16(to), Bytes: 1 << 26})
		}
	}
	if s.Servers > 1 {
		t.AllReduce = []proto.Reduce{all}
	}
	return s, true, nil
}

// DirectLists draws lists of jobs for up to all servers. In each some jobs have
// ended, some go on, some are new; with ahead, of those that go on some have one
// next to them, which starts when they end.
func DirectLists(core *fabric.Core, seed uint64, lists int, ahead bool) []string {
	type job struct{ id, servers, degree, mp, next int }
	draw := random{seed: detmath.Hash(seed, streamJobs)}
	all, degree := core.Servers(), core.Degree
	var out []string
	var list []job
	id := 0
	fresh := func(servers, next int) job {
		id++
		d := 1 + draw.below(degree)
		if draw.chance(700_000) {
			d = degree
		}
		return job{id, servers, d, draw.below(2), next}
	}
	for range lists {
		gone := map[int]bool{}
		for _, j := range list {
			if j.next == 0 && draw.chance(400_000) {
				gone[j.id] = true
			}
		}
		list = slices.DeleteFunc(list, func(j job) bool { return gone[j.id] })
		used, waited := 0, map[int]bool{}
		for n := range list {
			j := &list[n]
			if gone[j.next] {
				j.next = 0
			}
			if waited[j.next] = true; j.next == 0 {
				used += j.servers
			}
		}
		for _, j := range slices.Clone(list) {
			if ahead && j.next == 0 && !waited[j.id] && draw.chance(600_000) {
				list = append(list, fresh(2+draw.below(j.servers-1), j.id))
			}
		}
		for tries := 0; used < all && tries < 4; tries++ {
			if n := 2 + draw.below(max(2, all/2)); used+n <= all {
				list = append(list, fresh(n, 0))
				used += n
			}
		}
		words := make([]string, len(list))
		for n, j := range list {
			words[n] = fmt.Sprintf("%d:%ds/%d", j.id, j.servers, j.degree)
			if j.mp > 0 {
				words[n] += "mp"
			}
			if j.next > 0 {
				words[n] += fmt.Sprintf(">%d", j.next)
			}
		}
		text := noJobs
		if len(words) > 0 {
			text = strings.Join(words, " ")
		}
		out = append(out, text)
	}
	return out
}
