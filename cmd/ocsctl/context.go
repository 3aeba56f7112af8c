package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ringlight/cmd/cli"
	"ringlight/proto"
)

// contextJSON is where to ask, and as whom.
type contextJSON struct {
	Broker   string `json:"broker,omitempty"`
	Fabric   string `json:"fabric,omitempty"`
	CA       string `json:"ca,omitempty"`
	Cert     string `json:"cert,omitempty"`
	Key      string `json:"key,omitempty"`
	Password string `json:"password_file,omitempty"`
	HTTP     string `json:"http,omitempty"`
	Insecure bool   `json:"insecure,omitempty"`
}

// contextsJSON is the configuration file.
type contextsJSON struct {
	Context  string                 `json:"context"` // in use
	Contexts map[string]contextJSON `json:"contexts"`
}

func (f *contextsJSON) names() []string { return slices.Sorted(maps.Keys(f.Contexts)) }

// unknown refuses a name that no context has.
func (f *contextsJSON) unknown(name string) error {
	limit := "one of " + strings.Join(f.names(), ", ")
	if len(f.Contexts) == 0 {
		limit = "one that 'ocsctl context set NAME' wrote; there is none yet"
	}
	return wrongUsage("context", limit, "%q", name)
}

// readContexts reads the configuration; without a file it is empty.
func readContexts() (f contextsJSON, name string, err error) {
	f.Contexts = map[string]contextJSON{}
	if name = os.Getenv("RINGLIGHT_CONFIG"); name == "" {
		dir, err := os.UserConfigDir()
		if err != nil {
			return f, "", nil // no home, no file
		}
		name = filepath.Join(dir, "ringlight", "ocsctl.json")
	}
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return f, name, nil
	} else if err != nil {
		return f, name, wrongUsage("context", "a file that can be read", "%v", err)
	}
	if err := proto.DecodeFile(data, &f); err != nil {
		return f, name, wrongUsage("context", `{"context": NAME, "contexts": {NAME: {"broker": URL, ...}}}`, "%s: %v", name, err)
	}
	return f, name, nil
}

// write puts the file in its place whole.
func (f *contextsJSON) write(name string) error {
	if name == "" {
		return wrongUsage("RINGLIGHT_CONFIG", "a file for contexts, where HOME and XDG_CONFIG_HOME are not set", "none of them is")
	}
	data, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return cli.ReplaceFile(name, append(data, '\n'), 0o600)
}

// settle fills in what no flag says: from the environment, then the context.
func (c *clientFlags) settle() error {
	f, _, err := readContexts()
	if err != nil {
		return err
	}
	if err := cli.Fill(c.flags, map[string]string{"context": f.Context}); err != nil {
		return err
	}
	in, known := f.Contexts[c.context]
	if c.context != "" && !known {
		return f.unknown(c.context)
	}
	if !given(c.flags, "insecure") {
		c.insecure = in.Insecure
	}
	return cli.Fill(c.flags, map[string]string{"broker": in.Broker, "fabric": in.Fabric, "ca": in.CA, "cert": in.Cert, "key": in.Key, "password-file": in.Password, "http": in.HTTP})
}

func contextNoun(_ context.Context, c *clientFlags, args []string, out io.Writer) error {
	c.flags.StringVar(&c.http, "http", "", "`URL` of the planner's jobs; see ocsctl job")
	c.register()
	words, err := cli.Parse(c.flags, args, help("context"))
	if err != nil {
		return err
	}
	f, file, err := readContexts()
	if err != nil {
		return err
	}
	if len(words) == 1 && words[0] == "list" {
		return c.print(out, f, func() {
			rows(out, "IN USE\tCONTEXT\tFABRIC\tBROKER", f.names(), func(name string) string {
				x := f.Contexts[name]
				return fmt.Sprintf("%s\t%s\t%s\t%s", cli.Either(name == f.Context, "yes", "-"), name, dash(x.Fabric), dash(x.Broker))
			})
		})
	}
	if len(words) != 2 {
		return wrongUsage("context", "list, use NAME, set NAME or remove NAME", "%q", strings.Join(words, " "))
	}
	name := words[1]
	_, known := f.Contexts[name]
	switch words[0] {
	case "set":
		x := contextJSON{Fabric: c.fabric, CA: c.ca, Cert: c.cert, Key: c.key, Password: c.password, HTTP: c.http, Insecure: c.insecure}
		if given(c.flags, "broker") {
			x.Broker = c.broker
		}
		f.Contexts[name] = x
		f.Context = cmp.Or(f.Context, name)
	case "use", "remove":
		if !known {
			return f.unknown(name)
		}
		if words[0] == "use" {
			f.Context = name
			break
		}
		delete(f.Contexts, name)
		if f.Context == name {
			f.Context = ""
		}
	default:
		return wrongUsage("context", "list, use NAME, set NAME or remove NAME", "%q", words[0])
	}
	if err := f.write(file); err != nil {
		return err
	}
	return c.print(out, f, func() { fmt.Fprintf(out, "context in use: %s (%s)\n", dash(f.Context), file) })
}

func dash(s string) string { return cmp.Or(s, "-") }
