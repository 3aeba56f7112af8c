package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/types"

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
func (p *plugin) write(claim types.UID, v *job.View) (name string, err error) {
	dir := filepath.Join(p.Files, string(claim))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	env, err := p.environment(v)
	if err != nil {
		return "", err
	}
	for _, f := range job.Files {
		text, _, err := v.File(f, job.Split{})
		if err != nil {
			return "", err
		}
		if err := whole(filepath.Join(dir, f), text); err != nil {
			return "", err
		}
	}
	text, err := json.MarshalIndent(spec{"0.6.0", p.kind(), []device{{string(claim), edits{env,
		[]mount{{dir, Inside, []string{"ro", "nosuid", "nodev", "bind"}}}}}}}, "", " ")
	if err != nil {
		return "", err
	}
	return p.kind() + "=" + string(claim), whole(p.specOf(claim), text)
}

// environment is what a pod is told: its ring, and where in the order of light the
// GPUs of this node are, by their number.
func (p *plugin) environment(v *job.View) ([]string, error) {
	r := v.Rings[0]
	at := map[int]int{}
	for position, g := range r.GPUOrder {
		if g.Host == p.Node {
			at[g.GPU] = position
		}
	}
	var positions []string
	for gpu := range len(at) {
		position, ok := at[gpu]
		if !ok {
			return nil, fmt.Errorf("job %s: light meets %d GPUs of node %s and not GPU %d", v.ID, len(at), p.Node, gpu)
		}
		positions = append(positions, strconv.Itoa(position))
	}
	env := []string{"RINGLIGHT_JOB=" + v.ID, fmt.Sprintf("RINGLIGHT_GENERATION=%d", v.Generation), fmt.Sprintf("RINGLIGHT_RING=%d", r.Ring),
		fmt.Sprintf("RINGLIGHT_TP=%d", len(r.GPUOrder)), "RINGLIGHT_POSITIONS=" + strings.Join(positions, ","), "RINGLIGHT_FILES=" + Inside}
	nccl, _, err := v.File("nccl.env", job.Split{})
	if err != nil {
		return nil, err
	}
	for _, line := range strings.Split(string(nccl), "\n") {
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

// whole writes a file that nobody sees half of. Its other name begins with a dot
// and ends otherwise: a runtime reads all *.json of the folder.
func whole(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if e := f.Chmod(0o644); err == nil {
		err = e
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
