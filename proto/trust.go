package proto

import (
	"slices"
	"strconv"
	"strings"
)

// PublicKey is an Ed25519 key.
type PublicKey [32]byte

// Role is what the holder of a key may do.
type Role uint8

const (
	RoleNode    Role = iota + 1 // speaks for one node or switch
	RolePlanner                 // plans
	RoleView                    // an operator who asks
	RoleOperate                 // ... and takes out, lets in, holds, moves one node or side
	RoleAdmin                   // ... and changes jobs and the fabric
)

var roleNames = [...]string{"none", "node", "planner", "view", "operate", "admin"}

func (r Role) String() string { return NameOf(roleNames[:], uint8(r)) }

// OperatorRole reads the name of an operator's role.
func OperatorRole(s string) (Role, bool) {
	i := slices.Index(roleNames[RoleView:], s)
	return RoleView + Role(i), i >= 0
}

// Needs is the least role that a question takes. What would be is to be seen by
// whoever sees what is; a question that is not known takes the highest.
func (q *OpRequest) Needs() Role {
	switch q.Noun {
	case NounFabric, NounNodes, NounNode, NounRings, NounRing, NounWhy, NounEvents, NounCore, NounCircuits, NounJobs, NounJob, NounTables, NounStatus, NounAlarms, NounLinks, NounDescription, NounTrace, NounRolloutStatus, NounAudit, NounBins:
		return RoleView
	case NounDrain, NounUndrain, NounRequest, NounQuarantine, NounQualify:
		if q.DryRun {
			return RoleView
		}
		return RoleOperate
	case NounHostFault, NounHostOK, NounClear, NounAck, NounLift, NounClearFibre, NounConnect:
		return RoleOperate
	case NounApply, NounFlip, NounEdit, NounRollout:
		if q.DryRun {
			return RoleView
		}
	}
	return RoleAdmin
}

// Limits of a trust document.
const (
	MaxTrustFabric = 48 // characters of a fabric's name: f/planner/name is the common name of a certificate, which has 64
	MaxIssuers     = 4  // chosen: one, and one that takes its place; two of a site with two roots
	MaxFormer      = 64 // chosen: a change of issuer twice a day, for as long as a node's certificate lasts
	MaxEnded       = 1024
	MaxTrustKeys   = 512 // chosen: planners and operators, two keys each while one replaces the other; they fit MaxPayload
	maxTrustName   = 64  // X.509's limit of a common name
	maxTrustNodes  = 1e6 // chosen: far above any fabric
)

// TrustedKey is a key and who holds it.
type TrustedKey struct {
	Public PublicKey `cbor:"1,keyasint"`
	Name   string    `cbor:"2,keyasint"` // as in the holder's certificate: f1/op/alice
	Role   Role      `cbor:"3,keyasint"`
}

// EndedKeys are those of a node that issuers vouched for before an edition, and tokens
// of before.
type EndedKeys struct {
	Node    NodeID `cbor:"1,keyasint"`
	Edition uint64 `cbor:"2,keyasint"`
}

// Ends is the least edition of what is vouched for a node that still counts.
func (m *Trust) Ends(n NodeID) uint64 {
	for _, e := range m.Ended {
		if e.Node == n {
			return e.Edition
		}
	}
	return 0
}

// Trust says which keys count in a fabric. It knows no time: of two the higher
// edition holds, and what it does not name is not trusted.
type Trust struct {
	Version uint8        `cbor:"0,keyasint"`
	Fabric  string       `cbor:"1,keyasint"`
	Edition uint64       `cbor:"2,keyasint"`
	Root    PublicKey    `cbor:"3,keyasint"` // whose holder alone writes the next one
	Keys    []TrustedKey `cbor:"4,keyasint" max:"512"`
	// The keys of nodes are a list of their own, which only planners need: how
	// many, and a digest of them.
	NodeKeys uint32 `cbor:"5,keyasint,omitempty"`
	Nodes    Digest `cbor:"6,keyasint"`
	// Issuers vouch for further keys of nodes, and for nothing else: see CertAnswer.
	Issuers []PublicKey `cbor:"7,keyasint,omitempty" max:"4"`
	// Ended are the nodes for which only what was vouched since some edition counts.
	Ended []EndedKeys `cbor:"8,keyasint,omitempty" max:"1024"`
	// Renew: what was vouched before this edition is to be replaced, and counts until then.
	Renew uint64 `cbor:"9,keyasint,omitempty"`
	// Former issuers vouch for nothing more. What they vouched for counts until it is
	// replaced, for nodes that were away meanwhile.
	Former []PublicKey `cbor:"10,keyasint,omitempty" max:"64"`
}

// Validate checks names, roles and that no key stands twice.
func (m Trust) Validate() error {
	r := rules{}
	r.version(m.Version)
	if err := CheckName("fabric", m.Fabric); err != nil && r.err == nil {
		r.err = AsError(err)
	}
	r.within("fabric", 1, MaxTrustFabric, uint64(len(m.Fabric)))
	r.within("edition", 1, MaxCount, m.Edition)
	if m.Root == (PublicKey{}) {
		r.broken("root", "a key", "none")
	}
	r.within("node_keys", 0, maxTrustNodes, uint64(m.NodeKeys))
	seen := map[PublicKey]bool{m.Root: true}
	for i := range m.Keys {
		k := &m.Keys[i]
		r.element("keys", i)
		n, err := ParseHolder(k.Name)
		switch {
		case err != nil:
			r.broken("name", err.(*Error).Limit, "%q", k.Name)
		case n.Fabric != m.Fabric:
			r.broken("name", "of fabric "+m.Fabric, "%q", k.Name)
		case n.Kind == HolderNode || n.Kind == HolderEnrol || (n.Kind == HolderPlanner) != (k.Role == RolePlanner) || k.Role < RolePlanner || k.Role > RoleAdmin:
			r.broken("role", "planner for a planner, view, operate or admin for an operator", "%v of %s", k.Role, k.Name)
		case seen[k.Public]:
			r.broken("public", "each key once", "it stands twice")
		}
		seen[k.Public] = true
	}
	for i, k := range slices.Concat(m.Issuers, m.Former) {
		r.element("issuers", i)
		if seen[k] {
			r.broken("public", "each key once", "it stands twice")
		}
		seen[k] = true
	}
	for i := range m.Ended {
		r.element("ended", i)
		r.within("edition", 1, m.Edition, m.Ended[i].Edition)
	}
	r.element("", 0)
	r.within("renew", 0, m.Edition, m.Renew)
	return r.result()
}

// HolderKind is the middle of a holder's name.
type HolderKind string

const (
	HolderNode     HolderKind = "n"
	HolderPlanner  HolderKind = "planner"
	HolderOperator HolderKind = "op"
	HolderEnrol    HolderKind = "enrol" // of a token: it may ask for a certificate of a node
)

// Holder is the name of a key's holder: what its topics begin with.
type Holder struct {
	Fabric string
	Kind   HolderKind
	ID     string // of a node its number
	Node   NodeID // of HolderNode and HolderEnrol
}

func (h Holder) String() string { return h.Fabric + "/" + string(h.Kind) + "/" + h.ID }

// ParseHolder reads f1/n/7, f1/planner/a or f1/op/alice.
func ParseHolder(s string) (Holder, error) {
	bad := func() (Holder, error) {
		return Holder{}, Wrong("name", "FABRIC/n/NUMBER, FABRIC/planner/NAME or FABRIC/op/NAME of a-z 0-9 -, at most 64 characters", "%q", s)
	}
	part := strings.Split(s, "/")
	if len(part) != 3 || len(s) > maxTrustName || len(part[0]) > MaxTrustFabric || CheckName("", part[0]) != nil {
		return bad()
	}
	h := Holder{Fabric: part[0], Kind: HolderKind(part[1]), ID: part[2]}
	switch h.Kind {
	case HolderNode, HolderEnrol:
		n, ok := parseID(h.ID)
		if h.Node = NodeID(n); !ok {
			return bad()
		}
	case HolderPlanner, HolderOperator:
		if CheckName("", h.ID) != nil {
			return bad()
		}
	default:
		return bad()
	}
	return h, nil
}

// NodeHolder is the name of a node's key holder.
func (t Topics) NodeHolder(n NodeID) Holder {
	return Holder{Fabric: t.Fabric, Kind: HolderNode, ID: strconv.FormatUint(uint64(n), 10), Node: n}
}

// Speaks reports whether a holder in a role may speak on a topic at all. What
// is asked there may take more: see OpRequest.Needs.
func (h Holder) Speaks(role Role, topic Topic) bool {
	if topic.Fabric != h.Fabric {
		return false
	}
	switch topic.Kind {
	case TopicPlanner, TopicDesired, TopicCommand, TopicDecision, TopicReply:
		return role == RolePlanner
	case TopicAck, TopicReported, TopicPresence, TopicHealth, TopicEvent, TopicCSR:
		return role == RoleNode && h.Kind == HolderNode && topic.Node == h.Node
	case TopicRequest:
		return role >= RoleView && h.Kind == HolderOperator && topic.Client == h.ID
	}
	return false
}
