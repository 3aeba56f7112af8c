package damage

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Files are contents by name.
type Files = map[string][]byte

// Ways is the number of ways to spoil files; Whole is the one that leaves no
// trace in them: all are as they were before.
const (
	Ways  = 10
	Whole = Ways
)

// Spoil spoils the last of a history of the same files, by one of the ways or by
// Whole, and names what it did. Alone are the names of files that are never as
// of before together with others: only Whole does that.
func Spoil(rnd *rand.Rand, way int, history []Files, alone ...string) (content Files, what string) {
	content = maps.Clone(history[len(history)-1])
	names := slices.Sorted(maps.Keys(content))
	name := names[rnd.IntN(len(names))]
	raw := slices.Clone(content[name])
	at := 0
	if len(raw) > 0 {
		at = rnd.IntN(len(raw))
	}
	switch way {
	case 0, 1, 2:
		if len(raw) > 0 {
			raw[at] ^= 1 << rnd.IntN(8)
		}
		what = fmt.Sprintf("%s: a bit flipped at %d", name, at)
	case 3:
		raw, what = raw[:at], fmt.Sprintf("%s: cut at %d", name, at)
	case 4: // cut at an end of a line
		ends := []int{0}
		for k, b := range raw {
			if b == '\n' {
				ends = append(ends, k+1)
			}
		}
		at = ends[rnd.IntN(max(1, len(ends)-1))]
		raw, what = raw[:at], fmt.Sprintf("%s: cut at the end of a line, %d", name, at)
	case 5:
		clear(raw[at:min(len(raw), at+1+rnd.IntN(600))])
		what = fmt.Sprintf("%s: zeroed from %d", name, at)
	case 6:
		if clear(raw); rnd.IntN(4) == 0 {
			delete(content, name)
			return content, name + " deleted"
		}
		what = name + ": all zero"
	case 7:
		raw, what = nil, name+": empty"
	case 8: // one file, or some, are of before
		older := history[rnd.IntN(max(1, len(history)-1))]
		what = name + " as of before"
		for k, v := range older { // any order: each its own file
			if k == name || rnd.IntN(3) == 0 && !slices.Contains(alone, k) && !slices.Contains(alone, name) {
				content[k] = v
			}
		}
		return content, what
	case 9: // the last line, one bit
		if n := strings.LastIndexByte(strings.TrimSuffix(string(raw), "\n"), '\n') + 1; len(raw) > n {
			at = n + rnd.IntN(len(raw)-n)
			raw[at] ^= 1 << rnd.IntN(8)
		}
		what = fmt.Sprintf("%s: last line, a bit flipped at %d", name, at)
	case Whole:
		return maps.Clone(history[rnd.IntN(max(1, len(history)-1))]), "all as of before"
	}
	content[name] = raw
	return content, what
}
