package solo

import (
	"errors"
	"fmt"

	"ringlight/hal"
	"ringlight/sim"
)

// Keys are what the object `board` of a configuration says of a simulated board, beside
// its layout.
type Keys struct {
	Seed       uint64      `json:"seed" doc:"kind sim: the board's optics and noise"`
	Calibrated bool        `json:"calibrated" doc:"kind sim: a bundle without a stored calibration is calibrated at start"`
	SlowMCI    bool        `json:"slow_mci" doc:"kind sim, module_kind cmis: controllers take every hold-off that the specification leaves them"`
	Faults     []string    `json:"faults" doc:"kind sim: what is broken, such as stuck:bundle/module/cell"`
	Physics    sim.Physics `json:"physics"`
	Fibres     []string    `json:"fibres" doc:"kind sim: fibres between the board's own ports, such as 0/external1-1/external1"`
}

// DefaultKeys are those of a board of which nothing is said.
func DefaultKeys() Keys { return Keys{Seed: 1, Calibrated: true, Physics: sim.DefaultPhysics()} }

// Config makes the board of its layout and the keys, or joins all that is wrong with them.
func (k *Keys) Config(board *hal.Board, state string) (Config, error) {
	c := Config{Board: board, Seed: k.Seed, State: state, Physics: &k.Physics}
	var errs []error
	if k.SlowMCI {
		c.MCI = sim.SlowMCITiming()
		if !board.CMIS() {
			errs = append(errs, &hal.Problem{Field: "board.slow_mci", Limit: "module_kind cmis", Text: "true"})
		}
	}
	k.Physics.Validate(func(key string, value float64, low, high string) {
		errs = append(errs, &hal.Problem{Field: "board.physics." + key, Limit: low + " to " + high, Text: fmt.Sprint(value)})
	})
	for i, s := range k.Faults {
		f, err := sim.ParseFault(s)
		if c.Faults = append(c.Faults, f); err != nil {
			errs = append(errs, fmt.Errorf("board.faults[%d]: %w", i, err))
		}
	}
	for i, s := range k.Fibres {
		f, err := parseFibre(s)
		if c.Fibres = append(c.Fibres, f); err != nil {
			errs = append(errs, fmt.Errorf("board.fibres[%d]: %w", i, err))
		}
	}
	return c, errors.Join(errs...)
}
