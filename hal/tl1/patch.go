package tl1

import (
	"fmt"
	"strconv"
	"strings"

	"ringlight/hal"
)

// Boxes of the other maker have ports that are numbered, the inputs first, and
// patches that are active as soon as they are entered:
//
//	ENT-PATCH::1,17:tag:;    DLT-PATCH::1:tag:;    RTRV-PATCH:::tag:;  "1,17"
//	RTRV-NETYPE:::tag:;      "maker,model,type,version"
//	RTRV-PORT-PMON::1&&48:tag:;                    "1:1310.00,-12.34,4"
//
// of which the last gives wavelength, power and averaging. These are commands and
// replies as public drivers of such boxes send and parse them; the maker's own
// manual was not at hand.

// PatchNames are the ports of such a box.
func PatchNames(in, out int) Names {
	n := Names{}
	for i := range in + out {
		if name := strconv.Itoa(i + 1); i < in {
			n.In = append(n.In, name)
		} else {
			n.Out = append(n.Out, name)
		}
	}
	return n
}

// removing is the first step that takes a connection away.
func (c *Client) removing() clientStep {
	if c.cfg.Patch {
		return stepDelete
	}
	return stepCancel
}

// nextPatch is Next behind the login.
func (c *Client) nextPatch(dst []byte) []byte {
	switch c.step {
	case stepSystem:
		return fmt.Appendf(dst, "RTRV-NETYPE:::%d:;", c.tag)
	case stepDelete:
		return fmt.Appendf(dst, "DLT-PATCH::%s:%d:;", c.cfg.Names.In[c.remove[c.at].In], c.tag)
	case stepEnter:
		p := c.create[c.at]
		return fmt.Appendf(dst, "ENT-PATCH::%s,%s:%d:;", c.cfg.Names.In[p.In], c.cfg.Names.Out[p.Out], c.tag)
	case stepPower:
		return fmt.Appendf(dst, "RTRV-PORT-PMON::1&&%d:%d:;", c.state.In+c.state.Out, c.tag)
	}
	return fmt.Appendf(dst, "RTRV-PATCH:::%d:;", c.tag)
}

// parsePatches reads the reply to RTRV-PATCH. Nobody owns a patch.
func (n *Names) parsePatches(text []string, _ string) ([]hal.PortPair, error) {
	var lines []string
	for _, line := range text {
		in, out, ok := strings.Cut(line, ",")
		if !ok {
			return nil, bad("patch %.60q", line)
		}
		lines = append(lines, "SRCPORT="+strings.TrimSpace(in)+",DSTPORT="+strings.TrimSpace(out))
	}
	return n.parseMap(lines, "")
}

// patchPowers reads all meters at once.
func (c *Client) patchPowers(m Message) {
	powers := make([]int32, c.state.In+c.state.Out)
	if len(m.Text) != len(powers) {
		c.fail(bad("%d meters for %d ports", len(m.Text), len(powers)))
		return
	}
	for i, line := range m.Text {
		port, rest, _ := strings.Cut(line, ":")
		f := strings.Split(rest, ",")
		if port != c.portName(i) || len(f) < 2 {
			c.fail(bad("meter %.60q", line))
			return
		}
		v, ok := hal.ParseMilli(strings.TrimSpace(f[1]))
		if !ok {
			c.fail(bad("power %.20q", strings.TrimSpace(f[1])))
			return
		}
		powers[i] = v
	}
	c.state.Powers = powers
	c.step = stepDone
}
