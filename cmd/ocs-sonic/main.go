// Command ocs-sonic takes the words of SONiC's commands for optical circuit switches and asks
// an agent of ours. Called by the names show and config it is those.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/proto/cert"
	"ringlight/proto/mqtt"
)

// version is set by the linker.
var version = "unknown"

const about = `RINGLIGHT_RESTCONF, RINGLIGHT_CA, RINGLIGHT_CERT and RINGLIGHT_KEY stand for
-restconf, -ca, -cert and -key where a flag does not say otherwise. A link of the
name show or config to this file is its command of that name.
`

func program() *cli.Program {
	row := func(name, short string, run func(*call) error, forms ...string) cli.Command {
		return cli.Command{Name: name, Short: short, Forms: forms, Run: func(_ context.Context, args []string, t cli.Terminal) error {
			return command(name, short, args, t, run)
		}}
	}
	return &cli.Program{Name: "ocs-sonic", Version: version, About: about, Short: "shows and configures a circuit switch in SONiC's words",
		Commands: []cli.Command{
			row("show ocs cross-connect config", "connections that are wanted", list("OCS_CROSS_CONNECT", "cross_connect_id", "a_side", "b_side")),
			row("show ocs cross-connect status", "how they are", list(states+"OCS_CROSS_CONNECT", "cross_connect_id", "a_side", "b_side", "a_side_status", "b_side_status")),
			row("show ocs port config", "labels and overrides of ports", list("OCS_PORT", "simplex_port_id", "label", "config_status")),
			row("show ocs port", "how ports are", list(states+"OCS_PORT", "simplex_port_id", "connector_type", "connector_pin", "target_simplex_port_id", "status"), "", "status"),
			row("show ocs factory-insertion-loss", "what paths lost at the maker's", list(states+"OCS_FACTORY_INSERTION_LOSS", "cross_connect_id", "frequency_THz", "temperature_C", "loss_dB")),
			row("config ocs cross-connect add", "make connections; update, where no other is named: others at their ports go; safe: it fails then; overwrite: all others go", add, "ID[,ID] [update|safe|overwrite]"),
			row("config ocs cross-connect delete", "take connections away", remove, "ID[,ID]"),
			row("config ocs port state", "hold a port off, or let it go", set("config_status"), "PORT normal|force_blocked|powered_off"),
			row("config ocs port label", "name a port", set("label"), "PORT TEXT"),
		}}
}

func main() {
	if name := filepath.Base(os.Args[0]); name == "show" || name == "config" {
		os.Args = append([]string{name, name}, os.Args[1:]...)
	}
	program().Main()
}

// call is one command with where it asks.
type call struct {
	words         []string
	out           io.Writer
	url           string
	ca, cert, key string
	client        http.Client
}

func command(name, short string, args []string, t cli.Terminal, run func(*call) error) error {
	fs := cli.NewFlags(name)
	c := &call{out: t.Out, client: http.Client{Timeout: time.Minute}}
	flags(fs, c)
	var err error
	if c.words, err = cli.Parse(fs, args, strings.ToUpper(short[:1])+short[1:]+"."); err != nil {
		return err
	}
	if err := cli.Fill(fs, map[string]string{"restconf": "", "ca": "", "cert": "", "key": ""}); err != nil {
		return cli.AsUsage(err)
	}
	if !strings.Contains(c.url, "://") {
		host, _, _ := net.SplitHostPort(c.url) // the URL is judged
		c.url = map[bool]string{true: "http://", false: "https://"}[mqtt.IsLoopback(host) && c.ca == ""] + c.url
	}
	u, err := url.Parse(c.url)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return cli.Usage("-restconf", "host:port, or http:// or https:// before it", "%q", cli.Clip(c.url))
	case u.Scheme == "http" && !mqtt.IsLoopback(u.Hostname()):
		return cli.Usage("-restconf", "https:// beyond this machine", "%q", cli.Clip(c.url))
	case u.Scheme == "https":
		to, err := cert.Client(u.Hostname(), c.ca, c.cert, c.key)
		if err != nil {
			return cli.AsUsage(err)
		}
		c.client.Transport = &http.Transport{TLSClientConfig: to}
	}
	return run(c)
}

func flags(fs *flag.FlagSet, c *call) {
	fs.StringVar(&c.url, "restconf", "127.0.0.1:8443", "`ADDRESS` of the agent's RESTCONF: host:port, http://host:port or https://host:port")
	fs.StringVar(&c.ca, "ca", "", "PEM `FILE` of its authority, with https")
	fs.StringVar(&c.cert, "cert", "", "PEM `FILE` of the own certificate")
	fs.StringVar(&c.key, "key", "", "PEM `FILE` of the own key")
}

// ask says one thing; answer may be nil.
func (c *call) ask(method, path string, body, answer any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(method, strings.TrimSuffix(c.url, "/")+"/restconf/"+path, bytes.NewReader(raw))
	if err != nil {
		return cli.AsUsage(err)
	}
	r.Header.Set("Content-Type", "application/yang-data+json")
	reply, err := c.client.Do(r)
	if err != nil {
		return cert.Explain(err, c.cert, c.ca)
	}
	defer reply.Body.Close()
	if raw, err = io.ReadAll(reply.Body); err != nil {
		return err
	}
	if reply.StatusCode >= 300 {
		var e struct {
			Errors struct {
				List []struct {
					Message string `json:"error-message"`
				} `json:"error"`
			} `json:"ietf-restconf:errors"`
		}
		if json.Unmarshal(raw, &e) == nil && len(e.Errors.List) > 0 {
			err := errors.New(e.Errors.List[0].Message)
			if reply.StatusCode == http.StatusBadRequest {
				err = cli.AsUsage(err)
			}
			return err
		}
		return fmt.Errorf("the agent answers %s", reply.Status)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(raw, answer)
}
