package gnmi

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	pb "github.com/openconfig/gnmi/proto/gnmi"

	"ringlight/proto"
)

// fabricModel is our own model, which is published.
//
//go:embed ringlight-fabric.yang
var fabricModel string

// platformModel is what is served of openconfig-platform, and of what augments it: that is
// named with its module.
//
//go:embed platform.yang.part
var platformModel string

// sonicModel and statesModel are what a planner knows of sonic-ocs and sonic-ocs-states.
//
//go:embed sonic.yang.part
var sonicModel string

//go:embed states.yang.part
var statesModel string

// schema is a node of a model: a container, a list with its key, a leaf.
type schema struct {
	name   string
	module string
	key    string // of a list
	kind   string // of a leaf, as YANG calls its type; "": a string
	// augments: what is above it is of another module.
	augments bool
	leaf     bool
	config   bool
	below    []*schema
}

func (s *schema) child(name string) *schema {
	if at := slices.IndexFunc(s.below, func(c *schema) bool { return c.name == name }); at >= 0 {
		return s.below[at]
	}
	return nil
}

// fits says whether a value, of JSON or as it came, is of a leaf's type.
func (s *schema) fits(v any) (ok bool) {
	switch {
	case s.kind == "leafref": // it is judged as what it refers to
		return true
	case s.kind == "boolean":
		_, ok = v.(bool)
	case strings.HasPrefix(s.kind, "uint"):
		_, ok = v.(json.Number)
	default:
		_, ok = v.(string)
	}
	return ok
}

// model is what one module gives to the tree.
type model struct {
	module, revision, organization string
	root                           *schema // its one container
	device                         bool    // it is of the targets switch-N
}

var (
	modelFabric = readModel(fabricModel)
	models      = []*model{modelFabric, readModel(platformModel), ofDevice(readModel(sonicModel)), ofDevice(readModel(statesModel))}
)

func ofDevice(m *model) *model {
	m.device = true
	return m
}

var yangToken = regexp.MustCompile(`"[^"]*"|[{};]|[^\s{};"]+`)

// readModel reads what counts here of a module: its containers, lists, leaves and keys.
// It takes the YANG of this package, not all there is: no uses, no augment, no comment.
func readModel(text string) *model {
	m := &model{}
	at := []*schema{{config: true}} // the last one is open; nil: of no interest
	words := []string{}
	for _, t := range yangToken.FindAllString(text, -1) {
		if t != "{" && t != "}" && t != ";" {
			words = append(words, strings.Trim(t, `"`))
			continue
		}
		open := at[len(at)-1]
		if t == "}" {
			at = at[:len(at)-1]
			continue
		}
		var s *schema
		if len(words) >= 2 {
			switch word, value := words[0], words[1]; word {
			case "module":
				m.module, open.module, s = value, value, open
			case "organization":
				m.organization = value
			case "revision":
				m.revision = value
			case "container", "list", "leaf", "leaf-list":
				s = &schema{name: value, leaf: strings.HasPrefix(word, "leaf"), config: open.config, module: open.module}
				if of, name, other := strings.Cut(value, ":"); other {
					s.module, s.name, s.augments = of, name, true
				}
				open.below = append(open.below, s)
			case "key":
				open.key = value
			case "type":
				if open != nil {
					open.kind = value
				}
			case "config":
				open.config = value == "true"
			}
		}
		if words = words[:0]; t == "{" {
			at = append(at, s)
		}
	}
	m.root = at[0].below[0]
	return m
}

// find is the model and its node that a path leads to; the models of nothing, for the root.
// Names may be * and keys absent: then all are meant, and the first is found.
func find(elems []*pb.PathElem) (*model, *schema, error) {
	if len(elems) == 0 {
		return nil, nil, nil
	}
	for _, m := range models {
		if n := elems[0].GetName(); n != m.root.name && n != "*" {
			continue
		}
		if s, err := m.root.walk(elems[1:], elems[0]); s != nil || elems[0].GetName() != "*" {
			return m, s, err
		}
	}
	return nil, nil, proto.Wrong("path", "/fabric or /components; of target switch-N /sonic-ocs or /sonic-ocs-states", "there is no /%.60s", elems[0].GetName())
}

func (s *schema) walk(rest []*pb.PathElem, at *pb.PathElem) (*schema, error) {
	for name := range at.GetKey() { // any order: one is enough
		if name != s.key {
			return nil, proto.Wrong("path", "key "+s.key, "%s has no key %.40q", s.name, name)
		}
	}
	if len(rest) == 0 {
		return s, nil
	}
	var err error
	var names []string
	for _, c := range s.below {
		names = append(names, c.name)
		if n := rest[0].GetName(); n == c.name || n == "*" {
			var found *schema
			if found, err = c.walk(rest[1:], rest[0]); found != nil {
				return found, nil
			}
		}
	}
	if err == nil {
		limit := strings.Join(names, ", ")
		if s.leaf {
			limit = "nothing below it"
		}
		err = proto.Wrong("path", limit, "%s has no %.40q", s.name, rest[0].GetName())
	}
	return nil, err
}
