package job

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/hbd"
	"ringlight/planner/hostlist"
	"ringlight/proto"
)

// Limits of a wish.
const (
	MaxID     = 64
	maxOwner  = 80 // chosen: slurm/ or kubernetes/ before a cluster's name
	maxLabels = 32 // chosen
	maxRings  = 4096
	maxSpares = 4096
	// maxHold bounds how long a place is kept. chosen: a week.
	maxHold = 7 * 24 * time.Hour
	// defaultHold: chosen, many times what the slowest optics need.
	defaultHold = 10 * time.Minute
	// MaxWish bounds a wish as it comes.
	MaxWish = proto.MaxPart
)

// Prefer is where a job's rings are to stand.
type Prefer string

const (
	Compact  Prefer = "compact"   // side by side
	Spread   Prefer = "spread"    // apart
	CrossToR Prefer = "cross_tor" // so that least traffic between rings leaves a ToR switch
)

// Policy says what is done where there is no room, or no spare.
type Policy string

const (
	Wait   Policy = "wait"   // for room, or for a node
	Shrink Policy = "shrink" // fewer rings than asked for, a smaller ring for one that lost a node
	Fail   Policy = "fail"   // refuse
)

// Wish is what somebody asks for: rings, or circuits of a core.
type Wish struct {
	TP      int    `json:"tp,omitempty"`    // GPUs of a ring
	Rings   int    `json:"rings,omitempty"` // absent: 1
	Prefer  Prefer `json:"prefer,omitempty"`
	Spares  int    `json:"spares,omitempty"`  // nodes kept beside the rings
	Nodes   []Name `json:"nodes,omitempty"`   // that alone it may have
	Exclude []Name `json:"exclude,omitempty"` // that it may not have
	// Ring is the number of a ring that stands on just those nodes: it gets that one, or none.
	Ring   proto.RingID `json:"ring,omitempty"`
	HoldMS int64        `json:"hold_ms,omitempty"` // a place is given back that has not become ready for so long
	Policy Policy       `json:"policy,omitempty"`
	// Owner is who may release or change the job, such as slurm/CLUSTER; absent: whoever
	// names no owner.
	Owner string `json:"owner,omitempty"`
	// Labels are words of whoever asks, for lists.
	Labels map[string]string `json:"labels,omitempty"`
	// Circuits is asked for in place of rings.
	Circuits *Circuits `json:"circuits,omitempty"`
}

// kind is the key of the requested resource.
func (w *Wish) kind() string {
	if w.Circuits != nil {
		return "circuits"
	}
	return "rings"
}

// String is a wish in short.
func (w *Wish) String() string {
	if w.Circuits == nil {
		return proto.Count(w.Rings, "ring") + " of " + proto.Count(w.TP, "GPU")
	}
	text, _ := json.Marshal(w.Circuits)
	return "circuits " + string(text)
}

// size is how many nodes a ring of it has.
func (w *Wish) size(f *fabric.Fabric) int {
	if w.Circuits != nil {
		return 0
	}
	return w.TP / f.GPUsPerNode
}

// Name is a node by its name or its number, or several as a list: n[001-064,070].
type Name string

// UnmarshalJSON takes a text or a number.
func (n *Name) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		*n = Name(s)
		return nil
	}
	id, err := strconv.ParseUint(string(b), 10, 32)
	if err != nil {
		return fmt.Errorf("want a node's name or number, got %.40s", b)
	}
	*n = Name(strconv.FormatUint(id, 10))
	return nil
}

// CheckID says what is wrong with a job's name.
func CheckID(id string) error {
	if !plain(id, MaxID, "._-") || id == "" || id == "." || id == ".." {
		return proto.Wrong("id", fmt.Sprintf("1 to %d letters, digits and . _ -", MaxID), "%.80q, %d characters", id, len(id))
	}
	return nil
}

// CheckOwner says what is wrong with an owner's name.
func CheckOwner(owner string) error {
	if !plain(owner, maxOwner, "._-/:@") {
		return proto.Wrong("owner", fmt.Sprintf("at most %d letters, digits and . _ - / : @", maxOwner), "%.80q, %d characters", owner, len(owner))
	}
	return nil
}

// plain: a text has at most so many letters, digits and characters of others.
func plain(text string, most int, others string) bool {
	return len(text) <= most && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(others, c)
	})
}

// badLabel is the first label that is not one, "" where all are.
func (w *Wish) badLabel() string {
	for _, name := range slices.Sorted(maps.Keys(w.Labels)) {
		if !plain(name, maxOwner, "._-/") || name == "" || !plain(w.Labels[name], maxOwner, "._-/:@") {
			return name + "=" + w.Labels[name]
		}
	}
	return ""
}

// Labelled tells whether a wish has all labels of a list: name=value, or a name alone
// for any value, with commas between.
func (w *Wish) Labelled(list string) bool {
	for want := range strings.SplitSeq(list, ",") {
		name, value, valued := strings.Cut(want, "=")
		if is, ok := w.Labels[name]; !ok || valued && is != value {
			return false
		}
	}
	return true
}

// parseWish reads a wish and fills in what it leaves out.
func parseWish(f *fabric.Fabric, text []byte) (*Wish, error) {
	if len(text) > MaxWish {
		return nil, proto.Wrong("body", fmt.Sprintf("at most %d bytes", MaxWish), "%d bytes", len(text))
	}
	var w Wish
	if err := proto.DecodeFile(text, &w); err != nil {
		field := "body"
		if x := (*proto.FileError)(nil); errors.As(err, &x) && x.Field != "" {
			field = x.Field
		}
		return nil, proto.Wrong(field, "the keys of a wish", "%v", err)
	}
	w.HoldMS, w.Policy = cmp.Or(w.HoldMS, defaultHold.Milliseconds()), cmp.Or(w.Policy, Wait)
	if w.Circuits == nil {
		w.Rings, w.Prefer = cmp.Or(w.Rings, 1), cmp.Or(w.Prefer, Compact)
	}
	return &w, w.check(f)
}

// check says what is wrong with a wish; what of a core only that knows.
func (w *Wish) check(f *fabric.Fabric) error {
	switch {
	case w.HoldMS < 1 || w.HoldMS > maxHold.Milliseconds():
		return proto.Wrong("hold_ms", fmt.Sprintf("1 to %d", maxHold.Milliseconds()), "%d", w.HoldMS)
	case !slices.Contains([]Policy{Wait, Shrink, Fail}, w.Policy):
		return proto.Wrong("policy", "wait, shrink or fail", "%.40q", string(w.Policy))
	case CheckOwner(w.Owner) != nil:
		return CheckOwner(w.Owner)
	case len(w.Labels) > maxLabels:
		return proto.Wrong("labels", fmt.Sprintf("at most %d", maxLabels), "%d", len(w.Labels))
	case w.badLabel() != "":
		return proto.Wrong("labels", fmt.Sprintf("names of 1 to %d letters, digits and . _ - /; values of at most %d of these and : @", maxOwner, maxOwner), "%.200q", w.badLabel())
	case w.Circuits != nil:
		return w.checkCircuits(f)
	}
	gpus, most := f.GPUsPerNode, min(f.Nodes, fabric.MaxGroupNodes)*f.GPUsPerNode
	switch {
	case f.Nodes == 0:
		return proto.Wrong("tp", "a fabric with nodes", "this one has switches alone")
	case w.TP < gpus || w.TP%gpus != 0 || w.TP > most:
		return proto.Wrong("tp", fmt.Sprintf("a multiple of gpus_per_node (%d) up to %d", gpus, most), "%d", w.TP)
	case w.Rings < 1 || w.Rings > maxRings:
		return proto.Wrong("rings", fmt.Sprintf("1 to %d", maxRings), "%d", w.Rings)
	case w.Spares < 0 || w.Spares > maxSpares:
		return proto.Wrong("spares", fmt.Sprintf("0 to %d", maxSpares), "%d", w.Spares)
	case !slices.Contains([]Prefer{Compact, Spread, CrossToR}, w.Prefer):
		return proto.Wrong("prefer", "compact, spread or cross_tor", "%.40q", string(w.Prefer))
	case w.Prefer == CrossToR && !f.KnowsToRs():
		return proto.Wrong("prefer", "compact or spread in a fabric that does not say tors or nodes_per_tor", "cross_tor")
	}
	only, err := findAll("nodes", "node", w.Nodes, f.Nodes, f.FindNode)
	if err != nil {
		return err
	}
	exclude, err := findAll("exclude", "node", w.Exclude, f.Nodes, f.FindNode)
	if err != nil {
		return err
	}
	if w.Ring != 0 && (w.Rings != 1 || w.Spares != 0 || len(only) != w.TP/gpus) {
		return proto.Wrong("ring", fmt.Sprintf("with one ring, no spares, and %s in nodes", proto.Count(w.TP/gpus, "node")), "ring %d with %s, %s and %s", w.Ring, proto.Count(w.Rings, "ring"), proto.Count(w.Spares, "spare"), proto.Count(len(only), "node"))
	}
	room := f.Nodes - len(exclude)
	if w.Nodes != nil {
		room = 0
		for _, n := range only {
			if _, out := slices.BinarySearch(exclude, n); !out {
				room++
			}
		}
	}
	if need := w.Rings*w.TP/gpus + w.Spares; need > room {
		return &proto.Error{Code: proto.Conflict, Field: "rings", Limit: fmt.Sprintf("%d of %d GPUs beside %s", max(0, room-w.Spares)*gpus/w.TP, w.TP, proto.Count(w.Spares, "spare")),
			Reason: fmt.Sprintf("%s and %s are %s, and there are %d that it may have", proto.Count(w.Rings, "ring"), proto.Count(w.Spares, "spare"), proto.Count(need, "node"), room)}
	}
	return nil
}

// findAll are the nodes or servers of a list, sorted.
func findAll[ID ~uint32](field, what string, names []Name, most int, find func(string) (ID, bool)) ([]ID, error) {
	if names == nil {
		return nil, nil
	}
	out := make([]ID, 0, len(names))
	for i, name := range names {
		hosts, err := hostlist.Parse(string(name), most)
		if err != nil || !strings.Contains(string(name), "[") {
			hosts = []string{string(name)} // no list: its name may be one that lists do not have
		}
		for _, host := range hosts {
			id, ok := find(host)
			if !ok {
				return nil, proto.Wrong(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("a %s's name, a list of them such as n[0-7], or 0 to %d", what, most-1), "no %s %.80q", what, host)
			}
			out = append(out, id)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// nodes are the lists of a wish that was checked, sorted.
func (w *Wish) nodes(f *fabric.Fabric) (only, exclude []proto.NodeID) {
	only, _ = findAll("", "", w.Nodes, f.Nodes, f.FindNode)
	exclude, _ = findAll("", "", w.Exclude, f.Nodes, f.FindNode)
	return only, exclude
}

// want is the wish in the rings' words, for so many rings.
func (w *Wish) want(f *fabric.Fabric, rings, spares int) hbd.Want {
	only, exclude := w.nodes(f)
	return hbd.Want{Size: w.TP / f.GPUsPerNode, Rings: rings, Spares: spares, Nodes: only, Exclude: exclude, Ring: w.Ring, Spread: w.Prefer == Spread, AtToR: w.Prefer == CrossToR}
}
