package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"ringlight/proto"
)

// CheckPost refuses what is no address to post to. The error is a *proto.Error of the field.
func CheckPost(field, address string) error {
	if u, err := url.Parse(address); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return &proto.Error{Code: proto.Invalid, Field: field, Limit: "http:// or https://host/path", Reason: proto.Clip(address)}
	}
	return nil
}

// Post tells a server that is not the planner something, as JSON of a media type. It gives
// the status of the answer, and that with its first line; an error: there was no answer.
func Post(ctx context.Context, within time.Duration, address, media string, what any) (status int, said string, err error) {
	text, err := json.Marshal(what)
	if err != nil {
		return 0, "", err
	}
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(text))
	if err != nil {
		return 0, "", err
	}
	q.Header.Set("Content-Type", media)
	// Where a redirect leads would be asked by GET, without what is told, and may say yes.
	c := http.Client{Timeout: within, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	got, err := c.Do(q)
	if err != nil {
		return 0, "", err
	}
	defer got.Body.Close()
	text, _ = io.ReadAll(io.LimitReader(got.Body, 4096)) // what there is of it
	line, _, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
	return got.StatusCode, got.Status + ": " + cmp.Or(line, "it says nothing"), nil
}
