package hostile

import (
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"ringlight/planner/fabric"
	"ringlight/planner/server"
	"ringlight/proto/limit"
	"ringlight/proto/mqtt"
)

// maxRate bounds the messages a second of an attack. chosen: more than four voices sign.
const maxRate = 1_000_000

var (
	wanted Config
	seals  Seals
	only   = flag.String("only", "", "attacks, with commas between them; none: all")
	asJSON = flag.Bool("json", false, "print a JSON object for each attack and nothing else")
)

func init() {
	cfg := &wanted
	flag.StringVar(&cfg.Broker, "broker", "", "MQTT broker, on this machine only; none, and no -stolen-key: nothing is run")
	flag.StringVar(&cfg.Fabric, "fabric", "f1", "fabric")
	flag.IntVar(&cfg.Nodes, "nodes", 64, "nodes of the fabric")
	flag.Uint64Var(&cfg.Seed, "seed", 1, "seed of mutants and orders")
	flag.Float64Var(&cfg.Scale, "scale", 1, "part of the full counts")
	flag.DurationVar(&cfg.Flood, "flood", time.Minute, "length of the long attacks")
	flag.StringVar(&cfg.Socket, "socket", "", "unix socket of an agent of one's own; none: its attacks are not tried")
	flag.StringVar(&cfg.Core, "core", "", "fabric of circuits on the same broker, its first jobs are this test's; none: its attacks are not tried")
	flag.StringVar(&seals.NodeKey, "stolen-key", "", "a node's key, of a fabric whose messages are sealed; none: they are not")
	flag.IntVar(&seals.Node, "stolen-node", 9, "the node of -stolen-key")
	flag.StringVar(&seals.TrustFile, "trust", "", "the fabric's trust document, with -stolen-key")
	flag.StringVar(&seals.Cert, "cert", "", "certificate of an operator who may operate, with -stolen-key")
	flag.StringVar(&seals.Key, "key", "", "the operator's key, with -stolen-key")
	flag.StringVar(&seals.Token, "token", "", "a token of ocsctl pki token, with -stolen-key")
	flag.IntVar(&seals.TokenNode, "token-node", 63, "the node of -token")
	flag.StringVar(&seals.Listen, "listen", "", "be the broker, one that is not to be trusted, at this address: `HOST:PORT`; with -stolen-key, in the place of -broker")
	flag.StringVar(&seals.ListenCert, "listen-cert", "", "that broker's certificate")
	flag.StringVar(&seals.ListenKey, "listen-key", "", "that broker's key")
	flag.StringVar(&seals.Control, "control", "", "unix socket of ocs-sim agents -control, with -stolen-key")
	flag.IntVar(&seals.Bypasses, "bypasses", 200, "nodes that lose their supply quietly, and as many under the attack, with -stolen-key")
	flag.IntVar(&seals.Rate, "rate", 4000, "messages a second of the attack with -stolen-key; 0: none, bypasses are measured quietly and that is all")
}

// Goal: no stranger, no holder of a node's key and no broker moves light, stops a planner
// or an agent, or keeps rings from being as they were soon after.
// Method: attacks one after the other, and questions to the planner after each;
// make bench-hostile and bench-sealed start whom they are made against.
func TestStranger(t *testing.T) {
	cfg := wanted
	if cfg.Broker == "" && seals.NodeKey == "" {
		t.Skip("skipped: nobody to attack; make bench-hostile and bench-sealed run it")
	}
	if cfg.Nodes < 1 || cfg.Nodes > fabric.MaxNodes {
		t.Fatalf("-nodes %d: want 1 to %d", cfg.Nodes, fabric.MaxNodes)
	}
	if seals.Rate < 0 || seals.Rate > maxRate {
		t.Fatalf("-rate %d: want 0 to %d", seals.Rate, maxRate)
	}
	if seals.NodeKey != "" {
		cfg.Seals = &seals
		if host, _, err := net.SplitHostPort(seals.Listen); err != nil || !mqtt.IsLoopback(host) {
			t.Fatalf("-listen %q: want HOST:PORT on a loopback address, with -stolen-key", seals.Listen)
		}
		good, err := server.StartBroker("127.0.0.1:0", limit.Logger(nil))
		if err != nil {
			t.Fatal(err)
		}
		defer good.Close()
		cfg.Broker = good.URL()
	}
	if *only != "" {
		cfg.Only = strings.Split(*only, ",")
	}
	fell := 0
	cfg.Report = func(r Result) {
		held := "held"
		if r.Fell {
			held = "FELL"
		} else if !r.Planning {
			held = "SILENT"
		}
		if held != "held" {
			fell++
		}
		if *asJSON {
			_ = json.NewEncoder(os.Stdout).Encode(r)
			return
		}
		fmt.Printf("%-16s %7d  %-6s answers within %5d ms, rings as before after %5d ms  %s", r.Attack, r.Count, held, r.AnswerMax, r.Back, r.What)
		if r.Note != "" {
			fmt.Printf(" (%s)", r.Note)
		}
		fmt.Printf("\n%s", r.Table)
	}
	if _, err := Run(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	if fell > 0 {
		t.Errorf("%d attacks were not held", fell)
	}
}
