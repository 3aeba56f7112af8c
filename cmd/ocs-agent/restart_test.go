package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ringlight/agent"
	"ringlight/cmd/cli"
)

// TestMain lets the tests' own file stand for ocs-agent.
func TestMain(m *testing.M) {
	if os.Getenv("RINGLIGHT_AS_AGENT") != "" {
		main()
	}
	os.Exit(m.Run())
}

// started is an agent as a process of its own, whose file may be replaced.
type started struct {
	t    *testing.T
	path string
	cfg  Config
	file string // configuration
	cmd  *exec.Cmd
}

func startProcess(t *testing.T, stdin bool) *started {
	t.Helper()
	dir := t.TempDir()
	s := &started{t: t, path: filepath.Join(dir, "ocs-agent"), file: filepath.Join(dir, "agent.json")}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, s.path) // as of a package that points to its newest release
	}
	raw := fmt.Appendf(nil, `{"broker":"","state":%q,"log_level":"error","board":{"kind":"sim","bundles":1,"modules":1,"calibrated":false}}`, filepath.Join(dir, "state"))
	if err == nil {
		err = os.WriteFile(s.file, raw, 0o600)
	}
	if err == nil {
		s.cfg, err = readConfig(s.file)
	}
	if err != nil {
		t.Fatal(err)
	}
	from := s.file
	if stdin {
		from = "-"
	}
	s.cmd = exec.Command(s.path, "run", "-config", from)
	s.cmd.Env, s.cmd.Stdin, s.cmd.Stderr = append(os.Environ(), "RINGLIGHT_AS_AGENT=1"), bytes.NewReader(raw), os.Stderr
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	s.session(0)
	return s
}

// session waits for a life that is another one than was.
func (s *started) session(was uint64) uint64 {
	s.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for late := time.Now().Add(20 * time.Second); time.Now().Before(late); <-tick.C {
		ans, err := agent.AskSocket(s.cfg.socketPath(), agent.Question{Verb: "status"})
		if err == nil && ans.Status != nil && uint64(ans.Status.Reported.Session) != was {
			return uint64(ans.Status.Reported.Session)
		}
	}
	s.t.Fatal("no agent answers")
	return 0
}

func (s *started) ask() (code int, says string) {
	var out bytes.Buffer
	code = program().Run(context.Background(), []string{"restart-when-allowed", "-config", s.file, "-wait", "1ms"}, cli.Terminal{Out: &out, Err: &out})
	return code, out.String()
}

// Goal: an agent starts itself anew as what is installed by then, as the same process.
// Method: a link is moved to another file, as a package does it; the number stays, the
// file is the new one.
func TestAgentFollowsItsFile(t *testing.T) {
	s := startProcess(t, false)
	was := s.session(0)
	raw, err := os.ReadFile(s.path)
	if err == nil {
		err = os.WriteFile(s.path+".new", raw, 0o755)
	}
	if err == nil {
		err = os.Rename(s.path+".new", s.path)
	}
	if err != nil {
		t.Fatal(err)
	}
	if code, says := s.ask(); code != cli.Done {
		t.Fatalf("exit %d: %s", code, says)
	}
	s.session(was)
	if exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", s.cmd.Process.Pid)); err != nil || exe != s.path {
		t.Errorf("process %d runs %s, %v; want %s", s.cmd.Process.Pid, exe, err, s.path)
	}
}

// Goal: what cannot follow is refused while the agent goes on.
// Method: a file that is no program, one that does not take the configuration, and a
// configuration that is gone.
func TestWhatCannotFollowIsRefused(t *testing.T) {
	for _, c := range []struct{ name, script, want string }{
		{"no program", "\x7fELF of another machine", "exec format error"},
		{"configuration", "#!/bin/sh\n[ $1 = version ] || { echo 'lock: \"later\": want off, drift or always' >&2; exit 2; }\n", "want off, drift or always"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startProcess(t, false)
			was := s.session(0)
			os.Remove(s.path)
			if err := os.WriteFile(s.path, []byte(c.script), 0o755); err != nil {
				t.Fatal(err)
			}
			if code, says := s.ask(); code != cli.Failed || !strings.Contains(says, c.want) {
				t.Errorf("exit %d: %s", code, says)
			}
			if is := s.session(0); is != was {
				t.Error("the agent went all the same")
			}
		})
	}
	t.Run("stdin", func(t *testing.T) {
		s := startProcess(t, true)
		if code, says := s.ask(); code != cli.Failed || !strings.Contains(says, "came from stdin") {
			t.Errorf("exit %d: %s", code, says)
		}
	})
}

// Goal: what is installed may hang, linger or be loud, and the agent knows its file by
// the name it was started by.
// Method: scripts in its place, with little patience; a name that PATH leads to.
func TestWhatIsInstalledIsAsked(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, script string
		patience     time.Duration
		said, want   string
	}{
		{"says", "echo ' v1 '", time.Minute, "v1", ""},
		{"complains", "echo no; echo the reason >&2; exit 3", time.Minute, "", "exit status 3: the reason"},
		{"is killed", "kill -9 $$", time.Minute, "", "killed"},
		{"hangs", "exec sleep 60", 100 * time.Millisecond, "", "deadline exceeded"},
		{"lingers", "exec >/dev/null 2>&1; exec sleep 60", 100 * time.Millisecond, "", "deadline exceeded"},
		{"leaves a child with its outputs", "sleep 60 & echo v1", 200 * time.Millisecond, "v1", ""},
		{"is loud", "exec yes", 500 * time.Millisecond, "", "broken pipe|deadline exceeded"},
	} {
		path := filepath.Join(dir, strings.ReplaceAll(c.name, " ", "-"))
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+c.script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.patience)
		said, err := (&again{path: path}).ask(ctx, "version")
		cancel()
		matches := err == nil && c.want == ""
		for _, w := range strings.Split(c.want, "|") {
			matches = matches || w != "" && err != nil && strings.Contains(err.Error(), w)
		}
		if said != c.said || !matches {
			t.Errorf("%s: %q, %v; want %q, %q", c.name, said, err, c.said, c.want)
		}
	}
	self, err := os.Executable()
	if err == nil {
		err = os.Symlink(self, filepath.Join(dir, "ocs-agent"))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir()+":"+dir)
	was := os.Args
	t.Cleanup(func() { os.Args = was })
	for arg, want := range map[string]string{"ocs-agent": dir + "/ocs-agent", dir + "/ocs-agent": dir + "/ocs-agent", "hangs": self, "none": self} {
		os.Args = []string{arg}
		if a := startedAs(""); a.path != want || a.not != nil {
			t.Errorf("started as %s: %s, %v; want %s", arg, a.path, a.not, want)
		}
	}
}
