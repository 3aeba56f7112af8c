package agent

import (
	"os"
	"path/filepath"

	"ringlight/proto/metric"
	"ringlight/proto/metric/self"
)

// measured writes down how the agent stands, in the goroutine
// of the caller: the agent's own goroutine makes the copy and nothing else.
func (r *runner) measured(status *Status) *Answer {
	s := &sight{Status: status, JournalBytes: -1}
	if r.cfg.Journal != "" {
		s.JournalBytes = 0
		names, _ := filepath.Glob(filepath.Join(r.cfg.Journal, "journal.*"))
		for _, name := range names {
			if info, err := os.Stat(name); err == nil {
				s.JournalBytes += info.Size()
			}
		}
	}
	var p metric.Page
	metric.AppendAll(&p, Measures, s)
	if me := r.cfg.Process; me != nil {
		own := *me
		own.Look()
		metric.AppendAll(&p, self.Measures, &own)
	}
	if r.cfg.Further != nil {
		r.cfg.Further(&p)
	}
	return &Answer{Text: string(p.Text)}
}
