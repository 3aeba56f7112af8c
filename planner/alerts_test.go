package planner

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto/metric"
	"ringlight/proto/metric/promtool"
)

// samples are what Prometheus reads of the planner now, by series; those of its process
// are as they are while nothing is wrong with that.
func (w *fleet) samples(add func(series, value string)) {
	var page metric.Page
	metric.AppendAll(&page, Measures, CensusOf(w.p))
	metric.AppendAll(&page, NodeMeasures, NodesOf(w.p, nil))
	text := string(page.Text) + "ringlight_broker_connected 1\nringlight_store_unwritten_seconds 0\n"
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(line)
		end := strings.LastIndexByte(line, ' ')
		series, value := line[:end], line[end+1:]
		name, labels, _ := strings.Cut(strings.TrimSuffix(series, "}"), "{")
		add(fmt.Sprintf(`%s{job="f1",instance="p1",%s}`, name, labels), value)
	}
}

// rules writes a test of promtool's: what is read, so many minutes apart, and what is
// asked of the alerts then.
func rules(b *strings.Builder, name string, minutes int, read map[string][]string, asked ...string) {
	fmt.Fprintf(b, "  - name: %s\n    interval: %dm\n    input_series:\n", name, minutes)
	for series, values := range read {
		fmt.Fprintf(b, "      - {series: '%s', values: '%s'}\n", series, strings.Join(values, " "))
	}
	b.WriteString("    promql_expr_test:\n")
	for _, q := range asked {
		b.WriteString(q)
	}
}

// made12 are faults that are made, by the names of their states, and an alert of each.
var made12 = map[string]string{
	"nobody is there":                        "RinglightFailed",
	"half is there":                          "RinglightNodeSilent",
	"a node lost its power":                  "RinglightCriticalAlarm",
	"a spare is lost":                        "RinglightNodeSilent",
	"a ring is short":                        "RinglightRingDegraded",
	"a fibre is cut, a spare takes over":     "RinglightFibreDark",
	"all hosts of a ring are down":           "RinglightFailed",
	"a board hangs":                          "RinglightCheck",
	"a laser is dead":                        "RinglightCheck",
	"a journal cannot be written":            "RinglightCriticalAlarm",
	"a liar":                                 "RinglightCriticalAlarm",
	"telemetry of a member stops":            "RinglightNodeSilent",
	"the store takes no writes":              "RinglightNoPlanner",
	"the disk is nearly full":                "RinglightCheck",
	"the planner listens":                    "RinglightNoPlanner",
	"a job waits":                            "RinglightCheck",
	"an agent is away, its light stays":      "RinglightNodeSilent",
	"a ring has no light":                    "RinglightRingDegraded",
	"a roll-out has stopped":                 "RinglightCriticalAlarm",
	"a fibre was cut and waits to be proven": "RinglightFibreDark",
}

// Goal: the shipped alerts fire on faults that are made, and on none of a quiet day.
// Method: promtool evaluates them over the metrics of those states, as they would be read
// for forty minutes, and over those of a day of a fabric on which nothing happens, half an
// hour of it lived.
func TestAlertsFireOnMadeFaultsAlone(t *testing.T) {
	shipped, err := filepath.Abs("../docs/monitoring/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [%s]\nevaluation_interval: 1m\ntests:\n", shipped)
	left := len(made12)
	for _, s := range states {
		alert := made12[s.name]
		if alert == "" {
			continue
		}
		left--
		w := s.make(t)
		read := map[string][]string{}
		w.samples(func(series, value string) { read[series] = []string{value + "x40"} })
		rules(&b, s.name, 1, read, fmt.Sprintf("      - expr: count(ALERTS{alertname=%q,alertstate=\"firing\"}) > bool 0\n        eval_time: 38m\n        exp_samples: [{labels: '{}', value: 1}]\n", alert))
	}
	if left != 0 {
		t.Errorf("%d states are not there", left)
	}
	w := started(t, fabric.Params{Name: "f", Nodes: 18, GPUsPerNode: 4, K: 2, TP: 32, Spares: 2})
	w.run(2 * time.Second)
	day := map[string][]string{}
	const lived = 8 // pages; what is on them changes no more
	for range lived {
		w.run(4 * time.Minute)
		w.samples(func(series, value string) { day[series] = append(day[series], value) })
	}
	for series, values := range day { // any order: each by itself
		day[series] = append(values, fmt.Sprintf("%sx%d", values[len(values)-1], 24*60/4-lived))
	}
	none := "      - expr: count by (alertname) (count_over_time(ALERTS{alertstate=\"firing\"}[1d]))\n        eval_time: 1436m\n        exp_samples: []\n"
	rules(&b, "a quiet day", 4, day, none)
	file := filepath.Join(t.TempDir(), "made.yml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool.Judge(t, "", "test", "rules", file)
}
