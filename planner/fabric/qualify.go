package fabric

// Qualify says what a fibre must keep to before it may carry a ring.
type Qualify struct {
	// ErrorsPer1e12 is the bit error ratio that no lane may have, in 1e-12; 0: 10,000.
	ErrorsPer1e12 int `json:"errors_per_1e12,omitempty"`
	// ConfidencePercent is how sure a result is: 90, or 99, also when 0.
	ConfidencePercent int `json:"confidence_percent,omitempty"`
	// BudgetMDB is what may be lost of the light from launch to receiver; 0: 6,500.
	BudgetMDB int `json:"budget_mdb,omitempty"`
	// AfterRepair: a fibre that was held to be cut must pass before it is used again.
	AfterRepair bool `json:"after_repair,omitempty"`
}

// What holds where a fabric does not say.
const (
	// chosen: before RS(544,514) IEEE 802.3 (clause 120) leaves 2.4e-4; four decades of
	// it are for what a link loses with the years.
	defaultErrorsPer1e12 = 10_000
	// chosen: facets, connector and fibre of docs/board.md at their worst, 6.1 dB, and
	// what taps and diodes may be off.
	defaultBudgetMDB = 6500
)

// Qualifies is what fibres must keep to.
func (f *Fabric) Qualifies() Qualify {
	var q Qualify
	if f.Qualify != nil {
		q = *f.Qualify
	}
	if q.ErrorsPer1e12 == 0 {
		q.ErrorsPer1e12 = defaultErrorsPer1e12
	}
	if q.ConfidencePercent == 0 {
		q.ConfidencePercent = 99
	}
	if q.BudgetMDB == 0 {
		q.BudgetMDB = defaultBudgetMDB
	}
	return q
}
