package planner

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/proto"
	"ringlight/sim/script"
)

// Goal: what a planner does about circuits, command by command.
// Method: as TestScripts; commands are in circuitScript.do.
func TestCircuitScripts(t *testing.T) {
	script.Run(t, "testdata/circuits/*.txt", func(t *testing.T) func([]string) string { return (&circuitScript{t: t}).do })
}

type circuitScript struct {
	t   *testing.T
	w   *coreWorld
	out strings.Builder
}

func (s *circuitScript) num(args []string, i int) int {
	n, err := strconv.Atoi(args[i])
	if err != nil {
		s.t.Fatalf("%v: %v", args, err)
	}
	return n
}

func (s *circuitScript) do(args []string) string {
	s.out.Reset()
	switch args[0] {
	case "core": // key=value of a core of four pods
		s.core(args[1:])
	case "start", "restart":
		s.w.start()
	case "lose-store":
		clear(s.w.store)
	case "birth":
		if args[1] == "all" {
			for i := range s.w.switches {
				s.w.birth(i)
			}
			break
		}
		s.w.birth(s.num(args, 1))
	case "die":
		s.w.die(s.num(args, 1))
	case "die-at": // N prepare|commit|applied
		s.w.switches[s.num(args, 1)].dieAt = args[2]
	case "refuse":
		s.w.switches[s.num(args, 1)].refuse = proto.Code(s.num(args, 2))
	case "mute":
		s.w.switches[s.num(args, 1)].mute = args[2] == "on"
	case "break": // N A B: this circuit never comes up
		s.w.switches[s.num(args, 1)].broken[[2]uint16{uint16(s.num(args, 2)), uint16(s.num(args, 3))}] = true
	case "cold": // a loss of power took the light of switch N
		v := &s.w.switches[s.num(args, 1)]
		for a, x := range v.light { // any order: all of them
			v.dead[[2]uint16{a, x.b}] = true
		}
		s.w.report(v)
	case "hand": // N A: somebody at the board removed the circuit of port A
		v := &s.w.switches[s.num(args, 1)]
		delete(v.light, uint16(s.num(args, 2)))
		v.byHand++
		s.w.report(v)
	case "disk":
		s.w.holdDisk = args[1] == "hold"
	case "run":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			s.t.Fatal(err)
		}
		s.w.run(d)
	case "apply", "plan": // id:servers[:pp[:pod,pod[:tp]]] ...
		s.jobs(args[1:], args[0] == "plan")
	case "show":
		s.out.WriteString(s.w.show())
	case "circuits": // of switch N, as lit
		v := &s.w.switches[s.num(args, 1)]
		for a := range uint16(s.w.fab.Core.SwitchSize()) {
			if x, lit := v.light[a]; lit {
				fmt.Fprintf(&s.out, "%d>%d job %d\n", a, x.b, x.job)
			}
		}
	case "consistent":
		if d := s.w.consistent(); d != "" {
			s.out.WriteString(d + "\n")
		}
	default:
		s.t.Fatalf("unknown command %v", args)
	}
	return s.out.String()
}

func (s *circuitScript) core(args []string) {
	c := fabric.DefaultCore(4)
	c.LeavesPerPod, c.SpinesPerPod, c.SpinePorts, c.ServersPerLeaf = 1, 1, 2, 2
	for _, a := range args {
		key, value, _ := strings.Cut(a, "=")
		n, _ := strconv.Atoi(value)
		switch key {
		case "pods":
			c.Pods = n
		case "leaves":
			c.LeavesPerPod = n
		case "spines":
			c.SpinesPerPod = n
		case "spine-ports":
			c.SpinePorts = n
		case "servers":
			c.ServersPerLeaf = n
		case "iota":
			c.IotaMille = n
		case "backup":
			c.Backup = true
		case "uniform":
			c.Wiring = fabric.Uniform
		default:
			s.t.Fatalf("core: unknown %s", key)
		}
	}
	s.w = newCoreWorld(s.t, c)
	s.w.trace = func(line string) { s.out.WriteString(line + "\n") }
}

func (s *circuitScript) jobs(args []string, dry bool) {
	var list []proto.JobSpec
	for _, a := range args {
		parts := strings.Split(a, ":")
		j := proto.JobSpec{Job: proto.JobID(s.num(parts, 0)), TP: 4, EP: 1, PP: 1, Servers: uint32(s.num(parts, 1))}
		if len(parts) > 2 {
			j.PP = uint32(s.num(parts, 2))
		}
		if len(parts) > 3 {
			for _, p := range strings.Split(parts[3], ",") {
				j.Pods = append(j.Pods, uint16(s.num([]string{p}, 0)))
			}
		}
		if len(parts) > 4 {
			j.TP = uint32(s.num(parts, 4))
		}
		list = append(list, j)
	}
	r := s.w.ask(proto.OpRequest{Noun: proto.NounApply, Jobs: list, DryRun: dry})
	if r.Code != proto.OK {
		fmt.Fprintf(&s.out, "%s %s: %s: want %s\n", r.Code, r.Field, r.Reason, r.Limit)
		return
	}
	c := r.Change
	fmt.Fprintf(&s.out, "placed %d, waiting %v; stages %d, circuits +%d -%d, links kept %d moved %d (%d/%d); asked %d granted %d realised %d\n",
		c.Placed, c.Waiting, c.Stages, c.Created, c.Removed, c.Kept, c.Moved, c.Worst, c.WorstOf, c.Asked, c.Granted, c.Realised)
}
