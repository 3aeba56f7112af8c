package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/planner/fabric"
	"ringlight/sim/testbed"
)

// bgpParts are what goes and comes of a core: two links of the first spine; then one of
// the switches of so many pairs, with which all links of the pair go. Of eight ports of a
// spine and four groups those are an eighth, a quarter and half of all links.
func bgpParts(c *fabric.Core) [][]string {
	out := [][]string{{"switch0/a0", "switch2/a0"}}
	for _, of := range []int{8, 4, 2} {
		var parts []string
		for i := range max(1, c.Switches()/2/of) {
			parts = append(parts, fmt.Sprintf("switch%d", i%c.Groups()*c.GroupSwitches()+2*(i/c.Groups())))
		}
		out = append(out, parts)
	}
	return out
}

// bgpRun is one testbed's part of the result.
type bgpRun struct {
	Pods    int                  `json:"pods"`
	Drain   bool                 `json:"drain"`
	Changes []testbed.PodsChange `json:"changes"`
}

// bgpCore is the testbed of [LUMOS] A.9.1.
func bgpCore(pods int) *fabric.Core {
	c := fabric.DefaultCore(pods)
	c.LeavesPerPod, c.SpinesPerPod, c.SpinePorts, c.Backup = 4, 4, 8, true
	return c
}

func testbedBGP(ctx context.Context, args []string, t cli.Terminal) error {
	c := bgpCore(4)
	cfg := testbed.PodsConfig{Changes: 8, Flows: 4, Rate: 50, Config: testbed.Config{Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0"}}
	fs := cli.NewFlags("testbed bgp")
	o := outputFlags(fs)
	bedFlags(fs, &cfg, &cfg.Config, t)
	scales := fs.String("pods", "2,3,4", "`NUMBERS` of pods, a testbed of each")
	modes := fs.String("drain", "no,yes", "whether routers drain their ports before light moves: `no`, yes or both")
	fs.IntVar(&c.LeavesPerPod, "leaves", c.LeavesPerPod, "leaves of a pod")
	fs.IntVar(&c.SpinesPerPod, "spines", c.SpinesPerPod, "spines of a pod")
	fs.IntVar(&c.SpinePorts, "spine-ports", c.SpinePorts, "ports of a spine to optical switches")
	if _, err := cli.ParseNone(fs, args, help("testbed-bgp")); err != nil {
		return err
	}
	runs, err := bgpRuns(*scales, *modes)
	if err != nil {
		return err
	}
	if cfg.Changes < 1 || cfg.Flows < 1 || cfg.Flows > 64 || cfg.Rate < 1 || cfg.Rate > 1000 {
		return cli.AsUsage(invalid("changes", "1 and up, flows 1 to 64, rate 1 to 1000", "%d changes, %d flows at %d", cfg.Changes, cfg.Flows, cfg.Rate))
	}
	if cfg.Ocsctl, err = bedReady(t, &cfg.Config, o.Verbose, testbed.LacksRouters()); err != nil {
		return err
	}
	for i := range runs {
		r := &runs[i]
		core := *c
		core.Pods, core.SwitchPorts = r.Pods, max(r.Pods, c.SwitchPorts)
		if cfg.Drain = r.Drain; r.Drain {
			core.Drain = &fabric.Drain{WithinMillis: map[bool]int{false: 30_000, true: 8_000}[cfg.Kill]}
		}
		if n := core.Switches(); n < 3 {
			return cli.AsUsage(invalid("spine-ports", "a core of 3 optical switches and more: those that are taken out", "%d switches", n))
		}
		cfg.Parts = bgpParts(&core)
		if cfg.Fabric, err = fabric.New(fabric.Params{Name: "testbed", Core: &core}); err != nil {
			return cli.AsUsage(err)
		}
		if !o.JSON {
			fmt.Fprintf(t.Out, "%d pods, %s drained\n moved   of  asked to first light  to last  to last route  routes    sent  lost  strays  struck\n", r.Pods, map[bool]string{true: "routers", false: "nothing"}[r.Drain])
			cfg.Told = func(x testbed.PodsChange) {
				fmt.Fprintf(t.Out, "%6d %4d %18.2f s %6.2f s %11.2f s %7d %7d %5d %7d  %s\n", x.Moved, x.Links, ms(x.AskedMicros)/1000, ms(x.LightMicros)/1000, ms(x.ConvergeMicros)/1000, x.Routes, x.Sent, x.Lost, x.Stray, x.Struck)
			}
		}
		if r.Changes, err = testbed.Pods(ctx, cfg); err != nil {
			return err
		}
	}
	if o.JSON {
		return cli.PrintJSON(t.Out, runs)
	}
	bgpTables(t, runs)
	return nil
}

// bgpRuns reads which testbeds there are to be.
func bgpRuns(scales, modes string) (out []bgpRun, err error) {
	for word := range strings.SplitSeq(scales, ",") {
		n, wrong := strconv.Atoi(word)
		if wrong != nil || n < 2 || n > 8 {
			return nil, cli.AsUsage(invalid("pods", "2 to 8, with commas between", "%q", scales))
		}
		for mode := range strings.SplitSeq(modes, ",") {
			if mode != "yes" && mode != "no" {
				return nil, cli.AsUsage(invalid("drain", "no, yes or no,yes", "%q", modes))
			}
			out = append(out, bgpRun{Pods: n, Drain: mode == "yes"})
		}
	}
	return out, nil
}

// beside is a command of the same folder as this one, or of the path.
func beside(name string) (string, error) {
	if self, err := os.Executable(); err == nil {
		if at := filepath.Join(filepath.Dir(self), name); exec.Command(at, "version").Run() == nil {
			return at, nil
		}
	}
	return exec.LookPath(name)
}

// bgpTables writes both tables, each row by the means of its changes.
func bgpTables(t cli.Terminal, runs []bgpRun) {
	row := func(name, theirs string, of func(*bgpRun, *testbed.PodsChange) bool) {
		fmt.Fprintf(t.Out, "%-14s %6s", name, theirs)
		for _, drain := range []bool{false, true} {
			var n, sum [2]int64 // light that goes, that comes
			lost, sent := 0, 0
			for i := range runs {
				for j := range runs[i].Changes {
					if x := &runs[i].Changes[j]; runs[i].Drain == drain && of(&runs[i], x) {
						in := map[bool]int{true: 1}[x.In]
						n[in]++
						sum[in] += x.ConvergeMicros
						lost, sent = lost+x.Lost, sent+x.Sent
					}
				}
			}
			if n[0] == 0 || n[1] == 0 {
				fmt.Fprintf(t.Out, " %33s", "-")
				continue
			}
			fmt.Fprintf(t.Out, " %6.2f %6.2f s, %6d of %7d", ms(sum[0]/n[0])/1000, ms(sum[1]/n[1])/1000, lost, sent)
		}
		fmt.Fprintln(t.Out)
	}
	fmt.Fprintln(t.Out, "convergence    theirs     as it is: goes, comes, lost          drained: goes, comes, lost")
	for _, x := range []struct {
		pods   int
		theirs string
	}{{2, "2.33 s"}, {3, "2.25 s"}, {4, "2.38 s"}} {
		row(fmt.Sprintf("%d pods", x.pods), x.theirs, func(r *bgpRun, c *testbed.PodsChange) bool { return r.Pods == x.pods && c.Step == 0 })
	}
	for _, x := range []struct {
		step         int // of bgpParts
		name, theirs string
	}{{1, "12.5 %", "2.19 s"}, {2, "25 %", "2.38 s"}, {3, "50 %", "2.60 s"}} {
		row(x.name, x.theirs, func(r *bgpRun, c *testbed.PodsChange) bool {
			return r.Pods == runs[len(runs)-1].Pods && c.Step == x.step
		})
	}
}
