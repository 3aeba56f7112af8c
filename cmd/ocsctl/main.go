// Command ocsctl asks a running planner, and writes fabric descriptions.
package main

import (
	"context"
	"io"
	"maps"
	"slices"

	"ringlight/cmd/cli"
)

// version is set by the linker.
var version = "unknown"

// command is one verb: it reads its own arguments and writes to out.
type command func(ctx context.Context, args []string, out io.Writer) error

// question is a command that asks the planner: it adds its own flags to those of c.
type question func(ctx context.Context, c *clientFlags, args []string, out io.Writer) error

// row makes a row of the table of commands.
func row(name, short string, run command, forms ...string) cli.Command {
	return cli.Command{Name: name, Forms: forms, Short: short,
		Run: func(ctx context.Context, args []string, t cli.Terminal) error { return run(ctx, args, t.Out) }}
}

// asks makes a row of one that asks the planner.
func asks(name, short string, run question, forms ...string) cli.Command {
	return row(name, short, func(ctx context.Context, args []string, out io.Writer) error {
		return run(ctx, &clientFlags{flags: cli.NewFlags(name)}, args, out)
	}, forms...)
}

// keeps makes a row of one on a folder of keys.
func keeps(name, short string, run func(f *pkiFlags, args []string) error, forms ...string) cli.Command {
	return row(name, short, func(_ context.Context, args []string, out io.Writer) error {
		return pkiError(run(newPKI(name, out), args))
	}, forms...)
}

// also is a command under another name.
func also(name string, c cli.Command) cli.Command {
	c.Name = name
	return c
}

// group begins a group of the overview with a command.
func group(name string, c cli.Command) cli.Command {
	c.Group = name
	return c
}

func program() *cli.Program {
	p := &cli.Program{Name: "ocsctl", Version: version, About: about,
		Short: "asks the planner of a fabric, tells it what to do, and prepares its input",
		Nouns: map[string]string{
			"job":    "rings or circuits for a job, from the ask to the release",
			"routes": "of jobs of circuits, on leaves, spines and servers, and ports drained before light moves",
			"fabric": "its description, and planning for another while it runs",
			"plan":   "placements, settings and costs of the published systems, without a planner",
			"pki":    "keys, certificates and rights of planner, nodes, brokers and operators",
		},
		Commands: []cli.Command{
			group("See how it is", asks("status", "where the fabric stands, at a glance, and what breaks next", status)),
			asks("alarm", "what is not as it should be; say that it is known", alarm, "list", "ack ALARM"),
			asks("node", "every node, or one with its bundles, sides and alarms", node, "list", "show NODE"),
			asks("ring", "every ring, or one with its links, their losses and fibres", ringNoun, "list", "show RING"),
			asks("link", "every fibre; have one used again that was held to be cut; count bit errors", link, "list", "clear FIBRE", "qualify FIBRE...|-all"),
			asks("switch", "optical switches; or hold or move one side of a node (G.808.1)", switchSide, "list", "show SWITCH", "lockout|forced|manual|clear NODE SIDE [PEER]"),
			asks("why", "what holds now for a node, a bundle or a switch, and what led to it", why, "NODE[/BUNDLE]", "switch-N[/PORT]"),
			asks("pm", "what a device recorded: light, losses, heat, switching times, by quarters and days", pm, "SUBJECT"),
			asks("watch", "events, births and deaths as they happen", watch),
			asks("trace", "how a generation came into force, as a Chrome trace", trace, "GENERATION"),
			group("Change it", asks("drain", "take nodes out of their rings", takeOut, "NODE...")),
			asks("undrain", "let nodes in again", takeOut, "NODE..."),
			asks("quarantine", "nothing that a node says counts; its ring goes round it", takeOut, "NODE"),
			asks("clear", "forget what keeps a node or switch out of plans", clearNode, "NODE"),
			asks("rollout", "new software to all agents, wave after wave, the light as it is", rolloutNoun, "plan VERSION", "run VERSION", "status", "stop"),
			group("Jobs", row("job submit", "ask for rings, and wait until light is confirmed on every link", jobSubmit, "NAME")),
			row("job list", "jobs that are not released", jobList),
			row("job show", "a job, its rings and its events' number", jobShow, "NAME"),
			row("job watch", "what happens to a job, each event once", jobWatch, "NAME"),
			row("job files", "files for launchers: ranks, hostfile, nccl.env, torch_mesh.json, megatron.env", jobFiles, "NAME"),
			row("job replace", "drain a node of a job, so that a spare takes its place", jobReplace, "NAME NODE"),
			row("job phase", "have a job's circuits be those of another of its phases", jobPhase, "NAME PHASE"),
			row("job traffic", "say what a job of circuits was measured to send; where it is worth it its links move", jobTraffic, "NAME FILE"),
			row("job release", "give a job's rings back", jobRelease, "NAME"),
			row("routes list", "what routers must hold of jobs of circuits, and are known to hold", routesList),
			row("routes push", "bring routers to hold it, by a command, and read it back", routesPush),
			row("routes drain", "have them drain ports whose light will move, by a command or a webhook", routesDrain),
			row("routes said", "say for a router that a port is drained, or in use again", routesSaid),
			asks("circuit", "jobs on optical switches and the circuits that carry them", circuit, "list", "show JOB", "tables [JOB]", "apply FILE", "plan FILE", "flip JOB [PHASE]", "drain SERVER", "undrain SERVER", "connect SWITCH CIRCUIT...", "disconnect SWITCH CIRCUIT..."),
			group("Describe a fabric", row("fabric new", "write a fabric description with the default wiring", fabricNew)),
			asks("fabric show", "what the planner runs, and what it had to refuse", fabricShow),
			row("fabric cabling", "put a cabling sheet into a description, or write its sheet", fabricCabling, "FABRIC [SHEET]"),
			asks("fabric get", "write the description that the planner plans for", fabricGet),
			asks("fabric diff", "in what a description differs, and what an apply would do", fabricEdit, "FILE"),
			asks("fabric apply", "plan for another description, while everything runs", fabricEdit, "FILE"),
			group("Say who may", keeps("pki init", "a root for keys and certificates, offline", pkiInit)),
			keeps("pki planner", "key and certificate of a planner", pkiPlanner, "NAME"),
			keeps("pki broker", "key and certificate of a broker that is no planner", pkiBroker, "NAME"),
			keeps("pki node", "keys and certificates of nodes", pkiNode, "NODES"),
			keeps("pki issuer", "a key that gives nodes certificates, for the planner", pkiIssuer, "NAME"),
			keeps("pki token", "tokens by which nodes ask for their certificates", pkiToken, "NODES"),
			keeps("pki operator", "key and certificate of an operator, and the role", pkiOperator, "NAME"),
			keeps("pki renew", "certificates anew, for the same keys", pkiRenew, "CERT"),
			keeps("pki list", "whose keys are trusted", pkiList),
			keeps("pki revoke", "trust a holder's keys no more", pkiRevoke, "NAME"),
			keeps("pki password", "user and password, for brokers that know no certificates", pkiPassword, "NAMES"),
			keeps("pki mosquitto", "the whole configuration of a mosquitto", pkiMosquitto, "NAME"),
			keeps("pki nats", "the whole configuration of a nats-server", pkiNATS, "NAME"),
			keeps("pki acl", "rights by name, as a broker's configuration", pkiACL),
			also("pki trust show", keeps("pki list", "the same as pki list", pkiList)),
			keeps("pki trust add", "trust a key that somebody else made", pkiAdd, "NAME"),
			also("pki trust revoke", keeps("pki revoke", "the same as pki revoke", pkiRevoke, "NAME")),
			keeps("pki trust renew", "have the nodes' keys replaced", pkiTrustRenew),
			keeps("pki trust sign", "the trust document anew, or by a new root", pkiSign),
			asks("seal", "how far a fabric is with sealed messages, and who would be refused", sealNoun, "check"),
			asks("audit", "who did what, and whether anybody changed the record of it", auditNoun, "list", "verify [FILE]", "follow"),
			asks("context", "where to ask and as whom, under a name", contextNoun, "list", "use NAME", "set NAME", "remove NAME"),
		}}
	for i, name := range slices.Sorted(maps.Keys(planVerbs)) {
		v := planVerbs[name]
		p.Commands = append(p.Commands, cli.Command{Group: []string{"Compute without a planner", ""}[min(i, 1)], Name: "plan " + name, Forms: v.forms, Short: v.short, Run: v.command(name)})
	}
	return p
}

const about = `RINGLIGHT_BROKER, RINGLIGHT_FABRIC, RINGLIGHT_CA, RINGLIGHT_CERT and
RINGLIGHT_KEY stand for -broker, -fabric, -ca, -cert and -key where a flag does
not say otherwise, RINGLIGHT_PASSWORD_FILE for -password-file, RINGLIGHT_CONTEXT for
-context, RINGLIGHT_HTTP for -http.
~/.config/ringlight/ocsctl.json has contexts; see ocsctl context. Another file:
RINGLIGHT_CONFIG. A flag comes before the environment, that before the context.
NO_COLOR: no colours. COLUMNS: how wide tables may be beyond 80 columns.
`

func main() { program().Main() }
