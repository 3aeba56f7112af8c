package server

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
)

// BenchmarkStart starts the built agent on a simulated board, without seals and with, in
// turn: from exec to its first sign of life at the embedded broker, on the clock and of
// the processor, the median of b.N of each, and the ratio of the two.
func BenchmarkStart(b *testing.B) {
	broker, err := StartBroker("127.0.0.1:0", nil)
	if err != nil {
		b.Fatal(err)
	}
	defer broker.Close()
	dir := b.TempDir()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		b.Fatal(err)
	}
	for _, args := range [][]string{{"init"}, {"planner", "a"}, {"node", "7"}} {
		if out, err := exec.Command(bin+"/ocsctl", append(append([]string{"pki"}, args...), "-dir", dir+"/pki")...).CombinedOutput(); err != nil {
			b.Fatalf("%v: %s", err, out)
		}
	}
	begin := [2]string{}
	for i, seals := range []string{"", fmt.Sprintf(`,"seal":"enforce","reports":"sealed","trust":"%s/pki/trust.cose","key":"%[1]s/pki/f1-n-7.key"`, dir)} {
		begin[i] = fmt.Sprintf("%s/%d.json", dir, i)
		text := fmt.Sprintf(`{"fabric":"f1","node":7,"broker":%q,"state":"%s/state%d","board":{"kind":"sim","modules":1}%s}`, broker.URL(), dir, i, seals)
		if err := os.WriteFile(begin[i], []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		startOnce(b, broker.URL(), bin, begin[i], i == 1) // calibrates
	}
	var took, used [2][]time.Duration
	for range b.N {
		for i := range begin {
			t, u := startOnce(b, broker.URL(), bin, begin[i], i == 1)
			took[i], used[i] = append(took[i], t), append(used[i], u)
		}
	}
	median := func(list []time.Duration) float64 {
		slices.Sort(list)
		return float64(list[len(list)/2].Microseconds()) / 1000
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(took[0]), "ms-plain")
	b.ReportMetric(median(took[1]), "ms-sealed")
	b.ReportMetric(median(took[1])/median(took[0]), "sealed/plain")
	b.ReportMetric(median(used[0]), "cpu-ms-plain")
	b.ReportMetric(median(used[1]), "cpu-ms-sealed")
	b.ReportMetric(median(used[1])/median(used[0]), "cpu-sealed/plain")
}

// startOnce starts an agent, and kills it at its first sign of life.
func startOnce(b *testing.B, url, bin, config string, sealed bool) (took, used time.Duration) {
	topic := proto.Topics{Fabric: "f1"}.Presence(7)
	link, err := mqtt.Dial(mqtt.Config{Broker: url, ClientID: "looker-on", Subscriptions: []string{topic}})
	if err != nil {
		b.Fatal(err)
	}
	defer link.Close()
	for p := range link.Recv() {
		if p.Kind == proto.LinkUp {
			break
		}
	}
	agent := exec.Command(bin+"/ocs-agent", "run", "-config", config)
	began := time.Now()
	if err := agent.Start(); err != nil {
		b.Fatal(err)
	}
	defer agent.Wait() // killed
	defer agent.Process.Kill()
	limit := time.After(time.Minute)
	for {
		select {
		case p := <-link.Recv():
			var birth proto.Presence
			if p.Kind != proto.Publish || p.Retain {
				continue
			}
			// A link without a guard opens what is sealed, and does not judge it.
			if _, err := proto.Decode(p.Payload, &birth); err != nil || !birth.Online {
				continue
			}
			if (p.Sealed != nil) != sealed {
				b.Fatalf("a sign of life sealed %v, want %v", p.Sealed != nil, sealed)
			}
			return time.Since(began), ran(agent.Process.Pid)
		case <-limit:
			b.Fatal("no sign of life in a minute")
		}
	}
}

// ran is what a process's threads have had of the processor.
func ran(pid int) (all time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid)) // the pattern is good
	for _, file := range threads {
		var d time.Duration
		raw, _ := os.ReadFile(file) // empty: it has ended
		_, _ = fmt.Sscan(string(raw), &d)
		all += d
	}
	return all
}
