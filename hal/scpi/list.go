package scpi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"ringlight/hal"
)

// MaxPorts bounds a port list: both sides of the largest switch of the kind.
const MaxPorts = 1024

// MaxLine bounds a line: the whole map of a switch of MaxPorts.
const MaxLine = 16 << 10

// appendList appends "(@1,2,3)" of ports counted from 0.
func appendList(dst []byte, ports []int) []byte {
	dst = append(dst, "(@"...)
	for i, p := range ports {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(p)+1, 10)
	}
	return append(dst, ')')
}

// appendPairs appends "(@1,2),(@17,18)" for a switch with so many inputs.
func appendPairs(dst []byte, pairs []hal.PortPair, inputs int) []byte {
	in, out := make([]int, len(pairs)), make([]int, len(pairs))
	for i, p := range pairs {
		in[i], out[i] = int(p.In), inputs+int(p.Out)
	}
	dst = append(appendList(dst, in), ',')
	return appendList(dst, out)
}

func bad(format string, args ...any) error {
	return fmt.Errorf("scpi: %s: %w", fmt.Sprintf(format, args...), hal.ErrBoxReply)
}

// parseList reads one list from the beginning of s, ranges ("1:4") included,
// and returns what follows it.
func parseList(s string) (ports []int, rest string, err error) {
	s = strings.TrimLeft(s, " ")
	body, ok := strings.CutPrefix(s, "(@")
	if !ok {
		return nil, "", bad("no list")
	}
	body, rest, ok = strings.Cut(body, ")")
	if !ok {
		return nil, "", bad("list without end")
	}
	if strings.TrimSpace(body) == "" {
		return nil, rest, nil
	}
	for part := range strings.SplitSeq(body, ",") {
		first, last, isRange := strings.Cut(part, ":")
		a, err := port(first)
		if err != nil {
			return nil, "", err
		}
		b := a
		if isRange {
			if b, err = port(last); err != nil {
				return nil, "", err
			}
		}
		if b < a || len(ports)+b-a >= MaxPorts {
			return nil, "", bad("range %d to %d", a, b)
		}
		for p := a; p <= b; p++ {
			ports = append(ports, p)
		}
	}
	return ports, rest, nil
}

func port(s string) (int, error) {
	n, err := strconv.ParseUint(strings.TrimSpace(s), 10, 16)
	if err != nil || n < 1 || n > MaxPorts {
		return 0, bad("port %q", s)
	}
	return int(n), nil
}

// parseLists reads two lists and nothing else.
func parseLists(s string) (in, out []int, err error) {
	in, s, err = parseList(s)
	if err != nil {
		return nil, nil, err
	}
	s, ok := strings.CutPrefix(strings.TrimLeft(s, " "), ",")
	if !ok {
		return nil, nil, bad("no second list")
	}
	out, s, err = parseList(s)
	if err == nil && strings.TrimSpace(s) != "" {
		err = bad("%q behind the lists", s)
	}
	return in, out, err
}

// ParseMap reads the reply to a state query of a switch of so many inputs and
// outputs. A port in two connections is refused.
func ParseMap(reply string, inputs, outputs int) ([]hal.PortPair, error) {
	in, out, err := parseLists(reply)
	if err != nil {
		return nil, err
	}
	if len(in) != len(out) {
		return nil, bad("%d inputs with %d outputs", len(in), len(out))
	}
	var pairs []hal.PortPair
	for i, a := range in {
		p := hal.PortPair{In: uint16(a - 1), Out: uint16(out[i] - inputs - 1)}
		if a > inputs || out[i] <= inputs || out[i] > inputs+outputs || slices.ContainsFunc(pairs, func(q hal.PortPair) bool { return p.In == q.In || p.Out == q.Out }) {
			return nil, bad("connection %d to %d", a, out[i])
		}
		pairs = append(pairs, p)
	}
	slices.SortFunc(pairs, func(p, q hal.PortPair) int { return int(p.In) - int(q.In) })
	return pairs, nil
}

// ParsePowers reads the reply to a power query: "(-5.1,-40.0)", in thousandths
// of a dBm.
func ParsePowers(reply string, want int) ([]int32, error) {
	s := strings.TrimSpace(reply)
	s, open := strings.CutPrefix(s, "(")
	s, closed := strings.CutSuffix(s, ")")
	if !open || !closed {
		return nil, bad("powers %q", reply)
	}
	parts := strings.Split(s, ",")
	if len(parts) != want {
		return nil, bad("%d powers for %d ports", len(parts), want)
	}
	out := make([]int32, want)
	for i, p := range parts {
		v, ok := hal.ParseMilli(strings.TrimSpace(p))
		if !ok {
			return nil, bad("power %q", strings.TrimSpace(p))
		}
		out[i] = v
	}
	return out, nil
}

// appendTenths appends thousandths of a dBm rounded to tenths of one.
func appendTenths(dst []byte, milli int32) []byte {
	if milli < 0 {
		dst, milli = append(dst, '-'), -milli
	}
	t := (int64(milli) + 50) / 100
	dst = strconv.AppendInt(dst, t/10, 10)
	return append(dst, '.', byte('0'+t%10))
}
