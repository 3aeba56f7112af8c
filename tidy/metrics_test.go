package tidy_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"ringlight/agent"
	"ringlight/planner"
	"ringlight/planner/server"
	"ringlight/proto/guard"
	"ringlight/proto/metric"
	"ringlight/proto/metric/promtool"
	"ringlight/proto/metric/self"
)

var update = flag.Bool("update", false, "rewrite docs/metrics.md and .ci/lines.txt")

// section is a table of measures as docs/metrics.md has it.
type section struct {
	title, text string
	families    []*metric.Family
}

func familiesOf[T any](tables ...[]metric.Measure[T]) (out []*metric.Family) {
	for _, table := range tables {
		for i := range table {
			out = append(out, &table[i].Family)
		}
	}
	return out
}

func sections() []section {
	return []section{
		{"The planner and its fabric", "`/metrics` of `ocs-planner run -http`.", append(familiesOf(planner.Measures), familiesOf(server.Measures)...)},
		{"Each node", "`/metrics/nodes` of the same, one sample a node or a bundle.", familiesOf(planner.NodeMeasures)},
		{"An agent", "`ocs-agent metrics`, over its unix socket; `-textfile` for node_exporter. One board.", familiesOf(agent.Measures)},
		{"Any process", "On the pages of planner and agent.", append(familiesOf(self.Measures), familiesOf(guard.Measures)...)},
	}
}

const alertsPage = "docs/alerts.md"

func metricsPage() string {
	var b strings.Builder
	b.WriteString("# Metrics\n\nWritten by `go test -run MetricsPage -update .`. Times are in seconds, light in decibels. What ends in `_total` is a\ncounter, a histogram says so, all else is a gauge; labels stand in braces. How they are scraped: [Alerts](" + strings.TrimPrefix(alertsPage, "docs/") + ").\n")
	for _, s := range sections() {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n", s.title, s.text)
		for _, f := range s.families {
			labels, kind := strings.Join(f.Labels, ","), ""
			if labels != "" {
				labels = "{" + labels + "}"
			}
			if f.Kind == metric.Histogram {
				kind = "Histogram. "
			}
			fmt.Fprintf(&b, "- `%s%s`: %s%s\n", f.Name, labels, kind, f.Help)
		}
	}
	return b.String()
}

// Goal: every metric is documented, in the words of its own help.
func TestMetricsPageIsThatOfTheTables(t *testing.T) {
	if *update {
		if err := os.WriteFile("docs/metrics.md", []byte(metricsPage()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := os.ReadFile("docs/metrics.md")
	if err != nil || string(raw) != metricsPage() {
		t.Errorf("docs/metrics.md is not that of the tables (%v); go test -run MetricsPage -update . writes it", err)
	}
	seen := map[string]bool{}
	for _, s := range sections() {
		for _, f := range s.families {
			if seen[f.Name] || !strings.HasSuffix(f.Help, ".") || strings.HasSuffix(f.Name, "_total") != (f.Kind == metric.Counter) {
				t.Errorf("%s: twice, without a sentence, or _total where it is no counter", f.Name)
			}
			seen[f.Name] = true
		}
	}
}

var (
	metricName = regexp.MustCompile(`\b(?:ringlight|process)_[a-z0-9_]+(?:\{[^}]*\})?`)
	matcher    = regexp.MustCompile(`([a-z_]+)\s*[!=]=?~?\s*"`)
	aggregates = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	template   = regexp.MustCompile(`\{\{\s*(?:\$labels\.)?([a-z_]+)\s*\}\}`)
)

// checkExpression reports what of an expression no page has.
func checkExpression(known map[string]*metric.Family, expr string) (labels map[string]bool, bad []string) {
	labels = map[string]bool{"job": true, "instance": true}
	names := metricName.FindAllString(expr, -1)
	if len(names) == 0 {
		bad = append(bad, "no metric of ours")
	}
	for _, m := range names {
		name, match, _ := strings.Cut(m, "{")
		f := known[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(name, suffix); f == nil && cut && known[base] != nil && known[base].Kind == metric.Histogram {
				f = known[base]
				labels["le"] = true
			}
		}
		if f == nil {
			bad = append(bad, "no metric "+name)
			continue
		}
		of := map[string]bool{"job": true, "instance": true, "le": labels["le"]}
		for _, l := range f.Labels {
			of[l], labels[l] = true, true
		}
		for _, l := range matcher.FindAllStringSubmatch(match, -1) {
			if !of[l[1]] {
				bad = append(bad, name+" has no label "+l[1])
			}
		}
	}
	for _, by := range aggregates.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.Split(by[1], ",") {
			if !labels[strings.TrimSpace(l)] {
				bad = append(bad, "nothing here has a label "+l)
			}
		}
	}
	return labels, bad
}

func knownMetrics() map[string]*metric.Family {
	known := map[string]*metric.Family{}
	for _, s := range sections() {
		for _, f := range s.families {
			known[f.Name] = f
		}
	}
	return known
}

// Goal: no panel stays empty because a metric or a label has another name.
func TestDashboardAsksForWhatThereIs(t *testing.T) {
	raw, err := os.ReadFile("docs/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(raw, &board); err != nil {
		t.Fatal(err)
	}
	known, exprs := knownMetrics(), 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			exprs++
			labels, bad := checkExpression(known, target.Expr)
			for _, l := range template.FindAllStringSubmatch(target.LegendFormat, -1) {
				if !labels[l[1]] {
					bad = append(bad, "the legend names a label "+l[1])
				}
			}
			for _, b := range bad {
				t.Errorf("%s: %s: %s", p.Title, target.Expr, b)
			}
		}
	}
	if exprs < 30 {
		t.Errorf("only %d expressions: does the test still see them?", exprs)
	}
}

// alertTests are those of hours and those of days.
var alertTests = []string{"alerts_test.yml", "alerts_days_test.yml"}

var alertField = regexp.MustCompile(`(?m)^ +(?:- )?(alert|expr|summary|runbook|ask): (.*)$`)

// Goal: whoever is woken knows what it is about, where that is explained and what
// to type; and is woken by something that is measured.
// Method: each rule has the three, its page exists and each page has its rule, a
// command of ocsctl is asked for, each has tests of both kinds.
func TestAlertsSayWhatToType(t *testing.T) {
	rules, err := os.ReadFile("docs/monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var tests []byte
	for _, name := range alertTests {
		raw, err := os.ReadFile("docs/monitoring/" + name)
		if err != nil {
			t.Fatal(err)
		}
		tests = append(tests, raw...)
	}
	page, err := os.ReadFile(alertsPage)
	if err != nil {
		t.Fatal(err)
	}
	known := knownMetrics()
	var alerts []map[string]string
	for _, m := range alertField.FindAllStringSubmatch(string(rules), -1) {
		if m[1] == "alert" {
			alerts = append(alerts, map[string]string{})
		}
		alerts[len(alerts)-1][m[1]] = m[2]
	}
	for _, a := range alerts {
		name := a["alert"]
		labels, bad := checkExpression(known, a["expr"])
		for _, text := range []string{a["summary"], a["ask"]} {
			for _, l := range template.FindAllStringSubmatch(text, -1) {
				if !labels[l[1]] {
					bad = append(bad, "names a label "+l[1])
				}
			}
		}
		if len(a["summary"]) < 20 || a["runbook"] != alertsPage+"#"+strings.ToLower(name) || !strings.Contains(a["ask"], "ocsctl ") {
			bad = append(bad, "lacks a summary, its page or what to type")
		}
		if !strings.Contains(string(page), "\n## "+name+"\n") {
			bad = append(bad, "has no page")
		}
		for _, kind := range []string{"fires", "stays quiet"} {
			if !strings.Contains(string(tests), "- name: "+name+" "+kind+"\n") {
				bad = append(bad, "has no test where it "+kind)
			}
		}
		for _, b := range bad {
			t.Errorf("%s: %s", name, b)
		}
	}
	if pages := strings.Count(string(page), "\n## Ringlight"); len(alerts) < 12 || pages != len(alerts) {
		t.Errorf("%d alerts, %d pages", len(alerts), pages)
	}
}

// Goal: Prometheus takes the rules, and each alert fires where it should and not
// beside it.
func TestPromtoolOnTheAlerts(t *testing.T) {
	t.Chdir("docs/monitoring")
	promtool.Judge(t, "", "check", "rules", "alerts.yml")
	promtool.Judge(t, "", append([]string{"test", "rules"}, alertTests...)...)
}
