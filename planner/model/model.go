package model

import (
	"embed"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ringlight/proto"
)

// Error is a model or cluster that cannot be accepted, in the caller's terms.
type Error struct {
	Field  string // such as layers[3].inputs
	Limit  string // what would have been right
	Reason string
}

func (e *Error) Error() string { return e.Field + ": " + e.Reason + ": want " + e.Limit }

func wrong(field, limit, format string, args ...any) error {
	return &Error{field, limit, fmt.Sprintf(format, args...)}
}

// What is accepted, all chosen: above any model of the literature, and so that
// bytes of an iteration fit.
const (
	maxSize   = 1 << 20 // a dimension
	maxCount  = 4096    // layers or tables alike, and maxUnits in all
	maxUnits  = 1 << 14
	maxRows   = 1 << 40
	maxBatch  = 1 << 20
	maxWeight = 1 << 42 // values of one layer or table
)

// Kinds of layers.
const (
	Dense   = "dense"   // inputs x outputs
	Conv    = "conv"    // a kernel of so many values square, inputs to outputs, giving side x side
	Block   = "block"   // a transformer's: attention and two layers of four times hidden
	Experts = "experts" // the same with so many pairs of layers, of which each token visits active
)

// Layer is so many layers alike.
type Layer struct {
	Kind     string `json:"kind"`
	Count    int    `json:"count"`
	Inputs   int    `json:"inputs,omitempty"`
	Outputs  int    `json:"outputs,omitempty"`
	Kernel   int    `json:"kernel,omitempty"`
	Side     int    `json:"side,omitempty"`
	Hidden   int    `json:"hidden,omitempty"`
	Sequence int    `json:"sequence,omitempty"`
	Experts  int    `json:"experts,omitempty"`
	Active   int    `json:"active,omitempty"`
}

// Embedding is so many tables alike.
type Embedding struct {
	Count     int   `json:"count"`
	Rows      int64 `json:"rows"`
	Dimension int   `json:"dimension"`
}

// Model is what is trained.
type Model struct {
	Name          string      `json:"name"`
	BatchPerGPU   int         `json:"batch_per_gpu"`
	BytesPerValue int         `json:"bytes_per_value"`
	Layers        []Layer     `json:"layers"`
	Embeddings    []Embedding `json:"embeddings,omitempty"`
}

//go:embed models/*.json
var shipped embed.FS

// Names are the models that are shipped.
func Names() []string {
	files, err := shipped.ReadDir("models")
	if err != nil {
		panic("model: " + err.Error())
	}
	var out []string
	for _, f := range files {
		out = append(out, strings.TrimSuffix(f.Name(), ".json"))
	}
	return out
}

// Named is a shipped model, nil if there is none of that name.
func Named(name string) *Model {
	if !slices.Contains(Names(), name) {
		return nil
	}
	data, err := shipped.ReadFile("models/" + name + ".json")
	if err == nil {
		var m *Model
		if m, err = Read(data); err == nil {
			return m
		}
	}
	panic("model: " + name + ": " + err.Error())
}

// Read reads a model strictly.
func Read(data []byte) (*Model, error) {
	m := new(Model)
	if err := proto.DecodeFile(data, m); err != nil {
		if misfit, ok := errors.AsType[*proto.FileError](err); ok && misfit.Field != "" && misfit.Want != "" {
			return nil, wrong(misfit.Field, misfit.Want, "%s on line %d", misfit.Wrong, misfit.Line)
		}
		return nil, wrong("model", "one JSON object with name, batch_per_gpu, bytes_per_value, layers and embeddings", "%v", err)
	}
	return m, m.Validate()
}

// Validate checks the sizes.
func (m *Model) Validate() error {
	switch {
	case m.BatchPerGPU < 1 || m.BatchPerGPU > maxBatch:
		return wrong("batch_per_gpu", fmt.Sprintf("1 to %d", maxBatch), "%d", m.BatchPerGPU)
	case m.BytesPerValue < 1 || m.BytesPerValue > 8:
		return wrong("bytes_per_value", "1 to 8", "%d", m.BytesPerValue)
	case len(m.Layers) == 0:
		return wrong("layers", "one layer or more", "there is none")
	}
	all := 0
	for i, l := range m.Layers {
		if err := l.validate(fmt.Sprintf("layers[%d]", i)); err != nil {
			return err
		}
		all += l.Count
	}
	for i, e := range m.Embeddings {
		at := fmt.Sprintf("embeddings[%d]", i)
		if err := between(at+".count", int64(e.Count), maxCount); err != nil {
			return err
		}
		if err := between(at+".rows", e.Rows, maxRows); err != nil {
			return err
		}
		if err := between(at+".dimension", int64(e.Dimension), maxSize); err != nil {
			return err
		}
		if e.Rows > maxWeight/int64(e.Dimension) {
			return wrong(at+".rows", fmt.Sprintf("rows x dimension of at most %d", int64(maxWeight)), "%d", e.Rows)
		}
		all += e.Count
	}
	if all > maxUnits {
		return wrong("layers", fmt.Sprintf("at most %d layers and tables", maxUnits), "%d", all)
	}
	return nil
}

func between(field string, v, most int64) error {
	if v < 1 || v > most {
		return wrong(field, fmt.Sprintf("1 to %d", most), "%d", v)
	}
	return nil
}

// validate wants just the keys of the layer's kind.
func (l Layer) validate(at string) error {
	type key struct {
		name string
		v    int
	}
	size := []key{{"inputs", l.Inputs}, {"outputs", l.Outputs}, {"kernel", l.Kernel}, {"side", l.Side},
		{"hidden", l.Hidden}, {"sequence", l.Sequence}, {"experts", l.Experts}, {"active", l.Active}}
	has, ok := map[string][]string{
		Dense: {"inputs", "outputs"}, Conv: {"inputs", "outputs", "kernel", "side"},
		Block: {"hidden", "sequence"}, Experts: {"hidden", "sequence", "experts", "active"},
	}[l.Kind]
	if !ok {
		return wrong(at+".kind", "dense, conv, block or experts", "%q", l.Kind)
	}
	if err := between(at+".count", int64(l.Count), maxCount); err != nil {
		return err
	}
	for _, k := range size {
		switch {
		case slices.Contains(has, k.name):
			if err := between(at+"."+k.name, int64(k.v), maxSize); err != nil {
				return err
			}
		case k.v != 0:
			return wrong(at+"."+k.name, "only "+strings.Join(has, ", ")+" of a layer that is "+l.Kind, "%d", k.v)
		}
	}
	if l.Kind == Experts && l.Active > l.Experts {
		return wrong(at+".active", fmt.Sprintf("at most experts, %d", l.Experts), "%d", l.Active)
	}
	if u := l.unit(); u.values < 1 || u.values > maxWeight {
		return wrong(at, fmt.Sprintf("at most %d values", int64(maxWeight)), "more")
	}
	return nil
}

// unit is one layer as far as its division is concerned.
type unit struct {
	kind    string
	values  int64 // weights
	experts int64 // of them in experts
	flop    int64 // forward, of one sample
	width   int64 // values that come in for one sample
	active  int64 // experts that each of them visits
	parts   int64 // layers that a GPU starts one by one
}

func (l Layer) unit() unit {
	in, out, h, seq := int64(l.Inputs), int64(l.Outputs), int64(l.Hidden), int64(l.Sequence)
	switch l.Kind {
	case Dense:
		return unit{kind: l.Kind, values: in * out, flop: 2 * in * out, width: in, parts: 1}
	case Conv:
		k, side := int64(l.Kernel), int64(l.Side)
		return unit{kind: l.Kind, values: product(k, k, in, out), flop: product(2, k, k, in, out, side, side), width: product(in, side, side), parts: 1}
	case Block:
		return unit{kind: l.Kind, values: 12 * h * h, flop: product(seq, 24*h+4*seq, h), width: seq * h, parts: 6}
	}
	e, active := int64(l.Experts), int64(l.Active)
	return unit{kind: l.Kind, values: 4*h*h + product(8, h, h, e), experts: product(8, h, h, e),
		flop: product(seq, 8*h+4*seq+16*h*active, h), width: seq * h, active: active, parts: 6}
}

// product stops where nothing that is accepted gets.
func product(factors ...int64) int64 {
	const most = 1 << 60
	p := int64(1)
	for _, f := range factors {
		if f > 0 && p > most/f {
			return most
		}
		p *= f
	}
	return p
}

// units are the layers, each with its repeats expanded.
func (m *Model) units() []unit {
	var out []unit
	for _, l := range m.Layers {
		for range l.Count {
			out = append(out, l.unit())
		}
	}
	return out
}

// tables are the bytes of each table, and of what it gives for one sample.
func (m *Model) tables() (size, row []int64) {
	for _, e := range m.Embeddings {
		for range e.Count {
			row = append(row, int64(e.Dimension*m.BytesPerValue))
			size = append(size, e.Rows*int64(e.Dimension*m.BytesPerValue))
		}
	}
	return size, row
}
