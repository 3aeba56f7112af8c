package jobapi

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"

	"ringlight/planner"
	"ringlight/planner/job"
	"ringlight/proto"
)

func (a *API) list(w http.ResponseWriter, r *http.Request) error {
	limit, err := number(r, "limit", 1, 1000, math.MaxInt32)
	if err != nil {
		return err
	}
	after, err := number(r, "continue", 0, proto.MaxCount, 0)
	if err != nil {
		return err
	}
	owner, labels := r.URL.Query().Get("owner"), r.URL.Query().Get("labels")
	all, next := jobs{}, uint64(0)
	if err := a.source.Read(r.Context(), func(p *planner.Planner) {
		all.Jobs, next = p.Jobs.List(after, int(limit), func(w *job.Wish) bool {
			return (owner == "" || w.Owner == owner) && (labels == "" || w.Labelled(labels))
		})
		_, all.Number, _ = p.Jobs.Told(math.MaxUint64 - 1)
	}); err != nil {
		return err
	}
	if next != 0 {
		all.Continue = strconv.FormatUint(next, 10)
	}
	return write(w, all)
}

// revision is the event that a request wants the job to be at, 0: any.
func revision(r *http.Request) (uint64, error) {
	text := r.Header.Get(job.FieldRevision)
	if text == "" {
		return 0, nil
	}
	bare, err := strconv.Unquote(text)
	n, e := strconv.ParseUint(bare, 10, 63)
	if err != nil || e != nil || n == 0 {
		return 0, &proto.Error{Code: proto.Invalid, Field: "header " + job.FieldRevision, Limit: "one ETag of the job", Reason: fmt.Sprintf("%.40q", text)}
	}
	return n, nil
}

// unknown refuses what no route has, in the words of the others.
func (a *API) unknown(mux *http.ServeMux) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var allow []string
		for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPost, http.MethodDelete} {
			as := *r
			as.Method = method
			if _, pattern := mux.Handler(&as); pattern != anyPath {
				allow = append(allow, method)
			}
		}
		if allow == nil {
			Refuse(w, &proto.Error{Code: proto.NotFound, Field: "path", Limit: "one of GET /v1/openapi.json", Reason: fmt.Sprintf("%.80q", r.URL.Path)})
			return
		}
		w.Header().Set("Allow", strings.Join(allow, ", "))
		Refuse(w, &proto.Error{Code: proto.Invalid, Field: fieldMethod, Limit: strings.Join(allow, ", "), Reason: proto.Clip(r.Method)})
	}
}
