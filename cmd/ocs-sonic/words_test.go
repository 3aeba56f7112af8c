package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"ringlight/cmd/cli"
	"ringlight/cmd/cli/clitest"
)

func typed(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	code = program().Run(context.Background(), args, cli.Terminal{In: strings.NewReader(""), Out: &o, Err: &e})
	return code, o.String(), e.String()
}

// Goal: help of every command fits 80 columns.
func TestHelpFitsAScreen(t *testing.T) {
	lines := [][]string{{"-h"}, {"help"}}
	for _, c := range program().Commands {
		lines = append(lines, append(strings.Fields(c.Name), "-h"))
	}
	for _, args := range lines {
		_, out, _ := typed(args...)
		clitest.Fits(t, strings.Join(args, " "), out)
	}
}

// Goal: each command asks for what its words say, and for nothing when they are not
// acceptable; what the agent refuses is told in its words.
// Method: a switch with 1A-2B that writes down what it is asked; of port 9A it says no.
func TestWordsBecomeRequests(t *testing.T) {
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodGet {
			_, _ = io.WriteString(w, `{"sonic-ocs:OCS_CROSS_CONNECT":{"OCS_CROSS_CONNECT_LIST":[{"cross_connect_id":"1A-2B","a_side":"1A","b_side":"2B"}]}}`)
			return
		}
		asked = append(asked, r.Method+" "+string(raw))
		if strings.Contains(string(raw), "99A") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"ietf-restconf:errors":{"error":[{"error-message":"this switch has ports 1A to 16A"}]}}`)
			return
		}
		if strings.Contains(string(raw), "9A") {
			w.WriteHeader(http.StatusConflict)
			_, _ = io.WriteString(w, `{"ietf-restconf:errors":{"error":[{"error-message":"port 9A is the planner's"}]}}`)
			return
		}
		_, _ = io.WriteString(w, `{"sonic-ocs:output":{"deleted_count":1}}`)
	}))
	defer s.Close()
	t.Setenv("RINGLIGHT_RESTCONF", s.URL)
	for _, x := range []struct {
		line        string
		code        int
		says, wants string
	}{
		{"show ocs cross-connect config", 0, "id     a_side  b_side\n-----  ------  ------\n1A-2B  1A      2B\n", ""},
		{"config ocs cross-connect add 3A..4A-7B..8B", 0, "", `"add":[{"a_side":"3A","b_side":"7B","cross_connect_id":"3A-7B"},{"a_side":"4A","b_side":"8B","cross_connect_id":"4A-8B"}]`},
		{"config ocs cross-connect add 3A-4B overwrite", 0, "", `"delete":["1A-2B"]`},
		{"config ocs cross-connect add 3A-2B safe", 1, "1A-2B has a port of it", ""},
		{"config ocs cross-connect add 9A-9B", 1, "port 9A is the planner's", "9A-9B"},
		{"config ocs cross-connect add 99A-9B", 2, "this switch has ports 1A to 16A", "99A-9B"},
		{"config ocs cross-connect delete 1A-2B,5A-5B", 1, "1 of 2 were not there", `"delete":["1A-2B","5A-5B"]`},
		{"config ocs port state 5A force_blocked", 0, "", `"config_status":"force_blocked","simplex_port_id":"5A"`},
		{"config ocs cross-connect add 3B-4A", 2, "1A-2B,3A-4B", ""},
		{"config ocs cross-connect add 0A-1B", 2, "1A-2B,3A-4B", ""},
		{"config ocs cross-connect add 1A..9A-1B..8B", 2, "1A-2B,3A-4B", ""},
		{"config ocs cross-connect add 1A..99999999A-1B..99999999B", 2, "1A-2B,3A-4B", ""},
		{"config ocs cross-connect add 1A-2B boldly", 2, "update|safe|overwrite", ""},
		{"config ocs cross-connect delete", 2, "ID[,ID]", ""},
		{"config ocs port label 5A", 2, "command", ""},
		{"show ocs cross-connect status now", 2, "now", ""},
		{"show ocs port -restconf http://10.0.0.1:80", 2, "https:// beyond this machine", ""},
		{"show ocs port -restconf ftp://127.0.0.1", 2, "restconf", ""},
	} {
		asked = nil
		code, out, errs := typed(strings.Fields(x.line)...)
		got := strings.Join(asked, "\n")
		if code != x.code || !strings.Contains(out+errs, x.says) || x.wants == "" && got != "" || !strings.Contains(got, x.wants) {
			t.Errorf("%s: exit %d, %s%s, asked %s; want %d, %s, %s", x.line, code, out, errs, got, x.code, x.says, x.wants)
		}
	}
}
