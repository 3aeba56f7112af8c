package cli

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sort"
	"strings"
)

const completionText = `Prints what makes a shell complete the commands and their flags.

  %[1]s completion bash > /etc/bash_completion.d/%[1]s
  %[1]s completion zsh > "${fpath[1]}/_%[1]s"
  %[1]s completion fish > ~/.config/fish/completions/%[1]s.fish
`

func (p *Program) completion(_ context.Context, args []string, t Terminal) error {
	words, err := Parse(NewFlags("completion"), args, fmt.Sprintf(completionText, p.Name))
	if err != nil {
		return err
	}
	write := map[string]func() string{"bash": p.bash, "fish": p.fish,
		"zsh": func() string {
			return "#compdef " + p.Name + "\nautoload -U +X bashcompinit && bashcompinit\n" + p.bash()
		}}
	if len(words) != 1 || write[words[0]] == nil {
		return Usage("completion", "bash, zsh or fish", "%q", Clip(strings.Join(words, " ")))
	}
	_, err = fmt.Fprint(t.Out, write[words[0]]())
	return err
}

// path is a place in a command line, and what may follow there.
type path struct {
	words string // with a space before each
	next  []string
	flags []*flag.Flag
}

// paths are all places, the longest first.
func (p *Program) paths() []path {
	var out []path
	at := func(words string) *path {
		i := slices.IndexFunc(out, func(x path) bool { return x.words == words })
		if i < 0 {
			out = append(out, path{words: words})
			i = len(out) - 1
		}
		return &out[i]
	}
	add := func(words, next string) {
		if x := at(words); !slices.Contains(x.next, next) {
			x.next = append(x.next, next)
		}
	}
	for _, c := range p.all() {
		words := ""
		for _, w := range strings.Fields(c.Name) {
			add(words, w)
			words += " " + w
		}
		var flags []*flag.Flag
		if h := c.describe(); h != nil {
			h.flags.VisitAll(func(f *flag.Flag) { flags = append(flags, f) })
		}
		at(words).flags = flags
		for _, f := range c.Forms {
			if w, _, _ := strings.Cut(f, " "); w == strings.ToLower(w) && !strings.ContainsAny(w, "[<.") {
				add(words, w)
				at(words + " " + w).flags = flags
			}
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return len(out[i].words) > len(out[j].words) })
	return out
}

// bash writes a function that looks how far the line is and lists what may follow.
func (p *Program) bash() string {
	var b strings.Builder
	name := strings.ReplaceAll(p.Name, "-", "_")
	var valued []string
	for n, f := range p.flags() { // any order: sorted
		if !IsBool(f) {
			valued = append(valued, "-"+n)
		}
	}
	slices.Sort(valued)
	fmt.Fprintf(&b, `# bash completion of %[1]s: %[1]s completion bash
_%[2]s() {
  local cur=${COMP_WORDS[COMP_CWORD]} path= next= w i
  for ((i = 1; i < COMP_CWORD; i++)); do
    w=${COMP_WORDS[i]}
    case $w in
      %[3]s) ((i++)) ;;
      -*) ;;
      *) path+=" $w" ;;
    esac
  done
  case ${COMP_WORDS[COMP_CWORD-1]} in
    %[3]s) return ;;
  esac
  case "$path " in
`, p.Name, name, strings.Join(append(valued, "--none"), "|"))
	for _, x := range p.paths() {
		next := slices.Clone(x.next)
		for _, f := range x.flags {
			next = append(next, "-"+f.Name)
		}
		fmt.Fprintf(&b, "    \"%s \"*) next=%q ;;\n", x.words, strings.Join(next, " "))
	}
	fmt.Fprintf(&b, "  esac\n  COMPREPLY=($(compgen -W \"$next\" -- \"$cur\"))\n}\ncomplete -o default -F _%s %s\n", name, p.Name)
	return b.String()
}

// fish writes a rule for each word and flag.
func (p *Program) fish() string {
	var b strings.Builder
	quote := func(s string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", " ").Replace(s) + "'"
	}
	fmt.Fprintf(&b, "# fish completion of %[1]s: %[1]s completion fish\ncomplete -c %[1]s -f\n", p.Name)
	for _, x := range p.paths() {
		when := "__fish_use_subcommand"
		if words := strings.Fields(x.words); len(words) > 0 {
			when = "__fish_seen_subcommand_from " + strings.Join(words, "; and __fish_seen_subcommand_from ")
		}
		if len(x.next) > 0 {
			fmt.Fprintf(&b, "complete -c %s -n %s -a %s\n", p.Name, quote(when), quote(strings.Join(x.next, " ")))
		}
		for _, f := range x.flags {
			_, what := flagForm(f)
			value := Either(IsBool(f), "", " -r -F")
			fmt.Fprintf(&b, "complete -c %s -n %s -o %s%s -d %s\n", p.Name, quote(when), f.Name, value, quote(what))
		}
	}
	return b.String()
}
