package study_test

import (
	"fmt"

	"ringlight/sim/study"
)

// The table of a study for a README: ours, the paper's and why they differ.
func ExampleReport_Beside() {
	res, err := study.Bounds(study.BoundsConfig{Runs: 400, Drawn: study.Drawn{Seed: 1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(res.Beside().Markdown())
	// Output:
	// | figure | ours | paper | why they differ |
	// | --- | --- | --- | --- |
	// | Table 7, R=4, K=2 | 9.216 % | 9.22 % | the same formula; it is loose: 2.3040 % without its spare factor R, 0.5572 % when drawn |
	// | Table 7, R=4, K=3 | 0.374 % | 0.37 % | the same formula; it is loose: 0.0935 % without its spare factor R, 0.0204 % when drawn |
	// | Table 7, R=4, K=4 | 0.015 % | 1.52e-4 | the same formula; it is loose: 0.0038 % without its spare factor R, 0.0008 % when drawn |
	// | Table 7, R=8, K=2 | 30.109 % | 30.11 % | the same formula; it is loose: 3.7636 % without its spare factor R, 0.8775 % when drawn |
	// | Table 7, R=8, K=3 | 2.385 % | 2.38 % | the same formula; it is loose: 0.2981 % without its spare factor R, 0.0670 % when drawn |
	// | Table 7, R=8, K=4 | 0.189 % | 0.19 % | the same formula; it is loose: 0.0236 % without its spare factor R, 0.0049 % when drawn |
}

// The waste of one set of faults.
func ExampleWasteOf() {
	waste, err := study.WasteOf(study.Size{Nodes: 16, GPUsPerNode: 4, TPs: []int{32}}, []int{7, 8})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range []study.Model{study.BigSwitch, study.IHBDK2, study.IHBDK3, study.NVL72} {
		fmt.Println(m, waste[m].WastedGPUs)
	}
	// Output:
	// big-switch 24
	// infinitehbd-k2 56
	// infinitehbd-k3 24
	// nvl-72 24
}
