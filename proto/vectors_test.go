package proto

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/vectors.txt")

func testDesired() Desired {
	return Desired{Version: Version, Node: 19, Term: 2, Generation: 300, Plan: DigestOf([]byte("plan")),
		Rings: []RingAssignment{{Ring: 3, Generation: 299, Position: 3, Size: 8, Policy: PolicyBypass,
			Envelope: Envelope{DetectMaxMicros: 150, DetectMinMicros: 40, SwitchMaxMicros: 250, SwitchMinMicros: 75, SkewMicros: 500},
			Left:     []Candidate{{Bundle: 0, Path: External1, Peer: 18, Others: true}, {Bundle: 0, Path: External2, Peer: 17, Others: true}},
			Right:    []Candidate{{Bundle: 1, Path: External1, Peer: 20, Others: true}, {Bundle: 1, Path: External2, Peer: 21, Others: true, Crossed: true}},
		}},
		Decisions: []RingID{3, 4}, BypassSeq: 7}
}

func testEvent() Event {
	return Event{Version: Version, Node: 19, Session: 0x1122334455667788, Seq: 70000, Kind: EvSwitched,
		Severity: SeverityWarning, AtMicros: 5_000_000_000, Bundle: 1, Path: External2, FromPath: External1,
		Side: Right, Ring: 3, Peer: 21, Cause: CauseLightLost, Measured: -4612, Expected: -4600, Count: 1,
		FirstMicros: 4_999_999_593, Module: 3, Lane: 2, Generation: 300, SideBypassed: true, Text: "µ",
		Ledger: &Ledger{DetectMicros: 96, DecideMicros: 8, BusMicros: 61, SettleMicros: 48, ConfirmMicros: 194}}
}

func testReported() Reported {
	d := testDesired()
	return Reported{Version: Version, Node: 19, Session: 5, Seq: 2, UptimeMicros: 1 << 40, Mode: ModeService,
		SeenTerm: 2, Term: 2, Generation: 300, Plan: d.Plan, StagedTerm: 2, StagedGeneration: 301,
		StagedPlan: DigestOf([]byte("next")), BypassSeq: 7, Rings: d.Rings,
		Bundles: []BundleReport{{Bundle: 0, Path: External1, State: Tuned, Cause: CausePlan, Expected: -4600,
			Measured: -4612, Lit: 1 << External1, Flaps: 1, Calibration: DigestOf([]byte("cal"))},
			{Bundle: 1, Path: Loopback, State: Tuned, Cause: CauseNoCandidate, Expected: -2300, Measured: NoPower, Lit: 1 << Loopback}},
		Sides: []SideReport{{Ring: 3, Side: Left, State: SideWork, Peer: 18},
			{Ring: 3, Side: Right, State: SideClosed, Request: SignalFail, Current: -1, Banned: 3}},
		Alarms:   []Alarm{{Kind: EvPathFailed, Severity: SeverityCritical, Bundle: 1, SinceMicros: 9, Text: "heater stuck"}},
		Measured: d.Rings[0].Envelope, LastEvent: 70000, Dropped: 1, RefusedMessages: 2, UnknownKeys: 3}
}

var testCorr = Corr{0: 0xC0, 15: 0x01}

var testPlan = DigestOf([]byte("plan"))

// goldens are one full and one smallest value of every message.
func goldens() []struct {
	name string
	msg  any
} {
	full := testReported()
	return []struct {
		name string
		msg  any
	}{
		{"a node in a ring", testDesired()},
		{"a node in none", Desired{Version: Version, Term: 1, Generation: 1, Decisions: []RingID{0}}},
		{"commit", Decision{Version: Version, Ring: 3, Term: 2, Generation: 300, Plan: DigestOf([]byte("plan")), Verdict: Commit}},
		{"abort", Decision{Version: Version, Term: 1, Generation: 1, Verdict: Abort}},
		{"acknowledge events", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbAckEvents, Seq: 70000}},
		{"a verb of the future", Command{Version: Version, Node: 19, Term: 2, Session: 5, TTLMillis: 1, Verb: 200}},
		{"prepared", Ack{Version: Version, Node: 19, Session: 5, Phase: PhasePrepare, Term: 2, Generation: 300, CurrentTerm: 2, CurrentGeneration: 299}},
		{"refused", Ack{Version: Version, Node: 19, Session: 5, Phase: PhasePrepare, Code: Invalid, Term: 2, Generation: 300, Corr: testCorr, Field: "rings[0].left", Limit: "8 elements", Reason: "9 elements"}},
		{"a page of events", Ack{Version: Version, Node: 19, Session: 5, Phase: PhaseCommand, Events: []Event{testEvent()}, Next: 2}},
		{"a switch", testEvent()},
		{"a start", Event{Version: Version, Session: 1, Seq: 1, Kind: EvStarted, Count: 1}},
		{"all of a node", testReported()},
		{"a node just started", Reported{Version: Version, Session: 1}},
		{"birth", Presence{Version: Version, Node: 19, Session: 5, Online: true, Boot: 77, Software: "v0.1", GPUs: 4, Bundles: 2, Modules: 8, Mode: ModeService, SeenTerm: 2, Term: 2, Generation: 300, Measured: full.Measured, UnsentEvents: 4, TelemetryMask: 1 << SensorCase}},
		{"death", Presence{Version: Version, Node: 19, Session: 5}},
		{"samples", Health{Version: Version, Node: 19, Session: 5, Seq: 1, Samples: []Sample{{Bundle: 1, Module: 2, Sensor: SensorCase, Value: 318150, AgeMillis: 12}}}},
		{"nothing measured", Health{Version: Version, Session: 5}},
		{"health and the last report", Health{Version: Version, Session: 5, Seq: 2, Reported: 7}},
		{"health of a prompt machine", Health{Version: Version, Session: 5, Seq: 3, Prompt: &Prompt{Priority: 40, Locked: true, WakeP50Micros: 41, WakeP99Micros: 147, WakeMaxMicros: 5000}}},
		{"beat", PlannerState{Version: Version, Planner: 99, Online: true, Term: 2, Seq: 8, PeriodMillis: 5000, Fabric: "f1"}},
		{"planner gone", PlannerState{Version: Version, Planner: 99}},
		{"why", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounWhy, Node: 19, Bundle: -1}},
		{"a fabric under a flood", OpReply{Version: Version, Corr: testCorr, Fabric: &FabricStatus{Name: "f1", Term: 2, Refused: 3, UnknownKeys: 4, Shed: 1 << 40}}},
		{"one page of all", OpReply{Version: Version, Corr: testCorr, Next: 4,
			Fabric: &FabricStatus{Name: "f1", Term: 2, Generation: 300, Nodes: 64, GPUsPerNode: 4, K: 2, TP: 32},
			Nodes:  []NodeStatus{{Node: 19, Online: true, Mode: ModeService, Usable: true, Ring: 3, Want: 300, Generation: 300, Reported: &full}},
			Rings:  []RingStatus{{Ring: 3, Nodes: []NodeID{16, 17, 18, 19}, GPUs: 16, State: RingInService, Generation: 300, Links: 3, LinksConfirmed: 3, Job: "train-7"}},
			Why:    []WhyLine{{Seq: 1, AtMillis: 2, Node: 19, Bundle: -1, Rule: "bypass", Cause: CauseLightLost, Text: "t", Measured: NoPower}},
			Events: []LoggedEvent{{Seq: 1, AtMillis: 2, Event: testEvent()}}}},
		{"not found", OpReply{Version: Version, Corr: testCorr, Code: NotFound, Field: "node", Limit: "0 to 63", Reason: "node 99"}},
		{"an operator's request", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbRequest, Bundle: 1, Side: Right, Request: ForcedSwitch, Path: External2}},
		{"a command with its place in time", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbHostFault, Beat: 70}},
		{"what a drain would cost", OpReply{Version: Version, Corr: testCorr, Cost: &Cost{Rings: []RingID{3}, Jobs: 1, Links: 4, DarkMicros: 500, Joins: []NodeID{20}, Stages: 1}}},
		{"conflict", Ack{Version: Version, Node: 19, Session: 5, Phase: PhasePrepare, Code: Conflict, Term: 2, Generation: 300, Field: "bypass_seq", Limit: "at least 12", BypassSeq: 12}},
		{"a closed side", Event{Version: Version, Node: 19, Session: 5, Seq: 9, Kind: EvClosed, Severity: SeverityWarning, Count: 1, Bundle: 1, Path: Loopback, FromPath: External1, Side: Right, Ring: 3, Peer: 20, Cause: CauseNoCandidate, Measured: NoPower, Expected: NoPower, SideBypassed: true, BypassSeq: 8}},
		{"a job list", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounApply, Bundle: -1, DryRun: true,
			Jobs: []JobSpec{{Job: 1, TP: 8, EP: 8, PP: 2, DP: 4}, {Job: 70000, TP: 1, EP: 1, PP: 1, Servers: 3, Pods: []uint16{0, 5}}}}},
		{"jobs and circuits", OpReply{Version: Version, Corr: testCorr,
			Core:     &CoreStatus{Generation: 9, Switches: 16, Online: 15, Jobs: 2, Placed: 1, Circuits: 8, Tuned: 7, Asked: 6, Granted: 5, Realised: 3, DarkMicros: 31_000},
			Jobs:     []JobStatus{{Job: 1, State: JobShort, Servers: []LeafServers{{Pod: 1, Leaf: 2, Servers: 4}}, Asked: 6, Granted: 5, Realised: 3, Reason: "switch 3 is offline", Domains: []uint16{4, 4, 5, 5}, Stages: 2}},
			Circuits: []CircuitStatus{{Switch: FirstSwitch + 2, A: 1, B: 3, Job: 1, State: Tuned, Loss: 1812}},
			Change:   &ChangeStatus{Placed: 1, Waiting: []JobID{2}, Stages: 2, Created: 4, Removed: 2, Moved: 1, Kept: 2, Worst: 1, WorstOf: 4, Asked: 6, Granted: 5, Realised: 5, DarkMicros: 31_000}}},
		{"jobs with collectives", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounApply, Bundle: -1,
			Jobs: []JobSpec{{Job: 1, TP: 8, EP: 1, PP: 2, DP: 4, Collective: CollectiveHalvingDoubling}, {Job: 2, TP: 1, EP: 1, PP: 1, Servers: 3, Pods: []uint16{0, 5}, Collective: CollectiveAllToAll}}}},
		{"a job with its collective", OpReply{Version: Version, Corr: testCorr,
			Jobs: []JobStatus{{Job: 1, State: JobRealised, Servers: []LeafServers{{Pod: 1, Leaf: 2, Servers: 4}}, Asked: 6, Granted: 5, Realised: 5, Collective: CollectiveDoubleTree}}}},
		{"jobs that are alone", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounApply, Bundle: -1,
			Jobs: []JobSpec{{Job: 1, TP: 1, EP: 1, PP: 1, DP: 48, DurationMillis: 3_600_000, DeadlineMillis: 7_200_000, MayPauseMillis: 60_000}}}},
		{"their routes", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounTables, Bundle: -1, Job: 1}},
		{"two jobs of a leaf-spine core", OpReply{Version: Version, Corr: testCorr,
			Jobs: []JobStatus{{Job: 1, State: JobRealised, Servers: []LeafServers{{Leaf: 2, Servers: 2}}, Asked: 4, Granted: 4, Realised: 4, Seats: []Seat{{Leaf: 2, Server: 1, GPUs: 4}, {Leaf: 3, Server: 0, GPUs: 4}}},
				{Job: 2, State: JobWaiting, Reason: "32 GPUs, 16 are free", Cause: WaitNetwork}},
			Tables: []RoutingTable{{Job: 1, Number: 2, Virtual: 1, Sends: []PortRoute{{Port: 4, Uplink: 7}, {Port: 5, Uplink: 300}}},
				{Job: 1, Spine: true, Number: 3, Virtual: 1, Ports: []uint16{0, 63}},
				{Job: 3, Number: 5, Reaches: []Reach{{Leaf: 1, Port: 2, Uplink: 9}}}}}},
		{"jobs of a direct core", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounApply, Bundle: -1,
			Jobs: []JobSpec{{Job: 1, TP: 1, EP: 1, PP: 1, Servers: 8, Topology: &JobTopology{Degree: 4, Bidirectional: true,
				AllReduce: []Reduce{{Servers: []uint16{0, 1, 2, 3, 4, 5, 6, 7}, Bytes: 1 << 33}}, MP: []Demand{{From: 0, To: 7, Bytes: 1 << 20}}, Method: MethodRandom, Seed: 9}},
				{Job: 2, TP: 1, EP: 1, PP: 1, Servers: 8, Next: 1}}}},
		{"the next one starts", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounFlip, Bundle: -1, Job: 2}},
		{"a job that stands by", OpReply{Version: Version, Corr: testCorr,
			Jobs: []JobStatus{{Job: 2, State: JobStandby, Servers: []LeafServers{{Servers: 4}}, Asked: 8, Granted: 8, Realised: 8, Next: 1,
				Seats: []Seat{{Server: 3, GPUs: 4}, {Server: 5, GPUs: 4}, {Server: 6, GPUs: 4}, {Server: 9, GPUs: 4}},
				Rings: []Ring{{Servers: []uint16{3, 6, 5, 9}, Layers: []uint16{0, 1}}, {Group: -1, Servers: []uint16{3, 5, 9, 6}, Layers: []uint16{2}}}}}}},
		{"a job with a name", OpReply{Version: Version, Corr: testCorr,
			Jobs: []JobStatus{{Job: 1 << 20, State: JobRealised, Servers: []LeafServers{{Leaf: 2, Servers: 2}}, Asked: 4, Granted: 4, Realised: 4, Owner: "train-7"}}}},
		{"beat of a life", PlannerState{Version: Version, Planner: 99, Online: true, Term: 3, Seq: 1, PeriodMillis: 2000, Fabric: "f1", Life: 1 << 63, Layout: 1<<64 - 1, Takeover: true}},
		{"planner stands by", PlannerState{Version: Version, Planner: 99, Seq: 4, PeriodMillis: 2000, Fabric: "f1", Life: 7, Layout: 8, Standby: true}},
		{"of a planner's life", Desired{Version: Version, Term: 1, Generation: 1, Decisions: []RingID{0}, Life: 1 << 63, Layout: 1<<64 - 1}},
		{"of a planner's life", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbDrain, Life: 7}},
		{"a term and its life", Reported{Version: Version, Session: 1, SeenTerm: 4, SeenLife: 7, Layout: 1 << 63}},
		{"drained and isolated", Reported{Version: Version, Session: 1, Mode: ModeIsolated, Drained: true}},
		{"a loopback of which the matrix is not held", Reported{Version: Version, Node: 19, Session: 5, Bundles: []BundleReport{
			{Path: Loopback, State: Tuned, Expected: -2300, Measured: -2310, Lit: 1 << Loopback, Held: HeldMZIs}}}},
		{"a switch with three circuits", Desired{Version: Version, Node: FirstSwitch + 2, Term: 2, Generation: 9, Plan: DigestOf([]byte("plan")), Decisions: []RingID{FirstGroup + 1},
			Circuits: []Circuit{{A: 0, B: 5, Job: 7}, {A: 3, B: 0}, {A: 4095, B: 300, Job: 1 << 20}}}},
		{"all of a switch", Reported{Version: Version, Node: FirstSwitch + 2, Session: 5, Seq: 2, Mode: ModeService, SeenTerm: 2, Term: 2, Generation: 9, Plan: DigestOf([]byte("plan")),
			Circuits: []CircuitReport{{A: 0, B: 5, Job: 7, State: Tuned, Loss: 1812}, {A: 3, B: 0, State: Failed, Loss: NoPower}}, DarkMicros: 31_000,
			Alarms: []Alarm{{Kind: EvPathFailed, Severity: SeverityCritical, PortA: 3, Text: "no light"}}}},
		{"birth of a switch", Presence{Version: Version, Node: FirstSwitch, Session: 5, Online: true, Mode: ModeService, Ports: 32}},
		{"a circuit lost its light", Event{Version: Version, Node: FirstSwitch, Session: 1, Seq: 4, Kind: EvLightLost, Severity: SeverityWarning, Count: 1, PortA: 3, PortB: 9, Job: 7, Measured: NoPower, Expected: 1700}},
		{"a part of a description", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounOffer, Bundle: -1, Page: 49152, Text: "{\"a\":1}", Size: 49159, Plan: &testPlan}},
		{"a fabric is edited", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounEdit, Bundle: -1, DryRun: true, Author: "alice", Plan: &testPlan, Rings: []RingID{3, 70000}, Moves: true}},
		{"what an edit comes to", OpReply{Version: Version, Corr: testCorr, Edit: &EditStatus{Changes: []string{"nodes 64, not 96"}, Refused: []string{"node 95 carries ring 3"}, Dark: []string{"3/2/external1 - 6/2/external2"},
			Drains: []NodeID{95}, Ends: []RingID{3}, Told: 7, Tried: 6, Untried: 140, Unheard: 32, Done: true}}},
		{"what an edit with fibres tried from one end comes to", OpReply{Version: Version, Corr: testCorr, Edit: &EditStatus{Changes: []string{"k 2, then 3"}, Tried: 6, OneWay: 2, Untried: 14}}},
		{"a description", OpReply{Version: Version, Corr: testCorr, Next: 9, Text: "{\"name\":"}},
		{"a fibre is tried", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbTry, Bundle: 2, Path: External2}},
		{"a fibre is tried whose other end is in a ring", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbTry, Bundle: 2, Path: External2, Alone: true}},
		{"a node out for repair", OpReply{Version: Version, Corr: testCorr, Nodes: []NodeStatus{{Node: 19, Mode: ModeDrained, Reason: "drained by alice@head: RMA 4711",
			Drain: &DrainNote{Author: "alice@head", Reason: "RMA 4711", SinceMillis: 1_700_000_000_000}}}}},
		{"a ring with its links", OpReply{Version: Version, Corr: testCorr, Rings: []RingStatus{{Ring: 3, Nodes: []NodeID{7, 8}, GPUs: 8, State: RingDegraded, Generation: 9, Links: 1,
			Joints: []Joint{{A: JointEnd{Node: 7, Bundle: 1, Path: External1, State: Tuned, Measured: -4612, Expected: -4600, Losses: 1}, B: JointEnd{Node: 8, Path: External2, State: Failed, Measured: NoPower, Expected: NoPower}, Fibre: "R2-17"}}}}}},
		{"a ring by its GPUs", OpReply{Version: Version, Corr: testCorr, Rings: []RingStatus{{Ring: 3, Nodes: []NodeID{7, 8}, GPUs: 4, State: RingInService, Generation: 9, Links: 1, LinksConfirmed: 1,
			GPUOrder: []RingGPU{{Node: 7, GPU: 1}, {Node: 8, GPU: 1}, {Node: 8}, {Node: 7}}}}}},
		{"a node with a name", OpReply{Version: Version, Corr: testCorr, Nodes: []NodeStatus{{Node: 7, Online: true, Mode: ModeService, Usable: true, Ring: 3, Want: 9, Generation: 9, Name: "rack2-u7"}}}},
		{"an alarm is known", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounAck, Bundle: -1, Author: "alice", Reason: "RMA 4711", Alarm: "7/offline"}},
		{"where the fabric stands", OpReply{Version: Version, Corr: testCorr, Status: &Status{Planner: PlannerCopy{Planner: 1 << 63, Life: 7, Host: "head-1"}, Term: 3, Generation: 300,
			Standbys: []PlannerCopy{{Planner: 98, Life: 8, Host: "head-2"}}, Nodes: NodeCounts{Total: 64, Online: 62, Silent: 2, Isolated: 1, HostDown: 1, Drained: 1}, Rings: RingCounts{Total: 7, InService: 5, Degraded: 1, Down: 1},
			Spares: 6, Links: 49, Confirmed: 47, Alarms: 2, Acked: 1, Breaks: []Break{{Lose: "node 7", Rings: 1, GPUs: 28, Text: "ring 3 ends"}}, Switches: 16, SwitchesOn: 15, Waiting: []string{"node 9 to answer"}}}},
		{"what the loss of a switch takes", OpReply{Version: Version, Corr: testCorr, Status: &Status{Breaks: []Break{{Lose: "switch 3", Links: 12, Jobs: 2, Down: 1}}}}},
		{"what ages next", OpReply{Version: Version, Corr: testCorr, Status: &Status{Ageing: []Ageing{{Node: 7, Bundle: 1, Module: 3, What: "laser_bias", Is: 52_400, Limit: 60_150, Days: 17}}}}},
		{"two alarms", OpReply{Version: Version, Corr: testCorr, Alarms: []AlarmStatus{
			{ID: "7/offline", SinceMillis: 1_700_000_000_000, Severity: SeverityWarning, Node: new(NodeID), What: "offline", Why: "agent offline", AckAuthor: "alice", AckReason: "RMA 4711", AckMillis: 1_700_000_060_000},
			{ID: "ring-3/degraded", SinceMillis: 1_700_000_000_000, Severity: SeverityCritical, Ring: 3, What: "degraded"}}}},
		{"a fibre is dark", OpReply{Version: Version, Corr: testCorr, Alarms: []AlarmStatus{{ID: "fibre-R2-17", SinceMillis: 1_700_000_000_000, Severity: SeverityWarning, Node: new(NodeID), Peer: new(NodeID), What: "fibre R2-17 is dark", Why: "light was lost at both ends",
			Check: "fibre_dark", Subject: "fibre R2-17", State: HealthDegraded, Remedy: "clean or change it", Under: "7/dead"}}}},
		{"fibres", OpReply{Version: Version, Corr: testCorr, Links: []LinkStatus{{Fibre: "R2-17", A: JointEnd{Node: 7, Bundle: 1, Path: External1, State: Tuned, Measured: -4612, Expected: -4600}, B: JointEnd{Node: 8, Path: External2, State: Blocked, Measured: NoPower, Expected: NoPower},
			State: FibreDoubted, Ring: 3, SinceMillis: 1_700_000_000_000, NextMillis: 1_700_000_008_000}}}},
		{"how well a fabric is", OpReply{Version: Version, Corr: testCorr, Status: &Status{Health: HealthFailed, RingsWanted: 7, GPUs: 160, GPUWanted: 224, SparesWanted: 8, Unproven: 3}}},
		{"how a generation came", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounTrace, Bundle: -1, Generation: 300}},
		{"three moments of a generation", OpReply{Version: Version, Corr: testCorr, Trace: []TraceMark{{Stage: TraceAsked, AtMicros: 70_000_000, Text: "ring 3: 19 bypassed"}, {Stage: TracePrepared, AtMicros: 70_004_100, Node: new(NodeID)},
			{Stage: TraceSwitched, AtMicros: 69_999_000, Node: new(NodeID), Peer: 21, Side: Right, Ledger: &Ledger{DetectMicros: 96, DecideMicros: 8, BusMicros: 61, SettleMicros: 48, ConfirmMicros: 194}}}}},
		{"whom to trust", Trust{Version: Version, Fabric: "f1", Edition: 7, Root: PublicKey{9}, NodeKeys: 64, Nodes: DigestOf([]byte("keys")),
			Keys: []TrustedKey{{Public: PublicKey{1}, Name: "f1/planner/a", Role: RolePlanner}, {Public: PublicKey{2}, Name: "f1/op/alice", Role: RoleOperate}, {Public: PublicKey{3}, Name: "f1/op/alice", Role: RoleOperate}}}},
		{"whom to trust, with an issuer", Trust{Version: Version, Fabric: "f1", Edition: 9, Root: PublicKey{9}, Issuers: []PublicKey{{4}, {5}}, Ended: []EndedKeys{{Node: 7, Edition: 8}}, Renew: 9}},
		{"whom to trust, with former issuers", Trust{Version: Version, Fabric: "f1", Edition: 9, Root: PublicKey{9}, Issuers: []PublicKey{{4}, {5}}, Former: []PublicKey{{6}, {7}}, Renew: 9}},
		{"with a token", CertRequest{Version: Version, Node: 7, Public: PublicKey{1}, Token: "-----BEGIN CERTIFICATE-----"}},
		{"another key", CertRequest{Version: Version, Node: 7, Public: PublicKey{2}}},
		{"a certificate", CertAnswer{Version: Version, Node: 7, Public: PublicKey{1}, Edition: 9, Token: KeyName{3}, Until: 1_800_000_000, Chain: "-----BEGIN CERTIFICATE-----", Roots: "-----BEGIN CERTIFICATE-----"}},
		{"none", CertAnswer{Version: Version, Node: 7, Public: PublicKey{2}, Refused: "the token was used by another key"}},
		{"ask for another", CertAnswer{Version: Version, Node: 7, Public: PublicKey{1}, Renew: true}},
		{"nobody yet", Trust{Version: Version, Fabric: "f1", Edition: 1, Root: PublicKey{9}}},
		{"beat of a host", PlannerState{Version: Version, Planner: 99, Online: true, Term: 3, Seq: 1, PeriodMillis: 2000, Fabric: "f1", Life: 1 << 63, Host: "head-1"}},
		{"beat of one that was elected", PlannerState{Version: Version, Planner: 99, Online: true, Term: 3, Seq: 1, PeriodMillis: 2000, Fabric: "f1", Life: 1 << 63, Host: "head-1", Election: 1<<64 - 1, Stored: 4097}},
		{"one that follows", PlannerState{Version: Version, Planner: 99, Term: 3, PeriodMillis: 2000, Fabric: "f1", Life: 8, Standby: true, Host: "head-2", Election: 1<<64 - 1, Stored: 4096}},
		{"who leads, and who follows", OpReply{Version: Version, Corr: testCorr, Status: &Status{Planner: PlannerCopy{Planner: 99, Life: 7, Host: "head-1"}, Term: 3, Since: 1_700_000_000_000,
			Standbys: []PlannerCopy{{Planner: 99, Life: 8, Host: "head-2", Behind: 1}}}}},
		{"a switch on real hardware", Event{Version: Version, Node: 19, Session: 5, Seq: 9, Kind: EvSwitched, Severity: SeverityWarning, Count: 1, Bundle: 1, Path: External2, FromPath: External1, Side: Right, Ring: 3, Peer: 21, Cause: CauseLightLost, Measured: NoPower, Expected: NoPower,
			Ledger: &Ledger{DetectMicros: 95, DecideMicros: 131, BusMicros: 64, SettleMicros: 52, ConfirmMicros: 210}, LedgerMark: RealClock | DetectModelled}},
		{"birth of one that can be restarted", Presence{Version: Version, Node: 19, Session: 5, Online: true, Software: "v2", Mode: ModeService, Features: FeatureRestart}},
		{"beat of one that gives leave", PlannerState{Version: Version, Planner: 99, Online: true, Term: 3, Seq: 1, PeriodMillis: 2000, Fabric: "f1", Life: 7, Features: FeatureRestart}},
		{"beat where the broker keeps nothing", PlannerState{Version: Version, Planner: 99, Online: true, Term: 3, Seq: 1, PeriodMillis: 2000, Fabric: "f1", Life: 7, Features: FeatureRestart, Call: 2}},
		{"how far nodes are with seals", OpReply{Version: Version, Corr: testCorr, Nodes: []NodeStatus{{Node: 19, Online: true, Mode: ModeService, Features: FeatureRestart | FeatureSeals | FeatureSealed | FeatureJudges}}}},
		{"how far the planner is", OpReply{Version: Version, Corr: testCorr, Fabric: &FabricStatus{Name: "f1", Term: 3, Nodes: 20, Features: FeatureSeals | FeatureSealed | FeatureJudges | FeatureEnforce}}},
		{"an agent starts anew", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbRestart, Life: 7, Beat: 9, Software: "v2"}},
		{"a question is answered", Reported{Version: Version, Node: 19, Session: 5, Answers: &testCorr}},
		{"leave is asked for", Reported{Version: Version, Node: 19, Session: 5, AsksRestart: true}},
		{"software goes out", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounRollout, Bundle: -1, Author: "alice", Software: "v2"}},
		{"firmware goes out", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounRollout, Bundle: -1, Author: "alice", Software: "1.2.0", Firmware: true}},
		{"modules take firmware", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbFirmware, Life: 7, Beat: 9, Software: "1.2.0"}},
		{"how far firmware is", OpReply{Version: Version, Corr: testCorr, Rollout: &RolloutStatus{State: RolloutRunning, Software: "1.2.0", Firmware: true, Wave: 2, Nodes: 64, Current: 11, Back: 11, Waiting: "node 0 carries ring 1"}}},
		{"how a roll-out stands", OpReply{Version: Version, Corr: testCorr, Next: 3, Rollout: &RolloutStatus{State: RolloutStopped, Software: "v2", Author: "alice", SinceMillis: 1_700_000_000_000,
			Reason: "node 19 runs v1, was to run v2", Node: new(NodeID), Wave: 2, Nodes: 64, Current: 11, Back: 10, UnderWay: []RolloutNode{{Node: 7, Why: "told, not back yet", ByHand: true}},
			Waves: []RolloutWave{{Wave: 3, Size: 10, Nodes: []NodeID{1, 6}}}, Left: []RolloutNode{{Node: 9, Why: "agent offline"}}, LeftTotal: 1, Waiting: "ring 3 is degraded"}}},
		{"records of a bundle", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounBins, Node: 19, Bundle: -1, Page: 1_888_889, Bins: &BinScope{Place: 1, Path: External2, Module: -1}}},
		{"records of days", Command{Version: Version, Node: 19, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbBins, Next: 1_888_897, Life: 7, Beat: 9, Bins: &BinScope{Days: true, Place: -1, Module: -1}}},
		{"circuits by hand", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounConnect, Node: FirstSwitch + 3, Bundle: -1, Names: []string{"7A-9B"}, Gone: []string{"7A-1B", "8A-9B"}}},
		{"circuits for a switch", Command{Version: Version, Node: FirstSwitch + 3, Term: 2, Session: 5, Corr: testCorr, TTLMillis: 2000, Verb: VerbConnect, Life: 7, Beat: 9, Connect: []string{"7A-9B"}, Disconnect: []string{"7A-1B"}}},
		{"bins", Ack{Version: Version, Node: 19, Session: 5, Phase: PhaseCommand, Corr: testCorr, Next: 1_888_890, Bins: []Bin{{From: 1_700_000_100, Quantity: RxPower, Min: -4900, Avg: -4612, Max: -4500, Samples: 90}, {From: 1_700_000_100, Quantity: CaseTemperature, Min: 311_000, Avg: 312_000, Max: 313_000, Samples: 3, Suspect: true}}}},
		{"bins for people", OpReply{Version: Version, Corr: testCorr, Next: 1_888_890, Bins: []Bin{{From: 1_700_000_100, Quantity: InsertionLoss, Min: 1900, Avg: 2000, Max: 2100, Samples: 90}}}},
		{"the audit chain", OpRequest{Version: Version, Corr: testCorr, TTLMillis: 5000, Noun: NounAudit, Bundle: -1, Page: 300}},
	}
}

// golden is the value of a name.
func golden(name string) any {
	for _, g := range goldens() {
		if g.name == name {
			return g.msg
		}
	}
	panic("no golden " + name)
}

func newOf(msg any) any { return reflect.New(reflect.TypeOf(msg)).Interface() }

// A vector is a payload with what a reader must make of it.
type vector struct {
	message string // which message the topic says it is
	name    string
	payload []byte
	code    Code // OK: accepted
	unknown int
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

func replace(b []byte, old, new string) []byte {
	if !bytes.Contains(b, unhex(old)) {
		panic("twin: " + old + " is not in the golden")
	}
	return bytes.Replace(bytes.Clone(b), unhex(old), unhex(new), 1)
}

// twins of three goldens: what must be refused, and what must be skipped.
func twins(t *testing.T) []vector {
	desired, decision, health := mustEncode(t, testDesired()), mustEncode(t, golden("commit")), mustEncode(t, golden("samples"))
	huge := append(bytes.Clone(desired), make([]byte, MaxPayload)...)
	v := func(name string, code Code, b []byte) vector { return vector{"Desired", name, b, code, 0} }
	d := func(name string, code Code, b []byte) vector { return vector{"Decision", name, b, code, 0} }
	h := func(name string, code Code, b []byte) vector { return vector{"Health", name, b, code, 0} }
	list := []vector{
		v("empty", Malformed, nil),
		v("truncated in a number", Malformed, desired[:2]),
		v("truncated at the end", Malformed, desired[:len(desired)-1]),
		v("trailing byte", Malformed, append(bytes.Clone(desired), 0)),
		v("oversized", TooLarge, huge),
		v("null", Malformed, unhex("f6")),
		v("an array", Malformed, unhex("80")),
		v("text", Malformed, []byte("{\"version\":1}")),
		v("empty map", Malformed, unhex("a0")),
		v("version 2", WrongVersion, replace(desired, "a80001", "a80002")),
		v("version 2 of another form", WrongVersion, unhex("a2 00 02 01 f6")),
		v("version as text", Malformed, unhex("a1 00 61 31")),
		v("no version", Malformed, unhex("a1 01 01")),
		v("null ring list", Malformed, replace(desired, "0581aa", "05f6aa")),
		v("two rings", TooLarge, replace(desired, "0581aa", "0582aa")),
		v("array header beyond all memory", TooLarge, replace(desired, "0581aa", "059bffffffffffffffaa")),
		v("indefinite array", Malformed, replace(desired, "0581aa", "059faa")),
		v("tagged", Malformed, append(unhex("d9d9f7"), desired...)),
		v("envelope of four", Malformed, replace(desired, "8518961828", "8418961828")),
		v("candidate of six", Malformed, replace(desired, "85000212f5f4", "86000212f5f4")),
		v("path unknown", Invalid, replace(desired, "85000212f5f4", "85000912f5f4")),
		v("path inside the node", Invalid, replace(desired, "85000212f5f4", "85000112f5f4")),
		v("itself as peer", Invalid, replace(desired, "85000212f5f4", "85000213f5f4")),
		v("one fibre twice", Invalid, replace(desired, "85000311f5f4", "85000211f5f4")),
		v("bundle beyond the limit", Invalid, replace(desired, "85000212f5f4", "85100212f5f4")),
		v("bundle wider than a byte", Malformed, replace(desired, "85000212f5f4", "8519010002 12f5f4")),
		v("number for a truth", Malformed, replace(desired, "85000212f5f4", "8500021201f4")),
		v("policy unknown", Invalid, replace(desired, "0500 06", "0507 06")),
		v("ring generation above the plan's", Invalid, replace(desired, "0219012b", "0219012d")),
		v("ring 0", Invalid, replace(desired, "aa0103", "aa0100")),
		v("position outside the ring", Invalid, replace(desired, "03030408", "03080408")),
		v("working candidate not listed", Invalid, replace(desired, "0900", "0902")),
		v("decided nowhere", Invalid, replace(desired, "06820304", "0680")),
		v("plan of 15 bytes", Malformed, replace(desired, "0450", "044f")),
		v("envelope upside down", Invalid, replace(desired, "8518961828", "8518281896")),
		d("duplicate key", Malformed, replace(decision, "010302", "010301")),
		d("keys out of order", Malformed, replace(decision, "01030202", "02020103")),
		d("number longer than needed", Malformed, replace(decision, "a60001", "a6001801")),
		d("key longer than needed", Malformed, replace(decision, "a60001", "a6180001")),
		d("required key missing", Malformed, replace(replace(decision, "a60001", "a50001"), "0202", "")),
		d("last key missing", Malformed, replace(replace(decision, "a60001", "a50001"), "0501", "")),
		d("verdict unknown", Invalid, append(decision[:len(decision)-1:len(decision)-1], 3)),
		d("verdict negative", Malformed, append(decision[:len(decision)-1:len(decision)-1], 0x20)),
		d("verdict as a float", Malformed, append(decision[:len(decision)-1:len(decision)-1], 0xf9, 0x3c, 0)),
		d("term 0", Invalid, replace(decision, "0202", "0200")),
		d("unknown key with a tag", Malformed, append(replace(decision, "a6", "a7"), unhex("1863 c0 00")...)),
		d("unknown key with two equal keys inside", Malformed, append(replace(decision, "a6", "a7"), unhex("1863 a2 00 00 00 00")...)),
		d("unknown key nested too deep", TooLarge, append(replace(decision, "a6", "a7"), unhex("1863"+strings.Repeat("81", MaxNesting)+"00")...)),
		d("unknown key with a long array", TooLarge, append(replace(decision, "a6", "a7"), append(unhex("1863 990101"), make([]byte, 257)...)...)),
		d("unknown text that is not text", Malformed, append(replace(decision, "a6", "a7"), unhex("1863 62 c328")...)),
		d("text as a key", Malformed, append(replace(decision, "a6", "a7"), unhex("6161 00")...)),
		d("more pairs than allowed", TooLarge, replace(decision, "a6", "b841")),
		h("sample of four", Malformed, replace(health, "850102", "840102")),
		h("sensor 0", Invalid, replace(health, "85010201", "85010200")),
		h("value wider than 32 bits", Malformed, replace(health, "1a0004dac6", "1b0000000100000000")),
	}
	circuits := mustEncode(t, golden("a switch with three circuits"))
	list = append(list,
		v("circuit of two", Malformed, replace(circuits, "83000507", "820005")),
		v("port in two circuits", Invalid, replace(circuits, "83030000", "83000000")),
		v("circuits for a node", Invalid, replace(circuits, "011a00100002", "0102")),
		v("circuit header beyond the limit", TooLarge, replace(circuits, "0883", "08991001")))
	marked := mustEncode(t, golden("a switch on real hardware"))
	list = append(list,
		vector{"Event", "ledger mark wider than 8 bits", replace(marked, "181d1881", "181d190181"), Malformed, 0},
		vector{"Event", "ledger mark as text", replace(marked, "181d1881", "181d6131"), Malformed, 0})
	skipped := append(replace(decision, "a6", "a9"), unhex("1863 a1 6161 82 f6 f93c00  1864 40  190100 f5")...)
	list = append(list, vector{"Decision", "three keys of the future", skipped, OK, 3})
	most := func(name string, code Code, term string) vector {
		return vector{"Decision", name, replace(decision, "0202", "02 1b "+term), code, 0}
	}
	return append(list,
		most("the highest term", OK, "001fffffffffffff"),
		most("a term one beyond it", Malformed, "0020000000000000"),
		most("the term that has no successor", Malformed, "ffffffffffffffff"))
}

func mustEncode(t *testing.T, msg any) []byte {
	t.Helper()
	b, err := Encode(msg)
	if err != nil {
		t.Fatalf("%T: %v", msg, err)
	}
	return b
}

func messageNamed(name string) any {
	for _, m := range messageTypes {
		if reflect.TypeOf(m).Name() == name {
			return m
		}
	}
	panic(name)
}

// The bytes of every message are fixed for the life of the major, and so is
// what is refused: an implementer checks himself against the same file.
func TestVectors(t *testing.T) {
	var out strings.Builder
	out.WriteString("# message: name / payload in hex / ---- / what a reader makes of it. See ../schema.cddl.\n")
	for _, g := range goldens() {
		b := mustEncode(t, g.msg)
		fmt.Fprintf(&out, "\n%s: %s\n%x\n----\naccepted\n", reflect.TypeOf(g.msg).Name(), g.name, b)
	}
	for _, v := range twins(t) {
		unknown, err := Decode(v.payload, newOf(messageNamed(v.message)))
		if got := AsError(err); err == nil != (v.code == OK) || err != nil && got.Code != v.code {
			t.Errorf("%s %s: %v, want %v", v.message, v.name, err, v.code)
		}
		if unknown != v.unknown && v.code == OK {
			t.Errorf("%s %s: %d unknown keys, want %d", v.message, v.name, unknown, v.unknown)
		}
		text := fmt.Sprintf("%x", v.payload)
		if len(v.payload) > 1024 {
			text = fmt.Sprintf("%x... %d bytes", v.payload[:16], len(v.payload))
		}
		result := fmt.Sprintf("accepted, %d unknown keys", unknown)
		if err != nil {
			result = err.Error()
		}
		fmt.Fprintf(&out, "\n%s: %s\n%s\n----\n%s\n", v.message, v.name, text, result)
	}
	const file = "testdata/vectors.txt"
	if *update {
		if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(want) {
		a, b := strings.Split(got, "\n"), strings.Split(string(want), "\n")
		for i := range a {
			if i >= len(b) || a[i] != b[i] {
				t.Fatalf("%s:%d: got %q; the wire changed", file, i+1, a[i])
			}
		}
		t.Fatalf("%s: %d lines more than now", file, len(b)-len(a))
	}
}

// What is encoded comes back equal, and encodes to the same bytes again,
// whether given by value or by pointer, empty lists and absent optional keys
// included.
func TestRoundTrip(t *testing.T) {
	for _, g := range goldens() {
		b := mustEncode(t, g.msg)
		back := newOf(g.msg)
		if unknown, err := Decode(b, back); err != nil || unknown != 0 {
			t.Errorf("%T %s: %d unknown, %v", g.msg, g.name, unknown, err)
			continue
		}
		if again := mustEncode(t, back); !bytes.Equal(b, again) {
			t.Errorf("%T %s:\n%x\n%x", g.msg, g.name, b, again)
		}
		if a, b := fmt.Sprintf("%+v", g.msg), fmt.Sprintf("%+v", reflect.ValueOf(back).Elem()); a != b && !strings.Contains(a, "0x") {
			t.Errorf("%T %s:\n%s\n%s", g.msg, g.name, a, b)
		}
	}
}

// Every cut of every golden is refused and never panics.
func TestEveryTruncationIsRefused(t *testing.T) {
	for _, g := range goldens() {
		b := mustEncode(t, g.msg)
		for n := range b {
			if _, err := Decode(b[:n], newOf(g.msg)); !errors.Is(err, &Error{Code: Malformed}) {
				t.Fatalf("%T %s cut to %d of %d bytes: %v", g.msg, g.name, n, len(b), err)
			}
		}
	}
}

// A message of a newer minor, with a key added anywhere a map stands, means
// the same to us. Method: key 99 is appended to every map of every golden.
func TestUnknownKeysAreSkippedEverywhere(t *testing.T) {
	for _, g := range goldens() {
		plain := mustEncode(t, g.msg)
		grown, maps := growMaps(plain, shapes[reflect.TypeOf(g.msg)])
		back := newOf(g.msg)
		unknown, err := Decode(grown, back)
		if err != nil || unknown != maps || maps == 0 {
			t.Errorf("%T %s: %d unknown of %d, %v", g.msg, g.name, unknown, maps, err)
			continue
		}
		if again := mustEncode(t, back); !bytes.Equal(plain, again) {
			t.Errorf("%T %s: the skipped keys changed the message", g.msg, g.name)
		}
	}
}

// growMaps adds key 99 to every map of a payload.
func growMaps(in []byte, s *shape) (out []byte, maps int) {
	w := walker{in: in, maxArr: MaxMembers}
	var copyValue func(s *shape)
	copyValue = func(s *shape) {
		start := w.pos
		switch s.kind {
		case shapeMap:
			_, n, _ := w.head()
			out = append(out, 0xb8, byte(n+1))
			if n+1 < 24 {
				out = append(out[:len(out)-2], 0xa0|byte(n+1))
			}
			for range n {
				at := w.pos
				_, key, _ := w.head()
				out = append(out, in[at:w.pos]...)
				for i := range s.fields {
					if s.fields[i].key == key {
						copyValue(s.fields[i].shape)
					}
				}
			}
			out = append(out, 0x18, 99, 0x61, 'x')
			maps++
		case shapeArray:
			_, n, _ := w.head()
			out = append(out, in[start:w.pos]...)
			for range n {
				copyValue(s.elem)
			}
		default:
			if err := w.value(s); err != nil {
				panic(err)
			}
			out = append(out, in[start:w.pos]...)
		}
	}
	copyValue(s)
	return out, maps
}
