package topo

import "fmt"

// Error is a request that cannot be accepted, in the caller's terms.
type Error struct {
	Field  string // the part of the request, such as mp[3]
	Limit  string // what would have been right
	Reason string
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason + ": want " + e.Limit }

func wrong(field, limit, format string, args ...any) error {
	return &Error{field, limit, fmt.Sprintf(format, args...)}
}

// What is accepted, all chosen.
const (
	MaxServers = 4096    // ten times the paper's largest shared cluster
	MaxDegree  = 64      // ports of a server: eight GPUs with eight each
	MaxDemands = 1 << 24 // all pairs of MaxServers
	MaxBytes   = 1 << 50 // in all, so that bytes times hops fit
	MaxMembers = 1 << 22 // of all groups
)

// Method is how rings are drawn.
type Method string

// The methods; Auto is Random where there is model-parallel traffic.
const (
	Auto    Method = ""
	Random  Method = "random"
	Totient Method = "totient"
)

// Group is servers that reduce among themselves. Bytes is what that puts on
// the network in all: a ring of k servers that reduces M bytes sends 2(k-1)M.
type Group struct {
	Servers []int
	Bytes   int64
}

// Demand is model-parallel traffic from one server to another.
type Demand struct {
	From, To int
	Bytes    int64
}

// Request is a job's traffic of one iteration, and what it may use.
type Request struct {
	Servers       int
	Degree        int  // interfaces of a server, each on a layer of its own
	Bidirectional bool // a link is both directions; Degree is then even
	AllReduce     []Group
	MP            []Demand
	Method        Method
	Seed          uint64
}

// Check says what of a request is not acceptable.
func (r *Request) Check() error {
	if r.Servers < 2 || r.Servers > MaxServers {
		return wrong("servers", fmt.Sprintf("2 to %d", MaxServers), "%d", r.Servers)
	}
	if r.Degree < 1 || r.Degree > MaxDegree {
		return wrong("degree", fmt.Sprintf("1 to %d, the ports of a server", MaxDegree), "%d", r.Degree)
	}
	if r.Bidirectional && r.Degree%2 != 0 {
		return wrong("degree", "an even number: a bidirectional ring takes two interfaces of each server", "%d", r.Degree)
	}
	if r.Method != Auto && r.Method != Random && r.Method != Totient {
		return wrong("method", "random or totient", "%q", r.Method)
	}
	if err := r.checkGroups(); err != nil {
		return err
	}
	if err := r.checkDemands(); err != nil {
		return err
	}
	return r.checkJoined()
}

func (r *Request) checkGroups() error {
	members, total := 0, int64(0)
	seen := make([]int, r.Servers)
	for g, group := range r.AllReduce {
		field := fmt.Sprintf("allreduce[%d]", g)
		if len(group.Servers) < 2 {
			return wrong(field+".group", "2 servers or more", "%d", len(group.Servers))
		}
		if members += len(group.Servers); members > MaxMembers {
			return wrong(field+".group", fmt.Sprintf("at most %d members in all groups", MaxMembers), "%d", members)
		}
		for i, s := range group.Servers {
			if s < 0 || s >= r.Servers {
				return wrong(fmt.Sprintf("%s.group[%d]", field, i), fmt.Sprintf("a server, 0 to %d", r.Servers-1), "%d", s)
			}
			if seen[s] == g+1 {
				return wrong(fmt.Sprintf("%s.group[%d]", field, i), "each server once", "%d is there twice", s)
			}
			seen[s] = g + 1
		}
		if group.Bytes < 1 || group.Bytes > MaxBytes {
			return wrong(field+".bytes", fmt.Sprintf("1 to %d", int64(MaxBytes)), "%d", group.Bytes)
		}
		if total += group.Bytes; total > MaxBytes {
			return wrong(field+".bytes", fmt.Sprintf("at most %d in all", int64(MaxBytes)), "%d", total)
		}
	}
	return nil
}

func (r *Request) checkDemands() error {
	if len(r.MP) > MaxDemands {
		return wrong("mp", fmt.Sprintf("at most %d pairs", MaxDemands), "%d", len(r.MP))
	}
	total := int64(0)
	for k, d := range r.MP {
		field := fmt.Sprintf("mp[%d]", k)
		for i, s := range []int{d.From, d.To} {
			if s < 0 || s >= r.Servers {
				return wrong(fmt.Sprintf("%s[%d]", field, i), fmt.Sprintf("a server, 0 to %d", r.Servers-1), "%d", s)
			}
		}
		if d.From == d.To {
			return wrong(field, "two servers", "%d sends to itself", d.From)
		}
		if d.Bytes < 1 || d.Bytes > MaxBytes {
			return wrong(field+"[2]", fmt.Sprintf("1 to %d bytes", int64(MaxBytes)), "%d", d.Bytes)
		}
		if total += d.Bytes; total > MaxBytes {
			return wrong(field+"[2]", fmt.Sprintf("at most %d bytes in all", int64(MaxBytes)), "%d", total)
		}
	}
	return nil
}

// checkJoined refuses servers that exchange nothing with the rest: they are
// another job, which gets a topology of its own.
func (r *Request) checkJoined() error {
	p := newParts(r.Servers)
	for _, g := range r.AllReduce {
		for _, s := range g.Servers[1:] {
			p.join(g.Servers[0], s)
		}
	}
	for _, d := range r.MP {
		p.join(d.From, d.To)
	}
	apart, first := 0, -1
	for s := range r.Servers {
		if p.of(s) != p.of(0) {
			if apart++; first < 0 {
				first = s
			}
		}
	}
	if apart > 0 {
		return wrong("allreduce", fmt.Sprintf("with mp, traffic that joins all %d servers", r.Servers),
			"disconnected: %d servers, the first of them %d, exchange nothing with server 0 or what it reaches", apart, first)
	}
	return nil
}

// parts is which servers hang together.
type parts []int

func newParts(n int) parts {
	p := make(parts, n)
	for i := range p {
		p[i] = i
	}
	return p
}

func (p parts) of(i int) int {
	for p[i] != i {
		p[i] = p[p[i]]
		i = p[i]
	}
	return i
}

func (p parts) join(a, b int) { p[p.of(a)] = p.of(b) }

// method resolves Auto to the method that fits the request.
func (r *Request) method() Method {
	switch {
	case r.Method != Auto:
		return r.Method
	case len(r.MP) > 0:
		return Random
	}
	return Totient
}

// totals are the bytes that groups reduce and that pairs send.
func (r *Request) totals() (reduced, sent int64) {
	for _, g := range r.AllReduce {
		reduced += g.Bytes
	}
	for _, d := range r.MP {
		sent += d.Bytes
	}
	return reduced, sent
}
