package planner

import "testing"

// Goal: another planner is named as people tell them apart, not by a number of
// twenty digits. Method: one that says its host, and one of before hosts were said.
func TestRivalsAreNamedForPeople(t *testing.T) {
	for _, c := range []struct {
		of   rival
		want string
	}{
		{rival{planner: 14801973136002769711, life: 0xabcdef123456, term: 3, host: "rack7"}, "planner rack7 (123456), term 3"},
		{rival{planner: 14801973136002769711, term: 3}, "planner 51e32f, term 3"},
	} {
		if got := c.of.String(); got != c.want {
			t.Errorf("%s, want %s", got, c.want)
		}
	}
}
