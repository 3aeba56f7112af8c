// Command ocs-sim runs Ringlight on simulated boards.
package main

import (
	"embed"

	"ringlight/cmd/cli"
)

// version is set by the build.
var version = "unknown"

func program() *cli.Program {
	p := &cli.Program{Name: "ocs-sim", Version: version, About: about,
		Short: "runs Ringlight on simulated boards, and repeats the papers' experiments",
		Nouns: map[string]string{"study": "what the papers measured, by our own code", "testbed": "light that carries packets: devices as network namespaces"},
		Commands: []cli.Command{
			{Name: "demo", Short: "broker, planner and a fabric of simulated nodes through a fault trace", Run: demo},
			{Name: "agents", Short: "simulated nodes in real time against a broker", Run: agents},
			{Name: "fleet", Short: "agents and planner on one virtual clock under faults, checked", Run: runFleet},
			{Name: "board", Short: "one simulated board behind a unix socket", Run: board},
			{Name: "core", Short: "broker, planner and agents of simulated MEMS switches while jobs come and go", Run: core},
			{Name: "testbed", Forms: []string{"FILE"}, Short: "a fabric whose light carries packets between network namespaces", Run: testbedUp},
			{Name: "testbed ring", Short: "packets round a ring whose nodes lose their power", Run: testbedRing},
			{Name: "testbed direct", Short: "servers that send on for each other, and the next job's light", Run: testbedDirect},
			{Name: "testbed step", Short: "a training step while light between pods moves", Run: testbedStep},
			{Name: "testbed isolate", Short: "jobs on leaves and spines, alone on their links and not", Run: testbedIsolate},
			{Name: "testbed bgp", Short: "pods that route by BGP while light moves, with routers drained before it and without", Run: testbedBGP},
			{Name: "broker-check", Short: "what a broker, or a cluster of them, lacks of what agents and planners need", Run: runBrokerCheck},
			{Name: "study all", Short: "every study of this list into a folder, with an index", Run: studyAll},
		}}
	for _, s := range studies() {
		p.Commands = append(p.Commands, cli.Command{Name: "study " + s.name, Short: s.what, Run: s.command})
	}
	return p
}

const about = traceVariable + ` names a fault trace where -trace does not.
NO_COLOR: no colours. COLUMNS: how wide tables may be beyond 80 columns.
`

//go:embed help
var helpTexts embed.FS

func help(name string) string { return cli.Help(helpTexts, name) }

func main() { program().Main() }
