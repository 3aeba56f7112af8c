package fleet

import (
	"fmt"
	"strings"

	"ringlight/mzi/detmath"
	"ringlight/planner/fabric"
	"ringlight/proto"
)

// streamPhases is that of the phases that jobs go to.
const streamPhases = 69

// maxPhases is chosen: as a list's job may have.
const maxPhases = 16

func phaseName(p int) string { return fmt.Sprint("p", p) }

// goPhases is an entry by which jobs go to others of their phases: JOB:PHASE, one after
// the other.
const goPhases = "phases "

// parsePhases reads what follows goPhases.
func parsePhases(text string) (asks []proto.OpRequest, err error) {
	for word := range strings.FieldsSeq(text) {
		q := proto.OpRequest{Noun: proto.NounFlip, Node: proto.FirstSwitch, Bundle: -1}
		var phase int
		if n, _ := fmt.Sscanf(word, "%d:%d", &q.Job, &phase); n != 2 || phase < 0 || phase >= maxPhases {
			return nil, fmt.Errorf("phases %q", word)
		}
		q.Name = phaseName(phase)
		asks = append(asks, q)
	}
	return asks, nil
}

// goTraffic is an entry by which a job's traffic is counted, JOB:COUNT, with the number
// of the count.
const goTraffic = "traffic "

// Measuring has the traffic of all jobs of each list counted so many times.
func Measuring(lists []string, counts int) (all []string) {
	for _, list := range lists {
		all = append(all, list)
		for count := range counts {
			for word := range strings.FieldsSeq(list) {
				if id, _, ok := strings.Cut(word, ":"); ok {
					all = append(all, fmt.Sprintf("%s%s:%d", goTraffic, id, count))
				}
			}
		}
	}
	return all
}

// DirectLists draws lists of jobs for up to all servers. In each some jobs have
// ended, some go on, some are new; with ahead, of those that go on some have one
// next to them, which starts when they end. With phases each has so many, and after each
// list all go through theirs twice, now and then to another than the next.
func DirectLists(core *fabric.Core, seed uint64, lists int, ahead bool, phases int) []string {
	out := directLists(core, seed, lists, allServers(core), ahead && phases == 0)
	if phases == 0 {
		return out
	}
	draw, at := random{seed: detmath.Hash(seed, streamPhases)}, map[string]int{}
	var all []string
	for _, list := range out {
		var jobs, turns []string
		for word := range strings.FieldsSeq(list) {
			if word != noJobs {
				id, _, _ := strings.Cut(word, ":")
				jobs, word = append(jobs, id), fmt.Sprintf("%s*%d", word, phases)
			}
			turns = append(turns, word)
		}
		all = append(all, strings.Join(turns, " "))
		for range 2 * phases {
			turns = nil
			for _, id := range jobs {
				if at[id] = (at[id] + 1) % phases; draw.chance(200_000) {
					at[id] = draw.below(phases)
				}
				turns = append(turns, fmt.Sprintf("%s:%d", id, at[id]))
			}
			if len(turns) > 0 {
				all = append(all, goPhases+strings.Join(turns, " "))
			}
		}
	}
	return all
}
