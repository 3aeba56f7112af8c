package tl1test

import (
	"slices"
	"strings"
)

// patch carries out a Server's patch commands.
func (s *Server) patch(verb string, part []string) (text []string, code string) {
	switch verb {
	case "RTRV-NETYPE":
		return []string{"Polatis,scripted,OST,1.0"}, ""
	case "RTRV-PATCH":
		for _, c := range s.made {
			text = append(text, c.Source+","+c.Destination)
		}
		return text, ""
	case "RTRV-PORT-PMON":
		for _, names := range [][]string{s.Names.In, s.Names.Out} {
			for _, n := range names {
				p, ok := s.Powers[n]
				if !ok {
					p = [2]string{"-60.00", "-60.00"}
				}
				if !slices.Contains(s.Names.In, n) {
					p[0] = p[1]
				}
				text = append(text, n+":1310.00,"+p[0]+",4")
			}
		}
		return text, ""
	}
	from, to, _ := strings.Cut(part[2], ",")
	okIn := slices.Contains(s.Names.In, from)
	okOut := slices.Contains(s.Names.Out, to)
	switch {
	case !okIn || verb == "ENT-PATCH" && !okOut:
		return nil, codeRange
	case s.Deny > 0:
		s.Deny--
		return nil, codeDenied
	case s.Swallow > 0:
		s.Swallow--
		return nil, ""
	}
	keep, found := s.made[:0:0], false
	for _, c := range s.made {
		if c.Source == from || verb == "ENT-PATCH" && c.Destination == to {
			found = true // gives way
			continue
		}
		keep = append(keep, c)
	}
	s.made = keep
	if verb == "ENT-PATCH" {
		s.made = append(s.made, Connection{Source: from, Destination: to, Active: true})
	} else if !found {
		return nil, codeNone
	}
	return nil, ""
}
