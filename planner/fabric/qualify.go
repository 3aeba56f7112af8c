package fabric

import "cmp"

// Qualify says what a fibre must keep to before it may carry a ring, and lasers and heaters as they age.
type Qualify struct {
	// ErrorsPer1e12 is the bit error ratio that no lane may have, in 1e-12; 0: 10,000.
	ErrorsPer1e12 int `json:"errors_per_1e12,omitempty"`
	// ConfidencePercent is how sure a result is: 90, or 99, also when 0.
	ConfidencePercent int `json:"confidence_percent,omitempty"`
	// BudgetMDB is what may be lost of the light from launch to receiver; 0: 6,500.
	BudgetMDB int `json:"budget_mdb,omitempty"`
	// AfterRepair: a fibre that was held to be cut must pass before it is used again.
	AfterRepair bool `json:"after_repair,omitempty"`
	// BeforeUse: the same, and every fibre of a fabric that is brought up, and those of a node
	// that is let in again.
	BeforeUse bool `json:"before_use,omitempty"`
	// BiasPercent is how much more current than at first a laser may take, 0: 50; HeaterPercent
	// how much more or less power heaters may, 0: 10. AgeingDays is how long before that
	// ocsctl status tells, 0: 90.
	BiasPercent   int `json:"bias_percent,omitempty"`
	HeaterPercent int `json:"heater_percent,omitempty"`
	AgeingDays    int `json:"ageing_days,omitempty"`
}

// What holds where a fabric does not say.
const (
	// chosen: before RS(544,514) IEEE 802.3 (clause 120) leaves 2.4e-4; four decades of
	// it are for what a link loses with the years.
	defaultErrorsPer1e12 = 10_000
	// chosen: facets, connector and fibre of docs/board.md at their worst, 6.1 dB, and
	// what taps and diodes may be off.
	defaultBudgetMDB = 6500
	// Telcordia GR-468-CORE's end of life of a laser.
	defaultBiasPercent = 50
	// chosen: .3 radian of a cell at pi, where the phases are no longer those that were calibrated.
	defaultHeaterPercent = 10
	// chosen: time to have a module there.
	defaultAgeingDays = 90
)

// Qualifies is what fibres must keep to.
func (f *Fabric) Qualifies() Qualify {
	var q Qualify
	if f.Qualify != nil {
		q = *f.Qualify
	}
	q.ErrorsPer1e12 = cmp.Or(q.ErrorsPer1e12, defaultErrorsPer1e12)
	q.ConfidencePercent = cmp.Or(q.ConfidencePercent, 99)
	q.BudgetMDB = cmp.Or(q.BudgetMDB, defaultBudgetMDB)
	q.BiasPercent = cmp.Or(q.BiasPercent, defaultBiasPercent)
	q.HeaterPercent = cmp.Or(q.HeaterPercent, defaultHeaterPercent)
	q.AgeingDays = cmp.Or(q.AgeingDays, defaultAgeingDays)
	return q
}
