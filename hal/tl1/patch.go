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
//	OPR-PORT-SHUTTER::1&18:tag:; RLS-...   RTRV-PORT-SHUTTER::1&18:tag:;  "1:CLOSED"
//
// of which the meters give wavelength, power and averaging. These are commands and
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

// sayPatch is Say behind the login.
func (l *language) sayPatch(dst []byte, w hal.BoxWord) []byte {
	n := &l.cfg.Names
	switch w.Verb {
	case hal.BoxGreet:
		return fmt.Appendf(dst, "RTRV-NETYPE:::%d:;", l.tag)
	case hal.BoxRemove:
		return fmt.Appendf(dst, "DLT-PATCH::%s:%d:;", n.In[w.Pairs[0].In], l.tag)
	case hal.BoxCreate:
		return fmt.Appendf(dst, "ENT-PATCH::%s,%s:%d:;", n.In[w.Pairs[0].In], n.Out[w.Pairs[0].Out], l.tag)
	case hal.BoxPorts, hal.BoxBlock, hal.BoxFree:
		var names []string
		for _, p := range w.Ports {
			names = append(names, l.portName(p))
		}
		verb := [...]string{"RTRV", "OPR", "RLS"}[w.Verb-hal.BoxPorts]
		return fmt.Appendf(dst, "%s-PORT-SHUTTER::%s:%d:;", verb, strings.Join(names, "&"), l.tag)
	case hal.BoxMeter:
		return fmt.Appendf(dst, "RTRV-PORT-PMON::1&&%d:%d:;", len(n.In)+len(n.Out), l.tag)
	}
	return fmt.Appendf(dst, "RTRV-PATCH:::%d:;", l.tag)
}

// parsePatches reads the reply to RTRV-PATCH. Nobody owns a patch.
func (n *Names) parsePatches(text []string, s *hal.BoxState) error {
	var lines []string
	for _, line := range text {
		in, out, ok := strings.Cut(line, ",")
		if !ok {
			return bad("patch %.60q", line)
		}
		lines = append(lines, "SRCPORT="+strings.TrimSpace(in)+",DSTPORT="+strings.TrimSpace(out))
	}
	return n.parseMap(lines, "", s)
}

// patchPowers reads all meters at once.
func (l *language) patchPowers(text []string, ports int) (powers []int32, err error) {
	if len(text) != ports {
		return nil, bad("%d meters for %d ports", len(text), ports)
	}
	for i, line := range text {
		port, rest, _ := strings.Cut(line, ":")
		f := strings.Split(rest+",", ",")
		v, ok := hal.ParseMilli(strings.TrimSpace(f[1]))
		if port != l.portName(i) || !ok {
			return nil, bad("meter %.60q", line)
		}
		powers = append(powers, v)
	}
	return powers, nil
}
