package main

import "fmt"

// intLists is a JSON array of arrays of integers. encoding/json reads such
// lists through reflection and takes null for 0; a rewiring has some hundred
// thousand numbers and its deadline counts from the first, so they are read
// here.
type intLists struct {
	lists [][]int
	there bool
	wrong string // what is wrong first, with its index, such as [3]
}

// UnmarshalJSON gets what encoding/json has found to be valid JSON.
func (l *intLists) UnmarshalJSON(data []byte) error {
	p := listParser{data: data}
	if p.next() != '[' {
		if string(data) != "null" {
			return fmt.Errorf("not an array")
		}
		return nil
	}
	l.there = true
	p.at++
	for p.next() != ']' {
		list, ok := p.list()
		if !ok {
			l.wrong = fmt.Sprintf("[%d]", len(l.lists))
			return nil
		}
		l.lists = append(l.lists, list)
		if p.next() == ',' {
			p.at++
		}
	}
	return nil
}

type listParser struct {
	data []byte
	at   int
}

// next is the next byte that is not space; the text ends with a bracket.
func (p *listParser) next() byte {
	for p.at < len(p.data) {
		switch b := p.data[p.at]; b {
		case ' ', '\t', '\r', '\n':
			p.at++
		default:
			return b
		}
	}
	return 0
}

func (p *listParser) list() (list []int, ok bool) {
	if p.next() != '[' {
		return nil, false
	}
	p.at++
	for p.next() != ']' {
		n, ok := p.integer()
		if !ok {
			return nil, false
		}
		if list == nil {
			list = make([]int, 0, 4)
		}
		list = append(list, n)
		if p.next() == ',' {
			p.at++
		}
	}
	p.at++
	return list, true
}

// integer reads at most nine digits with neither fraction nor exponent, which
// fits in 32 bits.
func (p *listParser) integer() (n int, ok bool) {
	negative := p.next() == '-'
	if negative {
		p.at++
	}
	first := p.at
	for p.at < len(p.data) && p.data[p.at] >= '0' && p.data[p.at] <= '9' && p.at-first < 9 {
		n = n*10 + int(p.data[p.at]-'0')
		p.at++
	}
	if p.at == first {
		return 0, false
	}
	if b := p.next(); b != ',' && b != ']' {
		return 0, false
	}
	if negative {
		n = -n
	}
	return n, true
}
