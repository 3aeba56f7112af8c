package sonic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"unicode"
)

// Error is what a request is refused with: a status of HTTP, a tag of RFC 8040.
type Error struct {
	Status  int
	Tag     string
	Path    string
	Message string
}

func (e *Error) Error() string { return e.Message }

// Refuse makes an Error by its tag.
func Refuse(tag, path, format string, args ...any) *Error {
	status := map[string]int{"access-denied": http.StatusForbidden, "in-use": http.StatusConflict, "data-missing": http.StatusNotFound,
		"operation-not-supported": http.StatusMethodNotAllowed, "too-big": http.StatusRequestEntityTooLarge, "operation-failed": http.StatusInternalServerError}[tag]
	if status == 0 {
		status = http.StatusBadRequest
	}
	return &Error{Status: status, Tag: tag, Path: path, Message: fmt.Sprintf(format, args...)}
}

// ErrorReply is an error as RESTCONF has it.
func ErrorReply(err error) (status int, body []byte) {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = Refuse("operation-failed", "", "%v", err)
	}
	var out restErrors
	out.Errors.List = []restError{{"application", e.Tag, e.Path, e.Message}}
	body, _ = json.Marshal(out) // strings always encode
	return e.Status, body
}

// decode reads a document whole, with nothing that it does not know.
func decode[T any](body []byte) (v T, err error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err = d.Decode(&v); err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = errors.New("data follows the end of the JSON")
		}
	}
	if err == nil && hasNull(body) {
		return v, Refuse("invalid-value", "", "the document: a null: want a value, or what has none left out")
	}
	if err == nil {
		return v, nil
	}
	tag := "malformed-message"
	if misfit, ok := err.(*json.UnmarshalTypeError); ok {
		want := map[reflect.Kind]string{reflect.String: "string", reflect.Slice: "list"}[misfit.Type.Kind()]
		return v, Refuse("invalid-value", "", "the document: %q is of the type %s: want %s", misfit.Field, misfit.Value, cmp.Or(want, "object"))
	} else if strings.Contains(err.Error(), "unknown field") {
		tag = "unknown-element"
	}
	return v, Refuse(tag, "", "the document: %s", strings.TrimPrefix(err.Error(), "json: "))
}

// hasNull says whether a document, which is one, has a null: of no type here.
func hasNull(body []byte) bool {
	for d := json.NewDecoder(bytes.NewReader(body)); ; {
		if t, err := d.Token(); err != nil || t == nil {
			return err == nil
		}
	}
}

// inList are the entries of a container's document.
func inList[T any](c *container, body []byte) ([]T, error) {
	doc, err := decode[map[string]map[string][]T](body)
	if err != nil {
		return nil, err
	}
	list, ok := doc[c.prefix()+c.name][c.list]
	if !ok || len(doc) != 1 || len(doc[c.prefix()+c.name]) != 1 {
		return nil, Refuse("missing-element", c.path(), "want %q with %q in it, and nothing else", c.prefix()+c.name, c.list)
	}
	return list, nil
}

func (s *Server) bulkUpdate(body []byte) (any, error) {
	doc, err := decode[struct {
		Input *bulk `json:"sonic-ocs:input"`
	}](body)
	if err != nil {
		return nil, err
	}
	if doc.Input == nil {
		return nil, Refuse("missing-element", "", `want "sonic-ocs:input"`)
	}
	v := s.Box.View()
	result, err := s.update(&v, doc.Input.Delete, doc.Input.Add)
	return map[string]any{"sonic-ocs:output": result}, err
}

// Update takes connections away and makes others, as a bulk update does, for who is in this
// process. The error of what is refused is an *Error.
func (s *Server) Update(remove []string, add []Connection) error {
	v := s.Box.View()
	_, err := s.update(&v, remove, add)
	return err
}

// update checks all before anything is done.
func (s *Server) update(v *View, remove []string, add []Connection) (result bulkResult, err error) {
	path := "/" + module + "/OCS_CROSS_CONNECT"
	seen := map[string]string{}
	for _, c := range add {
		a, b, err := c.Ports()
		switch {
		case err != nil:
			return result, Refuse("invalid-value", path, "%v", err)
		case a >= len(v.Ports[0]) || b >= len(v.Ports[1]):
			return result, Refuse("invalid-value", path, "connection %s: this switch has ports 1A to %dA and 1B to %dB", c.ID, len(v.Ports[0]), len(v.Ports[1]))
		}
		for _, name := range [...]string{portName(0, a), portName(1, b)} {
			if other, twice := seen[name]; twice {
				return result, Refuse("invalid-value", path, "port %s is in %s and in %s", name, other, c.ID)
			}
			seen[name] = c.ID
		}
	}
	for i, key := range remove {
		if slices.ContainsFunc(v.Paths, func(p Path) bool { return p.ID == key }) && !slices.Contains(remove[:i], key) {
			result.Deleted++
		}
	}
	result.Failed, err = s.Box.Update(remove, add)
	result.Added = len(add)
	for _, c := range add {
		if slices.Contains(result.Failed, c.ID) {
			result.Added--
		}
	}
	return result, err
}

// setPorts checks all before anything is done.
func (s *Server) setPorts(v *View, c *container, list []portConfig) error {
	var set []PortSetting
	for i := range list {
		p := &list[i]
		side, port, ok := parsePort(p.ID)
		if p.ConfigStatus != "" && p.State != "" {
			return Refuse("invalid-value", c.path(), "port %s: config_status and state are the same; want one", p.ID)
		}
		word := p.ConfigStatus + p.State
		switch {
		case !ok || port >= len(v.Ports[side]):
			return Refuse("invalid-value", c.path(), "port %.20q: this switch has ports 1A to %dA and 1B to %dB", p.ID, len(v.Ports[0]), len(v.Ports[1]))
		case word != "" && word != normal && word != forceBlocked && word != poweredOff:
			return Refuse("invalid-value", c.path(), "port %s: %.40q: want normal, force_blocked or powered_off", p.ID, word)
		case slices.ContainsFunc(list[:i], func(q portConfig) bool { return q.ID == p.ID }):
			return Refuse("invalid-value", c.path(), "port %s: it is there twice", p.ID)
		case p.Label != nil && strings.ContainsFunc(*p.Label, unicode.IsControl):
			return Refuse("invalid-value", c.path(), "port %s: a label of %.40q: want no control characters", p.ID, *p.Label)
		case p.Label != nil && len(*p.Label) > MaxLabel:
			return Refuse("invalid-value", c.path(), "port %s: a label of %d bytes: want at most %d", p.ID, len(*p.Label), MaxLabel)
		}
		set = append(set, PortSetting{Side: side, Port: port, Label: p.Label})
		if word != "" {
			set[i].Override = &word
		}
	}
	return s.Box.SetPorts(set)
}
