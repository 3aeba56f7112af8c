// Command ocs-slurm joins a planner and Slurm: a job of Slurm starts when light is
// confirmed on the rings of its nodes, Slurm knows which nodes hang on one ring,
// and drains those that are lost.
package main

import (
	"cmp"
	"embed"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/job"
	"ringlight/planner/jobapi/client"
)

// version is set by the build.
var version = "unknown"

func program() *cli.Program {
	return &cli.Program{Name: "ocs-slurm", Version: version, About: about,
		Short: "starts jobs of Slurm on light, tells it rings and lost nodes",
		Commands: []cli.Command{
			{Name: "prolog", Short: "PrologSlurmctld: ask for the job's rings, wait for light", Run: prolog},
			{Name: "epilog", Short: "EpilogSlurmctld: give them back", Run: epilog},
			{Name: "lit", Short: "TaskProlog: wait for the job's light, refuse a task without", Run: lit},
			{Name: "env", Short: "print a job's environment, by the order of the light", Run: environment},
			{Name: "topology", Short: "rings as Slurm's topology.conf or topology.yaml", Run: topology},
			{Name: "watch", Short: "keep the topology, drain nodes that are lost, resume them", Run: watch},
		}}
}

const about = `RINGLIGHT_HTTP, RINGLIGHT_CA, RINGLIGHT_CERT and RINGLIGHT_KEY stand for -http,
-ca, -cert and -key where a flag does not say otherwise. SLURM_* as Slurm sets
them for its prologs and tasks.
`

//go:embed help
var helpTexts embed.FS

func help(name string) string { return cli.Help(helpTexts, name) }

func main() { program().Main() }

// planner is where to ask.
type planner struct {
	to client.Config
	fs *flag.FlagSet // of the command that asks
}

func newPlanner(command string) *planner {
	p := &planner{fs: cli.NewFlags(command)}
	p.fs.StringVar(&p.to.URL, "http", "http://127.0.0.1:18880", "`URL` of the planner's jobs: http://host:port, https://host:port or unix:PATH; of copies with commas")
	p.fs.StringVar(&p.to.CAFile, "ca", "", "PEM `FILE` of its authority, with https")
	p.fs.StringVar(&p.to.CertFile, "cert", "", "PEM `FILE` of the own certificate")
	p.fs.StringVar(&p.to.KeyFile, "key", "", "PEM `FILE` of the own key")
	return p
}

// client is of a planner that may be away so long.
func (p *planner) client(away time.Duration) (*client.Client, error) {
	if err := cli.Fill(p.fs, map[string]string{"http": "", "ca": "", "cert": "", "key": ""}); err != nil {
		return nil, cli.AsUsage(err)
	}
	p.to.Retry = away
	c, err := client.New(p.to)
	return c, cli.AsUsage(err)
}

// slurmJob is the job that Slurm calls a program for.
type slurmJob struct {
	number, name string // Slurm's, the planner's
	owner        string // with the planner
	nodes        string // as Slurm writes them
	comment      string
}

// ownerOf is who a cluster of Slurm is with the planner.
func ownerOf(cluster string) string { return "slurm/" + cluster }

// theJob reads what Slurm says of it.
func theJob() (j slurmJob, err error) {
	j = slurmJob{number: os.Getenv("SLURM_JOB_ID"), nodes: os.Getenv("SLURM_JOB_NODELIST"), comment: os.Getenv("SLURM_JOB_COMMENT")}
	if j.number == "" || strings.Trim(j.number, "0123456789") != "" {
		return j, cli.Usage("SLURM_JOB_ID", "the number of a job, as Slurm sets it", "%q", cli.Clip(j.number))
	}
	cluster := cmp.Or(os.Getenv("SLURM_CLUSTER_NAME"), "slurm")
	j.name, j.owner = fmt.Sprintf("%s-%s", cluster, j.number), ownerOf(cluster)
	return j, cli.AsUsage(cmp.Or(job.CheckID(j.name), job.CheckOwner(j.owner)))
}

// job reads the flags of a command about a job and what Slurm says of it, and makes the
// client of a planner that may be away so long.
func (p *planner) job(args []string, away *time.Duration) (j slurmJob, c *client.Client, err error) {
	if _, err = cli.ParseNone(p.fs, args, help(p.fs.Name())); err != nil {
		return j, nil, err
	}
	if j, err = theJob(); err == nil {
		c, err = p.client(*away)
	}
	return j, c, err
}
