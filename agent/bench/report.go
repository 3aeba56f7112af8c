package bench

import (
	"fmt"
	"io"
	"time"

	"ringlight/proto"
)

// Verdict is how a check ended.
type Verdict string

// Verdicts.
const (
	Pass Verdict = "pass"
	Fail Verdict = "fail"
	Skip Verdict = "skip" // not done, and why
)

// Check is one thing that was looked at.
type Check struct {
	Section string  `json:"section"` // see sections
	Where   string  `json:"where"`   // "bundle 0 module 3"
	Verdict Verdict `json:"verdict"`
	Text    string  `json:"text"`
}

// sections in the order of a report.
var sections = []string{"inventory", "rails", "scan", "eeprom", "dac", "heaters", "lasers", "optics", "fibres"}

// Origin is where a report comes from, in the caller's words.
type Origin struct {
	Software  string `json:"software"`
	Date      string `json:"date"`  // RFC 3339
	Board     string `json:"board"` // of what kind, and where
	Simulated bool   `json:"simulated"`
}

// Report is what a bring-up found.
type Report struct {
	Origin
	Node    proto.NodeID   `json:"node"`
	Checks  []Check        `json:"checks"`
	Failed  int            `json:"failed"`
	Skipped int            `json:"skipped"`
	Buses   []BusReport    `json:"buses"`
	Modules []ModuleReport `json:"modules"`
	Fibres  *FibreMap      `json:"fibres,omitempty"`
	Took    time.Duration  `json:"took_ns"` // of the board's time
}

// BusReport is who answers on an I2C bus.
type BusReport struct {
	Bus     int      `json:"bus"`
	Device  string   `json:"device"`
	Answers []string `json:"answers"` // addresses, behind a mux as mux.channel/address
}

// ModuleReport is what was measured of one module. A slice is empty where
// nothing was.
type ModuleReport struct {
	Bundle           int              `json:"bundle"`
	Module           int              `json:"module"`
	Serial           string           `json:"serial"`
	CaseMillicelsius int32            `json:"case_millicelsius"`
	RailMillivolt    int64            `json:"rail_mv"`
	IdleMicroampere  int64            `json:"idle_ua"` // of the rail with every heater at 0 V
	Ohm              []int32          `json:"ohm"`     // by cell; -1 open
	LaneBest         []proto.MilliDBm `json:"lane_best_mdbm"`
	LoopLevel        []proto.MilliDBm `json:"loop_mdbm"` // by lane, in loopback
	LoopExpected     []proto.MilliDBm `json:"loop_expected_mdbm"`
	ExtinctionMB     []int32          `json:"extinction_mdb,omitempty"` // by cell, of the calibration
}

func (r *Report) add(section, where string, v Verdict, format string, args ...any) {
	r.Checks = append(r.Checks, Check{section, where, v, fmt.Sprintf(format, args...)})
	switch v {
	case Fail:
		r.Failed++
	case Skip:
		r.Skipped++
	}
}

// verdict passes when nothing is wrong, and names what is.
func (r *Report) verdict(section, where string, wrong error, format string, args ...any) {
	if wrong != nil {
		r.add(section, where, Fail, "%v", wrong)
		return
	}
	r.add(section, where, Pass, format, args...)
}

// Table prints the report for a person.
func (r *Report) Table(w io.Writer) {
	last := ""
	for _, c := range r.Checks {
		if c.Section != last {
			fmt.Fprintf(w, "%s\n", c.Section)
			last = c.Section
		}
		mark := map[Verdict]string{Pass: "ok  ", Fail: "FAIL", Skip: "skip"}[c.Verdict]
		fmt.Fprintf(w, "  %s  %-20s %s\n", mark, c.Where, c.Text)
	}
	if m := r.Fibres; m != nil {
		for _, f := range m.Found {
			fmt.Fprintf(w, "        fibre %v\n", f)
		}
		for _, f := range m.OneWay {
			fmt.Fprintf(w, "        light one way only, %v to %v\n", f.A, f.B)
		}
		for i, s := range m.Steps {
			fmt.Fprintf(w, "  step %d  %v\n", i+1, s)
		}
	}
	verdict := "passed"
	if r.Failed > 0 {
		verdict = "FAILED"
		fmt.Fprintln(w, "what failed")
		for _, c := range r.Checks {
			if c.Verdict == Fail {
				fmt.Fprintf(w, "  %-8s  %-20s %s\n", c.Section, c.Where, c.Text)
			}
		}
	}
	if r.Simulated {
		verdict += " on a SIMULATED board"
	}
	fmt.Fprintf(w, "bring-up %s: %d checks, %d failed, %d skipped, %v of the board's time\n", verdict, len(r.Checks), r.Failed, r.Skipped,
		r.Took.Round(time.Millisecond))
}
