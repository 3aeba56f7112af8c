package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"ringlight/proto"
	"ringlight/proto/mqtt"
	"ringlight/proto/pki"
)

// Goal: an agent whose site has passwords alone comes to a real broker, says that it is
// there, is thrown out when its password is changed, and is back with the new one by itself.
// Method: mosquitto as ocsctl pki mosquitto -passwords configures it; the agent's command
// with a configuration as docs/security.md has it; a planner's link listens.
func TestAgentComesByPassword(t *testing.T) {
	binary, err := exec.LookPath("mosquitto")
	if err != nil {
		if binary = "/usr/sbin/mosquitto"; exec.Command("test", "-x", binary).Run() != nil {
			t.Skip("mosquitto is not installed")
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	folder, err := pki.Init(filepath.Join(dir, "pki"), "f1", "cluster.example")
	must(err)
	names := func(list ...string) (out []proto.Holder) {
		for _, name := range list {
			h, err := proto.ParseHolder(name)
			must(err)
			out = append(out, h)
		}
		return out
	}
	_, err = folder.Passwords(pki.Request{Names: names("f1/n/7", "f1/planner/a"), Out: filepath.Join(dir, "secrets")})
	must(err)
	at := filepath.Join(dir, "pki", "mosquitto")
	address := [2]string{freeTCP(t), freeTCP(t)}
	_, err = folder.Configure(pki.KindMosquitto, pki.Server{Name: "m", Hosts: []string{"127.0.0.1"}, Days: 1, At: at, Listen: address[0], Others: address[1], ByPassword: true})
	must(err)
	conf := filepath.Join(at, "mosquitto.conf")
	if os.Getuid() == 0 { // it would become another user, who may not enter here
		text, err := os.ReadFile(conf)
		must(err)
		conf = write(t, "mosquitto.conf", "user root\n"+string(text))
	}
	broker := exec.Command(binary, "-c", conf)
	must(broker.Start())
	defer func() { _ = broker.Process.Kill(); _ = broker.Wait() }()

	ca, _ := folder.Files()
	f1 := proto.Topics{Fabric: "f1"}
	planner, err := mqtt.Dial(mqtt.Config{Broker: "mqtts://" + address[1], ClientID: "f1/planner/a", CAFile: ca, PasswordFile: filepath.Join(dir, "secrets", "f1-planner-a.password"),
		Subscriptions: []string{f1.Presence(7)}, MinReconnect: 10 * time.Millisecond, MaxReconnect: 100 * time.Millisecond})
	must(err)
	defer planner.Abandon()
	hears := func() { // that it has come
		t.Helper()
		for end := time.After(20 * time.Second); ; {
			select {
			case p := <-planner.Recv():
				var m proto.Presence
				if p.Kind == proto.Publish && len(p.Payload) > 0 {
					if _, err := proto.Decode(p.Payload, &m); err == nil && m.Online {
						return
					}
				}
			case <-end:
				t.Fatalf("node 7 is not heard; the planner's link: %v", planner.Err())
			}
		}
	}

	secret := filepath.Join(dir, "secrets", "f1-n-7.password")
	cfg, err := readConfig(write(t, "agent.json", fmt.Sprintf(`{"fabric":"f1","node":7,"broker":"mqtts://%s","ca":%q,"password_file":%q,"state":%q,"log_level":"error",
		"board":{"kind":"sim","gpus":4,"bundles":2,"modules":1}}`, address[0], ca, secret, filepath.Join(dir, "state"))))
	must(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cfg.run(ctx, "", cfg.logger().Logger, startedAs("")) }()
	defer func() { stop(); must(<-ended) }()
	hears()

	next := filepath.Join(dir, "next")
	_, err = folder.Passwords(pki.Request{Names: names("f1/n/7"), Out: next})
	must(err)
	must(broker.Process.Signal(syscall.SIGHUP))
	quiet := time.After(time.Second) // some tries
	for waits := true; waits; {
		select {
		case p := <-planner.Recv():
			if p.Kind == proto.Publish && !p.Retain {
				t.Fatalf("comes with the former password: %q", p.Topic)
			}
		case <-quiet:
			waits = false
		}
	}
	must(os.Rename(filepath.Join(next, "f1-n-7.password"), secret))
	hears()
}

// freeTCP is an address that was free a moment ago.
func freeTCP(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
