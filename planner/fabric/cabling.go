package fabric

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"ringlight/proto"
)

// Columns of a cabling sheet, in the order of a port and its peer. fibre is the
// label on it, crossed is yes where it joins upper half to upper half.
var cablingColumns = []string{"node", "bundle", "port", "peer", "peer_bundle", "peer_port", "fibre", "crossed"}

// neededColumns are those that no sheet may lack.
const neededColumns = 6

// Recable makes a description with the fibres of a cabling sheet: CSV whose
// first line names the columns, in any order. Nodes are named by number or by
// name; ports are 1 and 2, or external1 and external2. A fibre may be listed
// from both of its ends. Everything that is wrong is named by line and column,
// and then by what the description asks of its fibres.
func (f *Fabric) Recable(sheet []byte) (*Fabric, error) {
	g := *f
	fibres, err := g.readCabling(sheet)
	if err != nil {
		return nil, err
	}
	g.Fibres = fibres
	if err := g.Validate(); err != nil {
		return nil, err
	}
	g.connect()
	return &g, nil
}

// cabling is a cabling sheet while it is read.
type cabling struct {
	f    *Fabric
	at   map[string]int // column's place in a line
	line int
	row  []string
	errs []error
}

func (f *Fabric) readCabling(sheet []byte) ([]Fibre, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(sheet, []byte("\ufeff")))) // spreadsheets write one
	r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = '#', -1, true
	c := &cabling{f: f, at: map[string]int{}}
	head, err := r.Read()
	if err != nil {
		return nil, wrong("cabling", "a first line that names the columns "+strings.Join(cablingColumns, ","), "%v", err)
	}
	if err := c.columns(head); err != nil {
		return nil, err
	}
	var fibres []Fibre
	type listed struct{ line, fibre int }
	ports := map[Port]listed{}
	for len(c.errs) < maxErrors {
		c.row, err = r.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			c.errs = append(c.errs, wrong("cabling", "CSV", "%v", err)) // names the line itself
			break
		}
		c.line, _ = r.FieldPos(0)
		x, ok := c.fibre(len(head))
		if !ok {
			continue
		}
		a, b := ports[x.A], ports[x.B]
		if a.line > 0 && a == b && (x.A != fibres[a.fibre].A || x.B != fibres[a.fibre].B) && same(x, fibres[a.fibre]) {
			continue // from its other end
		}
		if a.line > 0 {
			c.wrong("port", "one fibre a port", "port %s is on line %d already", x.A, a.line)
		}
		if b.line > 0 {
			c.wrong("peer_port", "one fibre a port", "port %s is on line %d already", x.B, b.line)
		}
		ports[x.A], ports[x.B] = listed{c.line, len(fibres)}, listed{c.line, len(fibres)}
		fibres = append(fibres, x)
	}
	return fibres, errors.Join(c.errs...)
}

// same: both join the same ports in the same way; the label is for people.
func same(x, y Fibre) bool {
	return x.Crossed == y.Crossed && (x.A == y.A && x.B == y.B || x.A == y.B && x.B == y.A)
}

func (c *cabling) columns(head []string) error {
	for i, name := range head {
		name = strings.ToLower(strings.TrimSpace(name))
		if _, twice := c.at[name]; twice || !slices.Contains(cablingColumns, name) {
			return wrong("cabling line 1", "each of "+strings.Join(cablingColumns, ",")+" once", "column %.40q", name)
		}
		c.at[name] = i
	}
	for _, name := range cablingColumns[:neededColumns] {
		if _, ok := c.at[name]; !ok {
			return wrong("cabling line 1", "the columns "+strings.Join(cablingColumns[:neededColumns], ","), "no column %s", name)
		}
	}
	return nil
}

func (c *cabling) wrong(column, limit, format string, args ...any) {
	c.errs = append(c.errs, wrong(fmt.Sprintf("cabling line %d %s", c.line, column), limit, format, args...))
}

// cell is what a line has in a column.
func (c *cabling) cell(column string) string {
	if at, ok := c.at[column]; ok && at < len(c.row) {
		return strings.TrimSpace(c.row[at])
	}
	return ""
}

// fibre reads a line.
func (c *cabling) fibre(columns int) (x Fibre, ok bool) {
	before := len(c.errs)
	if len(c.row) != columns {
		c.wrong("columns", fmt.Sprintf("%d, as the first line has", columns), "%d", len(c.row))
		return x, false
	}
	x.A, x.B = c.port(""), c.port("peer_")
	if x.ID = c.cell("fibre"); x.ID != "" && !validLabel(x.ID) {
		c.wrong("fibre", "1 to 64 letters, digits and . _ - /", "%.80q", x.ID)
	}
	switch text := strings.ToLower(c.cell("crossed")); text {
	case "yes", "true", "1":
		x.Crossed = true
	case "no", "false", "0", "":
	default:
		c.wrong("crossed", "yes or no", "%.40q", text)
	}
	if len(c.errs) == before && x.A.Node == x.B.Node {
		c.wrong("peer", "another node", "node %d to itself", x.A.Node)
	}
	return x, len(c.errs) == before
}

// port reads one end: of the columns node, bundle and port, or of the peer's.
func (c *cabling) port(of string) (p Port) {
	name := of + "node"
	if of != "" {
		name = "peer"
	}
	var known bool
	if p.Node, known = c.f.FindNode(c.cell(name)); !known {
		limit := fmt.Sprintf("a number from 0 to %d", c.f.Nodes-1)
		if len(c.f.NodeNames) > 0 {
			limit += " or one of node_names"
		}
		c.wrong(name, limit, "%.80q", c.cell(name))
	}
	bundle, err := strconv.Atoi(c.cell(of + "bundle"))
	if err != nil || bundle < 0 || bundle >= c.f.Bundles {
		c.wrong(of+"bundle", fmt.Sprintf("0 to %d", c.f.Bundles-1), "%.40q", c.cell(of+"bundle"))
	}
	p.Bundle = proto.BundleID(bundle)
	switch c.cell(of + "port") {
	case "1", "external1":
		p.Path = proto.External1
	case "2", "external2":
		p.Path = proto.External2
	default:
		c.wrong(of+"port", "1 or 2", "%.40q", c.cell(of+"port"))
	}
	return p
}

// Cabling writes the fibres as a sheet that Recable reads.
func (f *Fabric) Cabling() []byte {
	var out bytes.Buffer
	w := csv.NewWriter(&out)
	row := func(cells ...string) { _ = w.Write(cells) } // a buffer takes everything
	name := func(id proto.NodeID) string {
		if s := f.NodeName(id); s != "" {
			return s
		}
		return fmt.Sprint(id)
	}
	row(cablingColumns...)
	for _, x := range f.AllFibres() {
		crossed := ""
		if x.Crossed {
			crossed = "yes"
		}
		row(name(x.A.Node), fmt.Sprint(x.A.Bundle), fmt.Sprint(1+int(x.A.Path-proto.External1)),
			name(x.B.Node), fmt.Sprint(x.B.Bundle), fmt.Sprint(1+int(x.B.Path-proto.External1)), x.ID, crossed)
	}
	w.Flush()
	return out.Bytes()
}
