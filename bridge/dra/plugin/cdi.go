package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
)

// Inside is where a pod finds the files of its ring.
const Inside = "/run/ringlight"

// spec is a CDI file, https://github.com/cncf-tags/container-device-interface.
type spec struct {
	Version string   `json:"cdiVersion"`
	Kind    string   `json:"kind"`
	Devices []device `json:"devices"`
}

type device struct {
	Name  string `json:"name"`
	Edits edits  `json:"containerEdits"`
}

type edits struct {
	Env    []string `json:"env"`
	Mounts []mount  `json:"mounts"`
}

type mount struct {
	Host      string   `json:"hostPath"`
	Container string   `json:"containerPath"`
	Options   []string `json:"options"`
}

func (p *plugin) kind() string { return p.Driver + "/ring" }

func (p *plugin) specOf(claim types.UID) string {
	return filepath.Join(p.CDI, p.Driver+"-"+string(claim)+".json")
}

// write makes the files of a claim and the CDI device that hands them over.
func (p *plugin) write(ctx context.Context, claim types.UID, v *job.View) (name string, err error) {
	texts := map[string][]byte{}
	for _, f := range job.Files {
		if texts[f], err = p.Planner.File(ctx, v.ID, f, job.Split{}, v.Generation); err != nil {
			return "", err
		}
	}
	env, err := p.environment(v, texts)
	if err != nil {
		return "", err
	}
	p.writing.Lock() // two calls may be for one claim
	defer p.writing.Unlock()
	dir := filepath.Join(p.Files, string(claim))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, f := range job.Files {
		if err := cli.ReplaceFile(filepath.Join(dir, f), texts[f], 0o644); err != nil {
			return "", err
		}
	}
	text, err := json.MarshalIndent(spec{"0.6.0", p.kind(), []device{{string(claim), edits{env,
		[]mount{{dir, Inside, []string{"ro", "nosuid", "nodev", "bind"}}}}}}}, "", " ")
	if err != nil {
		return "", err
	}
	return p.kind() + "=" + string(claim), cli.ReplaceFile(p.specOf(claim), text, 0o644)
}

// environment is what a pod is told: its ring, and the ranks of the GPUs of this node by
// their number, which of a ring are their places in the order of light.
func (p *plugin) environment(v *job.View, texts map[string][]byte) ([]string, error) {
	at := map[string]string{}
	for line := range strings.Lines(string(texts["ranks"])) {
		if f := strings.Fields(line); len(f) == 5 && f[1] == p.Node {
			at[f[2]] = f[0]
		}
	}
	if len(at) == 0 {
		return nil, fmt.Errorf("node %s is not of job %s, which was asked for nodes %v", p.Node, v.ID, v.Wish.Nodes)
	}
	var ranks []string
	for gpu := range len(at) {
		rank, ok := at[strconv.Itoa(gpu)]
		if !ok {
			return nil, fmt.Errorf("job %s has %d GPUs of node %s and not GPU %d", v.ID, len(at), p.Node, gpu)
		}
		ranks = append(ranks, rank)
	}
	env := []string{"RINGLIGHT_JOB=" + v.ID, fmt.Sprintf("RINGLIGHT_GENERATION=%d", v.Generation), "RINGLIGHT_POSITIONS=" + strings.Join(ranks, ","), "RINGLIGHT_FILES=" + Inside}
	for _, r := range v.Rings {
		env = append(env, fmt.Sprintf("RINGLIGHT_RING=%d", r.Ring), fmt.Sprintf("RINGLIGHT_TP=%d", len(r.GPUOrder)))
	}
	for line := range strings.SplitSeq(string(texts["nccl.env"]), "\n") {
		if line != "" && !strings.HasPrefix(line, "#") {
			env = append(env, line)
		}
	}
	return env, nil
}

// remove takes away what was written for a claim, if anything.
func (p *plugin) remove(claim types.UID) error {
	if err := os.Remove(p.specOf(claim)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.RemoveAll(filepath.Join(p.Files, string(claim)))
}
