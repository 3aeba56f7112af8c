package hostlist

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// maxDigits of a number in brackets: what fits 63 bits for certain.
const maxDigits = 18

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

// Parse expands a list, in its order: at most so many hosts.
func Parse(text string, most int) ([]string, error) {
	if rest := strings.TrimLeft(text, letters+"[],"); rest != "" {
		return nil, fmt.Errorf("%.80q: %.1q is in no host's name", text, rest)
	}
	var out []string
	for at := 0; at <= len(text); {
		end := entry(text[at:])
		if end < 0 {
			return nil, fmt.Errorf("%.80q: brackets do not match", text)
		}
		hosts, err := expand(text[at:at+end], most-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, hosts...)
		at += end + 1
	}
	return out, nil
}

// entry is the length of the first entry: up to a comma that is in no brackets,
// -1 where brackets do not match.
func entry(text string) int {
	in := false
	for i, c := range []byte(text) {
		switch {
		case c == '[' && in, c == ']' && !in:
			return -1
		case c == '[' || c == ']':
			in = c == '['
		case c == ',' && !in:
			return i
		}
	}
	if in {
		return -1
	}
	return len(text)
}

// expand gives the hosts of one entry; of several brackets the last counts fastest.
func expand(text string, most int) ([]string, error) {
	open := strings.IndexByte(text, '[')
	if open < 0 {
		if text == "" {
			return nil, errors.New("want the name of a host, have none")
		}
		if most < 1 {
			return nil, fmt.Errorf("%.80q: more hosts than there may be", text)
		}
		return []string{text}, nil
	}
	shut := strings.IndexByte(text, ']')
	numbers, err := ranges(text[open+1:shut], most)
	if err != nil {
		return nil, err
	}
	rest := []string{""}
	if shut+1 < len(text) {
		if rest, err = expand(text[shut+1:], most/len(numbers)); err != nil {
			return nil, err
		}
	}
	out := make([]string, 0, len(numbers)*len(rest))
	for _, n := range numbers {
		for _, r := range rest {
			out = append(out, text[:open]+n+r)
		}
	}
	return out, nil
}

// ranges gives the numbers in brackets, as wide as their range begins.
func ranges(text string, most int) (out []string, err error) {
	for part := range strings.SplitSeq(text, ",") {
		first, last, ok := strings.Cut(part, "-")
		if !ok {
			last = first
		}
		if !digits(first) || !digits(last) {
			return nil, fmt.Errorf("[%.80s]: %.40q: want N or N-M, of at most %d digits", text, part, maxDigits)
		}
		from, _ := strconv.ParseUint(first, 10, 64) // of digits, and not too many
		to, _ := strconv.ParseUint(last, 10, 64)
		switch {
		case to < from:
			return nil, fmt.Errorf("[%.80s]: %.40q: ends before it begins", text, part)
		case to-from >= uint64(max(0, most-len(out))):
			return nil, fmt.Errorf("[%.80s]: %.40q: more hosts than there may be", text, part)
		}
		for n := from; n <= to; n++ {
			out = append(out, fmt.Sprintf("%0*d", len(first), n))
		}
	}
	return out, nil
}

func digits(s string) bool {
	return s != "" && len(s) <= maxDigits && strings.Trim(s, "0123456789") == ""
}

// run is hosts of one name and numbers that follow one another.
type run struct {
	stem        string
	first, last string // digits at the end; "": none
	next        uint64
}

// Print writes hosts in the short form, in their order. Parse gives them back.
func Print(hosts []string) string {
	var runs []run
	for _, h := range hosts {
		stem := strings.TrimRight(h, "0123456789")
		number := h[len(stem):]
		if len(number) > maxDigits {
			stem, number = h, ""
		}
		n, _ := strconv.ParseUint(number, 10, 64) // of digits, or none
		if len(runs) > 0 && number != "" {
			if r := &runs[len(runs)-1]; r.stem == stem && r.first != "" && r.next == n && number == fmt.Sprintf("%0*d", len(r.first), n) {
				r.last, r.next = number, n+1
				continue
			}
		}
		runs = append(runs, run{stem, number, number, n + 1})
	}
	var b strings.Builder
	for i := 0; i < len(runs); {
		r, end := &runs[i], i+1
		for end < len(runs) && runs[end].stem == r.stem && r.first != "" && runs[end].first != "" {
			end++
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(r.stem)
		if end == i+1 && r.first == r.last {
			b.WriteString(r.first)
		} else {
			for k := i; k < end; k++ {
				b.WriteByte("[,"[min(k-i, 1)])
				b.WriteString(runs[k].first)
				if runs[k].last != runs[k].first {
					b.WriteString("-" + runs[k].last)
				}
			}
			b.WriteByte(']')
		}
		i = end
	}
	return b.String()
}
