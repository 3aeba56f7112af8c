package proto

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var messageTypes = []any{Desired{}, Decision{}, Command{}, Ack{}, Event{}, Reported{},
	Presence{}, Health{}, PlannerState{}, OpRequest{}, OpReply{}, Trust{}, CertRequest{}, CertAnswer{}}

func ruleName(t reflect.Type) string {
	if t == reflect.TypeFor[MilliDBm]() {
		return "milli-dbm"
	}
	return strings.ReplaceAll(documentedName(t.Name()), "_", "-")
}

// schemaType writes a Go type as the schema should.
func schemaType(t reflect.Type, name, max string) string {
	switch {
	case name == "Version":
		return "version"
	case t.Kind() == reflect.Slice:
		if max == "" {
			max = fmt.Sprint(MaxArray)
		}
		return "[0*" + max + " " + schemaType(t.Elem(), "", "") + "]"
	case t.Kind() == reflect.Pointer:
		return schemaType(t.Elem(), "", "")
	case t.PkgPath() != "":
		return ruleName(t)
	case t.Kind() == reflect.String:
		return "short-text"
	case t.Kind() == reflect.Uint64 && max != "":
		return "random"
	case t.Kind() == reflect.Uint64:
		return "count"
	case t.Kind() >= reflect.Uint8 && t.Kind() <= reflect.Uint32:
		return fmt.Sprintf("uint .size %d", t.Size())
	}
	return t.Name()
}

// schemaRules writes the rule of a struct and of all in it, a line a field.
func schemaRules(t reflect.Type, rules map[string][]string) {
	for t.Kind() == reflect.Slice || t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	lines, record := []string{}, false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "_" {
			record = true
			continue
		}
		schemaRules(f.Type, rules)
		key, opts, _ := strings.Cut(f.Tag.Get("cbor"), ",")
		typ := schemaType(f.Type, f.Name, f.Tag.Get("max"))
		switch {
		case record:
			lines = append(lines, documentedName(f.Name)+": "+typ)
		case strings.Contains(opts, "omitempty"):
			lines = append(lines, "? "+key+": "+typ+", ; "+documentedName(f.Name))
		default:
			lines = append(lines, key+": "+typ+", ; "+documentedName(f.Name))
		}
	}
	rules[ruleName(t)] = lines
}

// The page another one would implement from must say what the code does.
// Method: every struct is written as a rule from its tags and compared line
// by line with the schema, comments after the field's name aside.
func TestSchemaMatchesMessages(t *testing.T) {
	want := map[string][]string{}
	for _, m := range messageTypes {
		schemaRules(reflect.TypeOf(m), want)
	}
	got := readSchema(t)
	for name, lines := range want {
		if a, b := strings.Join(got[name], "\n  "), strings.Join(lines, "\n  "); a != b {
			t.Errorf("schema.cddl: rule %s is\n  %s\nwant\n  %s", name, a, b)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("schema.cddl: rule %s belongs to no message", name)
		}
	}
}

var (
	ruleStart = regexp.MustCompile(`^([a-z-]+) = [{\[]$`)
	mapLine   = regexp.MustCompile(`^((?:\? )?\d+: [^,]+, ; [a-z0-9_]+)(?:: .*)?$`)
	arrayLine = regexp.MustCompile(`^([a-z0-9_]+: [^,]+),`)
)

func readSchema(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile("schema.cddl")
	if err != nil {
		t.Fatal(err)
	}
	rules, name := map[string][]string{}, ""
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		switch {
		case ruleStart.MatchString(line):
			name = ruleStart.FindStringSubmatch(line)[1]
			rules[name] = []string{}
		case line == "}" || line == "]":
			name = ""
		case name == "" || strings.HasPrefix(line, ";") || line == "* later-key => later,":
		case mapLine.MatchString(line):
			rules[name] = append(rules[name], mapLine.FindStringSubmatch(line)[1])
		case arrayLine.MatchString(line):
			rules[name] = append(rules[name], arrayLine.FindStringSubmatch(line)[1])
		default:
			t.Errorf("schema.cddl: cannot read %q", line)
		}
	}
	return rules
}

// reserved are codes that were given up, which nothing may use again.
var reserved = map[string][]uint8{"event-kind": {13}}

// The schema's lists of codes must be the code's, in number and name, and no
// code may be without a name.
func TestSchemaNamesEveryCode(t *testing.T) {
	text, err := os.ReadFile("schema.cddl")
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]string{}
	for _, m := range regexp.MustCompile(`(?s)([a-z-]+) = &\((.*?)\)`).FindAllStringSubmatch(string(text), -1) {
		lists[m[1]] = strings.Join(strings.Fields(m[2]), " ")
	}
	for _, c := range []struct {
		rule     string
		from, to uint8
		name     func(uint8) string
	}{
		{"path", 0, uint8(External2), func(c uint8) string { return Path(c).String() }},
		{"port-state", 0, uint8(NumPortStates - 1), func(c uint8) string { return PortState(c).String() }},
		{"override", 0, uint8(PoweredOff), func(c uint8) string { return Override(c).String() }},
		{"side", 0, uint8(Right), func(c uint8) string { return Side(c).String() }},
		{"policy", 0, uint8(PolicyHold), func(c uint8) string { return Policy(c).String() }},
		{"role", 1, uint8(RoleAdmin), func(c uint8) string { return Role(c).String() }},
		{"verdict", 1, uint8(Abort), func(c uint8) string { return Verdict(c).String() }},
		{"severity", 0, uint8(SeverityCritical), func(c uint8) string { return Severity(c).String() }},
		{"request", 0, uint8(Lockout), func(c uint8) string { return Request(c).String() }},
		{"side-state", 0, uint8(len(sideStateNames) - 1), func(c uint8) string { return SideState(c).String() }},
		{"mode", 0, uint8(len(modeNames) - 1), func(c uint8) string { return Mode(c).String() }},
		{"side-timer", 0, uint8(len(sideTimerNames) - 1), func(c uint8) string { return SideTimer(c).String() }},
		{"held", 0, uint8(len(heldNames) - 1), func(c uint8) string { return Held(c).String() }},
		{"rollout-state", 0, uint8(len(rolloutNames) - 1), func(c uint8) string { return RolloutState(c).String() }},
		{"ring-state", 0, uint8(len(ringStateNames) - 1), func(c uint8) string { return RingState(c).String() }},
		{"health-state", 0, uint8(len(healthStateNames) - 1), func(c uint8) string { return HealthState(c).String() }},
		{"fibre-state", 0, uint8(len(fibreStateNames) - 1), func(c uint8) string { return FibreState(c).String() }},
		{"verb", 1, uint8(len(verbNames) - 1), func(c uint8) string { return Verb(c).String() }},
		{"phase", 1, uint8(len(phaseNames) - 1), func(c uint8) string { return Phase(c).String() }},
		{"code", 0, uint8(len(codeNames) - 1), func(c uint8) string { return Code(c).String() }},
		{"cause", 0, uint8(len(causeNames) - 1), func(c uint8) string { return Cause(c).String() }},
		{"event-kind", 1, uint8(len(eventNames) - 1), func(c uint8) string { return EventKind(c).String() }},
		{"sensor", 1, uint8(len(sensorNames) - 1), func(c uint8) string { return Sensor(c).String() }},
		{"quantity", 1, uint8(len(quantityNames) - 1), func(c uint8) string { return Quantity(c).String() }},
		{"job-state", 0, uint8(len(jobStateNames) - 1), func(c uint8) string { return JobState(c).String() }},
		{"collective", 0, uint8(len(collectiveNames) - 1), func(c uint8) string { return Collective(c).String() }},
		{"method", 0, uint8(len(methodNames) - 1), func(c uint8) string { return Method(c).String() }},
		{"wait-cause", 0, uint8(len(waitCauseNames) - 1), func(c uint8) string { return WaitCause(c).String() }},
		{"trace-stage", 1, uint8(len(traceNames) - 1), func(c uint8) string { return TraceStage(c).String() }},
		{"noun", 1, uint8(len(nounNames) - 1), func(c uint8) string { return Noun(c).String() }},
	} {
		var want []string
		for code := c.from; code <= c.to; code++ {
			if slices.Contains(reserved[c.rule], code) {
				if !strings.HasPrefix(c.name(code), "unknown(") {
					t.Errorf("%s: code %d is reserved and has the name %s", c.rule, code, c.name(code))
				}
				continue
			}
			want = append(want, fmt.Sprintf("%s: %d", c.name(code), code))
		}
		if got := lists[c.rule]; got != strings.Join(want, ", ") {
			t.Errorf("schema.cddl: %s is\n  %s\nwant\n  %s", c.rule, got, strings.Join(want, ", "))
		}
		if !strings.HasPrefix(c.name(c.to+1), "unknown(") {
			t.Errorf("%s: code %d has the name %s", c.rule, c.to+1, c.name(c.to+1))
		}
	}
}

// Every constant must have a name: a constant added without one would show.
func TestEveryConstantHasAName(t *testing.T) {
	last := []fmt.Stringer{Lockout, SideClosed, ModeDrained, RingDown, VerbBins, PhaseProtocol,
		Denied, CauseRemedy, EvRemedy, SensorSerial, NounBins, RolloutDone, TraceSwitched, WaitTurn, MethodTotient, JobStandby, Refused, TopicEnrolCRT, RoleAdmin, Abort}
	for _, code := range last {
		if strings.HasPrefix(code.String(), "unknown(") {
			t.Errorf("%T has a code without a name: %v", code, code)
		}
	}
	if got := EvLightLost.MessageID(); got != "Ringlight.1.0.LightLost" {
		t.Errorf("message id %q", got)
	}
}
