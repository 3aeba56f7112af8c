package tidy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile("(?m)^#+ (.*)$")
	fenced  = regexp.MustCompile("(?ms)^```.*?^```$")
	notSlug = regexp.MustCompile(`[^a-z0-9 _-]`)
)

// anchors are the places of a page that a link can name.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		out[strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-")] = true
	}
	return out
}

// Goal: no link of a page is dead.
// Method: each relative link is a file, its anchor a heading of that file.
func TestLinksLeadSomewhere(t *testing.T) {
	n := 0
	walkText(t, []string{".md"}, func(path, text string) {
		for _, l := range link.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
			target, anchor, _ := strings.Cut(l[1], "#")
			if strings.Contains(target, "://") {
				continue
			}
			n++
			at := path
			if target != "" {
				at = filepath.Join(filepath.Dir(path), target)
			}
			raw, err := os.ReadFile(at)
			switch {
			case err != nil && !exists(at):
				t.Errorf("%s links %s, which is not there", path, l[1])
			case anchor != "" && !anchors(string(raw))[anchor]:
				t.Errorf("%s links %s: no such heading", path, l[1])
			}
		}
	})
	if n < 50 {
		t.Errorf("only %d links read: does the test still see them?", n)
	}
}

// Goal: README uses no word of the trade before it says what it is.
// Method: the first use of each word of docs/concepts.md in its prose is, or stands
// behind, a link to that word.
func TestReadmeExplainsItsWords(t *testing.T) {
	read := func(name string) string {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	_, words, found := strings.Cut(read("docs/concepts.md"), "\n## Words\n")
	blank := func(m string) string { return strings.Repeat(" ", len(m)) }
	readme := read("README.md")
	prose := page.ReplaceAllStringFunc(fenced.ReplaceAllStringFunc(readme, blank), blank)
	n := 0
	for _, h := range heading.FindAllStringSubmatch(words, -1) {
		n++
		word := h[1]
		use := regexp.MustCompile(`(^|[^A-Za-z0-9_/.#-])(` + regexp.QuoteMeta(word) + `)(s|es)?([^A-Za-z0-9_/-]|$)`)
		if word == strings.ToLower(word) {
			use = regexp.MustCompile(`(?i)` + use.String())
		}
		first := use.FindStringIndex(prose)
		if first == nil {
			continue
		}
		slug := strings.ReplaceAll(strings.ToLower(word), " ", "-")
		at := strings.Index(readme, "docs/concepts.md#"+slug+")")
		if at < 0 || at > first[1]+len("docs/concepts.md#")+120 {
			t.Errorf("README.md uses %q (at byte %d) before a link says what it is", word, first[0])
		}
	}
	if !found || n < 20 {
		t.Errorf("%d words read: does the test still see them?", n)
	}
}
