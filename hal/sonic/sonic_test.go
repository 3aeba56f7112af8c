package sonic_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"ringlight/hal"
	"ringlight/hal/sonic"
)

// shelf is a box that remembers.
type shelf struct {
	view sonic.View
	acts []string
}

func newShelf() *shelf {
	s := &shelf{}
	for side := range s.view.Ports {
		s.view.Ports[side] = slices.Repeat([]sonic.Port{{Override: "normal", Light: "blocked"}}, 4)
	}
	s.view.Ports[0][0] = sonic.Port{Override: "normal", Light: "connected", Target: "2B", Label: "rack 7"}
	s.view.Ports[1][1] = sonic.Port{Override: "normal", Light: "connected", Target: "1A"}
	s.view.Paths = []sonic.Path{{Connection: sonic.Connection{ID: "1A-2B", A: "1A", B: "2B"}, Status: "enabled", MilliDB: 1230}}
	return s
}

func (s *shelf) View() sonic.View { return s.view }

func (s *shelf) Update(remove []string, add []sonic.Connection) ([]string, error) {
	s.acts = append(s.acts, fmt.Sprint("update ", remove, add))
	return nil, nil
}

func (s *shelf) SetPorts(list []sonic.PortSetting) error {
	for _, p := range list {
		s.acts = append(s.acts, fmt.Sprintf("port %d %d", p.Side, p.Port))
	}
	return nil
}

func (s *shelf) Records(side, port int, days bool) any { return []int{side, port} }

func (s *shelf) Losses(string) []sonic.FactoryLoss {
	return []sonic.FactoryLoss{sonic.NewFactoryLoss(0, 1, 193_100, 20, 1234)}
}

// Goal: what is asked for is answered as RESTCONF has it; what is wrong is refused with its
// status, its tag and our words, and nothing of it is done.
// Method: requests at a box that remembers what it was told to do.
func TestRequestsAreAnswered(t *testing.T) {
	const data = "/restconf/data/sonic-ocs:sonic-ocs"
	const list = `{"sonic-ocs:OCS_CROSS_CONNECT":{"OCS_CROSS_CONNECT_LIST":[%s]}}`
	const ports = `{"sonic-ocs:OCS_PORT":{"OCS_PORT_LIST":[%s]}}`
	const bulk = "/restconf/operations/sonic-ocs:bulk-update"
	good := `{"cross_connect_id":"3A-3B","a_side":"3A","b_side":"3B"}`
	for _, c := range []struct {
		method, path, body string
		status             int
		want               string // in the answer
		acts               int
	}{
		{"GET", data + "/OCS_CROSS_CONNECT", "", 200, `{"sonic-ocs:OCS_CROSS_CONNECT":{"OCS_CROSS_CONNECT_LIST":[{"cross_connect_id":"1A-2B","a_side":"1A","b_side":"2B"}]}}`, 0},
		{"GET", data + "/OCS_CROSS_CONNECT_TABLE", "", 200, `{"cross_connect_id":"1A-2B","status":"enabled","insertion_loss_dB":"1.23"}`, 0},
		{"GET", data + "/OCS_PORT/OCS_PORT_LIST=1A", "", 200, `{"sonic-ocs:OCS_PORT_LIST":[{"simplex_port_id":"1A","label":"rack 7","config_status":"normal"}]}`, 0},
		{"GET", data + "/OCS_PORT_TABLE/OCS_PORT_LIST=2B", "", 200, `"target_simplex_port_id":"1A","oper_status":"connected"`, 0},
		{"GET", "/restconf/data/sonic-ocs-states:sonic-ocs-states/OCS_CROSS_CONNECT", "", 200, `{"cross_connect_id":"1A-2B","a_side":"1A","b_side":"2B","a_side_status":"tuned","b_side_status":"tuned"}`, 0},
		{"GET", data + "/OCS_FACTORY_INSERTION_LOSS_TABLE/OCS_FACTORY_INSERTION_LOSS_LIST=1A-2B,193.100,20.00", "", 200, `"loss_dB":"1.23"`, 0},
		{"GET", data + "/OCS_FACTORY_INSERTION_LOSS_TABLE/OCS_FACTORY_INSERTION_LOSS_LIST=1A-2B,193.1,20.0", "", 200, `"loss_dB":"1.23"`, 0},
		{"GET", data + "/OCS_FACTORY_INSERTION_LOSS_TABLE/OCS_FACTORY_INSERTION_LOSS_LIST=1A-2B,193.01,20.0", "", 404, "has no", 0},
		{"GET", data, "", 200, `"OCS_PORT_TABLE"`, 0},
		{"PATCH", data + "/OCS_CROSS_CONNECT", fmt.Sprintf(list, good), 204, "", 1},
		{"DELETE", data + "/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST=1A-2B", "", 204, "", 1},
		{"POST", bulk, `{"sonic-ocs:input":{"delete":["1A-2B","4A-4B"],"add":[` + good + `]}}`, 200, `{"sonic-ocs:output":{"deleted_count":1,"added_count":1}}`, 1},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","config_status":"force_blocked"},{"simplex_port_id":"2B","label":"x"}`), 204, "", 2},
		{"PATCH", data + "/OCS_PORT/OCS_PORT_LIST=1A", `{"sonic-ocs:OCS_PORT_LIST":[{"simplex_port_id":"1A","state":"normal"}]}`, 204, "", 1},

		{"GET", data + "/OCS_MIRROR", "", 404, `"error-tag":"invalid-value"`, 0},
		{"GET", "/", "", 404, "there is no such resource", 0},
		{"GET", data + "/OCS_PORT?depth=1", "", 400, "no query parameter is known", 0},
		{"GET", data + "/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST=9A-9B", "", 404, `OCS_CROSS_CONNECT_LIST has no \"9A-9B\"`, 0},
		{"DELETE", data + "/OCS_CROSS_CONNECT/OCS_CROSS_CONNECT_LIST=9A-9B", "", 404, "has no", 0},
		{"DELETE", data + "/OCS_PORT", "", 405, `"error-tag":"operation-not-supported"`, 0},
		{"PUT", data + "/OCS_CROSS_CONNECT", "", 405, "connections take PATCH and DELETE", 0},
		{"PATCH", data + "/OCS_PORT_TABLE", "{}", 405, "operation-not-supported", 0},
		{"GET", bulk, "", 405, "want POST", 0},
		{"POST", bulk, `{"sonic-ocs:input":`, 400, "malformed-message", 0},
		{"POST", bulk, `{}`, 400, "missing-element", 0},
		{"POST", bulk, `{"sonic-ocs:input":{}} {}`, 400, "data follows the end of the JSON", 0},
		{"POST", bulk, `{"sonic-ocs:input":{"add":[{"cross_connect_id":7}]}}`, 400, `"error-tag":"invalid-value"`, 0},
		{"POST", bulk, `{"sonic-ocs:input":{"remove":["1A-2B"]}}`, 400, "unknown-element", 0},
		{"POST", bulk, `{"sonic-ocs:input":{"add":[` + good + `,{"cross_connect_id":"5A-4B"}]}}`, 400, "connection 5A-4B: this switch has ports 1A to 4A and 1B to 4B", 0},
		{"POST", bulk, `{"sonic-ocs:input":{"delete":["1A-2B"],"add":[` + good + `,{"cross_connect_id":"x","a_side":"3A","b_side":"4B"}]}}`, 400, "port 3A is in 3A-3B and in x", 0},
		{"PATCH", data + "/OCS_CROSS_CONNECT", fmt.Sprintf(list, `{"cross_connect_id":"1B-2A"}`), 400, "want ports such as 1A and 17B", 0},
		{"PATCH", data + "/OCS_CROSS_CONNECT", `{"sonic-ocs:OCS_PORT":{}}`, 400, "missing-element", 0},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","label":"x"},{"simplex_port_id":"5B"}`), 400, `port \"5B\"`, 0},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","label":"x"},{"simplex_port_id":"1A","label":"y"}`), 400, "port 1A: it is there twice", 0},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","label":"a\u001b[31m"}`), 400, "want no control characters", 0},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","label":null}`), 400, "a null: want a value", 0},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","label":7}`), 400, `label\" is of the type number: want string`, 0},
		{"PATCH", data + "/OCS_PORT", `[]`, 400, "is of the type array: want object", 0},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","state":"off"}`), 400, "want normal, force_blocked or powered_off", 0},
		{"PATCH", data + "/OCS_PORT", fmt.Sprintf(ports, `{"simplex_port_id":"1A","label":"`+strings.Repeat("x", 129)+`"}`), 400, "want at most 128", 0},
		{"PATCH", data + "/OCS_PORT/OCS_PORT_LIST=1A", `{"sonic-ocs:OCS_PORT_LIST":[{"simplex_port_id":"2A"}]}`, 400, "whose key is", 0},
	} {
		box := newShelf()
		s := sonic.Server{Box: box, Dialect: sonic.Auto}
		status, reply := s.Answer(c.method, c.path, []byte(c.body))
		if status != c.status || !strings.Contains(string(reply), c.want) || len(box.acts) != c.acts {
			t.Errorf("%s %s %s: %d %s, %q; want %d %s, %d acts", c.method, c.path, c.body, status, reply, box.acts, c.status, c.want, c.acts)
		}
		if status >= 400 && !strings.HasPrefix(string(reply), `{"ietf-restconf:errors":{"error":[{"error-type":"application","error-tag":"`) {
			t.Errorf("%s %s: %s is no error of RESTCONF", c.method, c.path, reply)
		}
	}
}

// Goal: a client says what the pages of such boxes show, and takes answers in pieces, without
// a length, and in chunks.
func TestClientTranscript(t *testing.T) {
	for _, dialect := range []sonic.Dialect{sonic.Tables, sonic.States} {
		for _, form := range []string{"length", "end", "chunks"} {
			server := sonic.Server{Box: newShelf(), Dialect: dialect}
			c := sonic.NewClient(sonic.Config{Host: "box:443", Dialect: sonic.Auto})
			c.Begin(hal.BoxGoal{Create: []hal.PortPair{{In: 0, Out: 1}}})
			var said []string
			for len(said) < 50 {
				line, ok := c.Next(nil)
				if !ok {
					break
				}
				r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(line)))
				if err != nil || !r.Close || r.Header.Get("Accept") != "application/yang-data+json" {
					t.Fatalf("%s: %v", line, err)
				}
				body, _ := io.ReadAll(r.Body)
				said = append(said, r.Method+" "+r.RequestURI+string(body))
				status, reply := server.Answer(r.Method, r.RequestURI, body)
				head := fmt.Sprintf("HTTP/1.1 %d X\r\n", status)
				switch form {
				case "length":
					head += fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(reply), reply)
				case "end":
					head += "\r\n" + string(reply)
				default:
					head += fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(reply), reply)
				}
				for part := range slices.Chunk([]byte(head), 50) {
					c.Take(part)
				}
				c.Take([]byte{}) // the connection ends
			}
			const wanted, states = "GET /restconf/data/sonic-ocs:sonic-ocs/", "GET /restconf/data/sonic-ocs-states:sonic-ocs-states/"
			want := []string{wanted + "OCS_PORT", wanted + "OCS_PORT_TABLE", wanted + "OCS_CROSS_CONNECT", wanted + "OCS_CROSS_CONNECT_TABLE", wanted + "OCS_PORT", wanted + "OCS_PORT_TABLE"}
			if dialect == sonic.States {
				want[3], want[5] = states+"OCS_CROSS_CONNECT", states+"OCS_PORT"
			}
			state, err := c.Result()
			pair := hal.PortPair{In: 0, Out: 1}
			if err != nil || !slices.Equal(said, want) || !slices.Equal(state.Map, []hal.PortPair{pair}) || !state.Lights[pair].Lit || state.In != 4 {
				t.Errorf("%s, %s: %v\n got %q\nwant %q\n%+v", dialect, form, err, said, want, state)
			}
		}
	}
}

// Goal: an answer that is cut short, none of RESTCONF or refused is an error of its own kind.
func TestClientAgainstOddAnswers(t *testing.T) {
	for _, c := range []struct {
		reply string
		is    error
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", hal.ErrBoxReply},
		{"", hal.ErrBoxReply},
		{"SSH-2.0-OpenSSH_9.2\r\n", hal.ErrBoxReply},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", hal.ErrBoxReply},
		{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", hal.ErrBoxReply},
		{"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", hal.ErrBoxReply},
		{"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n", hal.ErrBoxDenied},
	} {
		cl := sonic.NewClient(sonic.Config{Host: "box", Dialect: sonic.Auto})
		cl.Begin(hal.BoxGoal{})
		cl.Next(nil)
		cl.Take([]byte(c.reply))
		if cl.Take([]byte{}); cl.Waiting() {
			t.Fatalf("%q: it waits", c.reply)
		}
		if _, err := cl.Result(); !errors.Is(err, c.is) {
			t.Errorf("%q: %v", c.reply, err)
		}
	}
}

// Goal: no request makes a server panic, and all it answers is JSON.
func FuzzServer(f *testing.F) {
	f.Add("PATCH", "/restconf/data/sonic-ocs:sonic-ocs/OCS_PORT", []byte(`{"sonic-ocs:OCS_PORT":{"OCS_PORT_LIST":[{"simplex_port_id":"1A"}]}}`))
	f.Add("POST", "/restconf/operations/sonic-ocs:bulk-update", []byte(`{"sonic-ocs:input":{"add":[{"cross_connect_id":"1A-1B"}]}}`))
	f.Fuzz(func(t *testing.T, method, path string, body []byte) {
		s := sonic.Server{Box: newShelf(), Dialect: sonic.Auto}
		if status, reply := s.Answer(method, path, body); len(reply) > 0 && !json.Valid(reply) || status == 0 {
			t.Errorf("%d %s", status, reply)
		}
	})
}

// Goal: no answer makes a client panic or speak for ever.
func FuzzClient(f *testing.F) {
	f.Add([]byte(`{"sonic-ocs:OCS_PORT":{"OCS_PORT_LIST":[{"simplex_port_id":"1A"},{"simplex_port_id":"1B"}]}}`), uint8(0))
	f.Add([]byte(`{"x":{"y":[{"cross_connect_id":"1A-2B","status":"invalid"}]}}`), uint8(3))
	f.Fuzz(func(t *testing.T, body []byte, at uint8) {
		server := sonic.Server{Box: newShelf(), Dialect: sonic.Auto}
		c := sonic.NewClient(sonic.Config{Host: "box", Dialect: sonic.Auto})
		c.Begin(hal.BoxGoal{Only: true, Create: []hal.PortPair{{In: 2, Out: 3}}, Block: []int{1}})
		for i := range 500 {
			line, ok := c.Next(nil)
			if !ok {
				return
			}
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(line)))
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			said, _ := io.ReadAll(r.Body)
			status, reply := server.Answer(r.Method, r.RequestURI, said)
			if i == int(at) {
				status, reply = 200, body
			}
			c.Take(fmt.Appendf(nil, "HTTP/1.1 %d X\r\nContent-Length: %d\r\n\r\n%s", max(status, 200), len(reply), reply))
			c.Take([]byte{})
		}
		t.Fatal("never ends")
	})
}
