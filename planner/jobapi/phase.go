package jobapi

import (
	"fmt"
	"net/http"

	"ringlight/planner/job"
	"ringlight/proto"
)

// phase is one of the job's.
type phase struct {
	Phase string `json:"phase"`
}

// follows is what measured traffic came to.
type follows struct {
	Moves   bool   `json:"moves"`                   // its links do
	Fullest uint64 `json:"fullest_link_bytes"`      // of an iteration, over the links that there are
	Then    uint64 `json:"fullest_link_then_bytes"` // over links that are found for it
}

// flip asks for other links of a job that has circuits, or for a step of an exchange of one
// that has rings, if it is this owner's.
func (a *API) flip(r *http.Request, q proto.OpRequest) (reply *proto.OpReply, err error) {
	if q.DryRun, err = isTrial(r); err != nil {
		return nil, err
	}
	id := r.PathValue("id")
	v, err := from(r.Context(), a, func(t *job.Table) (*job.View, error) { return t.Get(id) })
	if err != nil {
		return nil, err
	}
	if err := v.Wish.OwnedBy(r.URL.Query().Get("owner"), id); err != nil {
		return nil, err
	}
	q.Noun, q.Bundle, q.Author = proto.NounFlip, -1, author(r)
	switch {
	case v.Circuits != nil:
		q.Job = v.Circuits.Job
	case q.Name != "" && len(v.Rings) > 0:
		for _, x := range v.Rings {
			q.Rings = append(q.Rings, x.Ring)
		}
	default:
		return nil, &proto.Error{Code: proto.Conflict, Field: "id", Limit: "a job that has circuits", Reason: fmt.Sprintf("%s is %s", id, v.State)}
	}
	return a.source.Ask(r.Context(), q)
}

func (a *API) phase(w http.ResponseWriter, r *http.Request) error {
	var x phase
	if err := decode(w, r, &x, `{"phase": NAME}`, func() bool { return x.Phase != "" }); err != nil {
		return err
	}
	if _, err := a.flip(r, proto.OpRequest{Name: x.Phase}); err != nil {
		return err
	}
	return a.show(w, r)
}

// resumed is after which event a job computes again.
type resumed struct {
	Generation uint64 `json:"generation"`
}

func (a *API) resumed(w http.ResponseWriter, r *http.Request) error {
	var x resumed
	if err := decode(w, r, &x, `{"generation": EVENT}`, func() bool { return x.Generation != 0 }); err != nil {
		return err
	}
	return a.act(w, r, proto.OpRequest{Noun: proto.NounResumed, Name: r.PathValue("id"), Text: proto.Part(r.URL.Query().Get("owner")), Page: x.Generation})
}

func (a *API) traffic(w http.ResponseWriter, r *http.Request) error {
	var x job.Traffic
	if err := decode(w, r, &x, "traffic: allreduce and mp", nil); err != nil {
		return err
	}
	t, bad := x.Spec()
	if bad != nil {
		bad.Field = "topology." + bad.Field
		return bad
	}
	done, err := a.alone(r.Context()) // the planner takes a second for hundreds of servers, and has others to hear between
	if err != nil {
		return err
	}
	defer done()
	reply, err := a.flip(r, proto.OpRequest{Jobs: []proto.JobSpec{{Job: 1, Topology: t}}})
	if err != nil {
		return err
	}
	c := reply.Change
	return write(w, follows{Moves: c.Stages > 0, Fullest: c.FullestNow, Then: c.FullestThen})
}
