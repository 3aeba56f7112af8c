package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"

	"ringlight/cmd/cli"
	"ringlight/planner/gnmi"
	"ringlight/planner/server"
	"ringlight/proto"
	"ringlight/proto/guard"
)

// Config is the whole of what a planner is configured with. What is done once,
// -takeover and -term-above, has no key: a file would do it at every start.
type Config struct {
	FabricFile string `json:"fabric_file" flag:"fabric-file" usage:"fabric description, JSON, - = stdin (default: the stored one)" doc:"fabric description, JSON; empty: the stored one"`
	Broker     string `json:"broker" flag:"broker" usage:"use this broker, mqtt://host:port or mqtts://host:port, or several of one cluster with commas between, instead of the embedded one" doc:"URL of the MQTT broker, mqtt:// or mqtts://host:port, or several of one cluster with commas between; empty: an embedded one"`
	Cache      string `json:"cache" flag:"cache" usage:"on, or off: nothing is left with the broker" doc:"on: the broker keeps plans and decisions for who comes later; off: nothing is left with it, all goes at QoS 0, plans again until they are reported, and agents are called on each connection; for clusters of brokers that lose what they keep, with cache off of the agents"`
	Listen     string `json:"listen" flag:"listen" usage:"address of the embedded broker (default 127.0.0.1:18830)" doc:"address of the embedded broker; empty: 127.0.0.1:18830, or none where broker is given"`
	HTTP       string `json:"http" flag:"http" usage:"serve live view, metrics and jobs on ADDR, host:port or unix:PATH, several with commas; beyond loopback only with -ca, -cert and -key, to those with a certificate (default: not served)" takes:"ADDR" doc:"serve live view, metrics and jobs on host:port or unix:PATH, on several with commas; beyond loopback only with ca, cert and key, to those with a certificate; empty: not"`
	GNMI       string `json:"gnmi" flag:"gnmi" usage:"serve gNMI on ADDR, host:port; over TLS with -ca, -cert and -key, to those with a certificate, else on loopback alone (default: not served)" takes:"ADDR" doc:"serve gNMI on host:port; over TLS where ca, cert and key are given, to those with a certificate, else on loopback alone; empty: not"`
	Webhook    string `json:"webhook" flag:"webhook" usage:"tell this URL of each alarm, by CloudEvents" takes:"URL" doc:"URL that is told of each alarm as it begins and is over, by CloudEvents; empty: none"`
	State      string `json:"state" flag:"state" usage:"file of the store, where -store is not given" doc:"file of the store, where store is empty"`
	Store      string `json:"store" flag:"store" usage:"the STORE: bolt:FILE, or etcd:URL,URL, which all copies of the planner have open (default: the file of -state)" takes:"STORE" doc:"the store: bolt:FILE, or etcd:URL,URL of a cluster that all copies of the planner have open; empty: the file of state"`
	StoreName  string `json:"store_name" flag:"store-name" usage:"what the store's keys in etcd begin with" doc:"what the store's keys in etcd begin with: one for each fabric"`
	StoreCA    string `json:"store_ca" flag:"store-ca" doc:"PEM file of the certificate authority of etcd, for https"`
	StoreCert  string `json:"store_cert" flag:"store-cert" doc:"PEM file of the own certificate, for etcd over https"`
	StoreKey   string `json:"store_key" flag:"store-key" doc:"PEM file of its key, for etcd over https"`
	CA         string `json:"ca" flag:"ca" doc:"PEM file of the certificate authority, for mqtts"`
	Cert       string `json:"cert" flag:"cert" doc:"PEM file of the own certificate, for mqtts"`
	Key        string `json:"key" flag:"key" doc:"PEM file of its key, for mqtts"`
	Password   string `json:"password_file" flag:"password-file" usage:"FILE with user:password for the broker, which only its owner may read" takes:"FILE" doc:"where the broker asks for user and password: file with user:password, or with the password alone where broker is mqtts://user@host; only its owner may read it; read again at each connection"`
	Passwords  string `json:"passwords" flag:"passwords" usage:"FILE of ocsctl pki password with the users of the embedded broker, in the place of certificates" takes:"FILE" doc:"of the embedded broker: file of ocsctl pki password with the users that are let in, each with the rights of its name, in the place of certificates; read again when it changes; empty: certificates say who comes"`
	Insecure   bool   `json:"insecure" flag:"insecure" doc:"allow mqtt and http to etcd, in the clear, beyond loopback"`
	Seal       string `json:"seal" flag:"seal" usage:"off, warn or enforce: whether messages are sealed, and read when they are not" doc:"off, warn or enforce: planner's messages are sealed with key unless off; what should be sealed and is not is read, read and logged, or not read"`
	Trust      string `json:"trust" flag:"trust" usage:"trust document of ocsctl pki, with -seal" doc:"trust document of ocsctl pki, whose seals count; read again when it changes, and told to all agents"`
	Reports    string `json:"reports" flag:"reports" doc:"plain or sealed: whether agents seal what they report"`
	Issuer     string `json:"issuer" flag:"issuer" usage:"file of ocsctl pki issuer: nodes are given certificates, with -seal and -ca" doc:"file of ocsctl pki issuer: nodes with a token are given certificates, and all are asked for new keys in time; read again when it changes; empty: they are not"`
	LogLevel   string `json:"log_level" flag:"log-level" usage:"debug, info, warn or error" doc:"debug, info, warn or error; read again at SIGHUP"`
	LogFormat  string `json:"log_format" doc:"text or json"`
}

// defaults is an embedded broker on this machine.
func defaults() Config {
	return Config{State: "./ocs-planner.db", Seal: string(guard.Off), Reports: "plain", StoreName: "ringlight", Cache: "on", LogLevel: "info", LogFormat: "text"}
}

// maxConfig bounds a configuration. chosen: far above the longest paths.
const maxConfig = 64 << 10

// readConfig reads file over the defaults; "" is the defaults, "-" stdin.
func readConfig(file string, stdin io.Reader) (Config, error) {
	c := defaults()
	if file == "" {
		return c, nil
	}
	raw, err := readBounded("config", file, stdin, maxConfig)
	if err == nil {
		if err = proto.DecodeFile(raw, &c); err != nil {
			err = cli.Usage("config", "", "%s: %w", file, err)
		}
	}
	return c, err
}

// effective is the configuration of the file that -config names, with what was
// typed over it. typed is the set of flags that was parsed.
func effective(typed *flag.FlagSet, file string, stdin io.Reader) (Config, error) {
	c, err := readConfig(file, stdin)
	if err != nil {
		return c, err
	}
	over := cli.NewFlags(typed.Name())
	cli.Options(over, &c)
	typed.Visit(func(f *flag.Flag) {
		if over.Lookup(f.Name) != nil {
			err = errors.Join(err, over.Set(f.Name, f.Value.String()))
		}
	})
	if c.Listen == "" && c.Broker == "" {
		c.Listen = "127.0.0.1:18830"
	}
	return c, err
}

// Validate joins everything that is wrong, each with its key.
func (c *Config) Validate() error {
	var errs []error
	cli.CheckLog(c.LogLevel, c.LogFormat, func(key, format string, args ...any) { errs = append(errs, cli.Usage(key, "", format, args...)) })
	errs = append(errs, c.place().check())
	if c.Cache != "on" && c.Cache != "off" {
		errs = append(errs, cli.Usage("cache", "on or off", "%q", c.Cache))
	}
	sc := c.server()
	if err := guard.CheckKeys(sc.Seals.Mode, c.Trust, c.Reports, c.Key != ""); err != nil {
		errs = append(errs, err)
	}
	if c.GNMI != "" {
		g := c.gnmi()
		errs = append(errs, g.Check())
	}
	return errors.Join(append(errs, sc.Check())...)
}

func (c *Config) gnmi() gnmi.Config {
	return gnmi.Config{Addr: c.GNMI, CAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key}
}

func (c *Config) server() server.Config {
	at := c.place()
	return server.Config{State: at.name(), Open: at.opener(nil), Broker: c.Broker, Listen: c.Listen, HTTP: c.HTTP, Webhook: c.Webhook, CAFile: c.CA, CertFile: c.Cert, KeyFile: c.Key, PasswordFile: c.Password, Passwords: c.Passwords, Insecure: c.Insecure, Uncached: c.Cache == "off", Version: version,
		Seals: server.Seals{Mode: guard.Mode(c.Seal), TrustFile: c.Trust, Kept: c.State + ".trust", Issuer: c.Issuer, Reports: c.Reports == guard.SealedReports}}
}

// configCommand prints the effective configuration, or what there is to
// configure.
func configCommand(_ context.Context, args []string, t cli.Terminal) error {
	fs := cli.NewFlags("ocs-planner config")
	file := fs.String("config", "", "configuration `file`, JSON, - = stdin")
	doc := fs.Bool("doc", false, "list every key with its default")
	asJSON := fs.Bool("json", false, "with -doc: as JSON")
	typed := defaults()
	cli.Options(fs, &typed)
	if _, err := cli.ParseNone(fs, args, `Prints the configuration that run would have, whole, or says what is wrong.

example: ocs-planner config -config /etc/ringlight/planner.json
example: ocs-planner config -doc`); err != nil {
		return err
	}
	if *doc {
		return cli.PrintKeys(t.Out, defaults(), *asJSON)
	}
	c, err := effective(fs, *file, t.In)
	if err == nil {
		err = c.Validate()
	}
	if err != nil {
		return err
	}
	enc := json.NewEncoder(t.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(c)
}

// readBounded reads a file, or stdin, that a person has written.
func readBounded(field, name string, stdin io.Reader, most int64) ([]byte, error) {
	text, long, err := cli.ReadBounded(stdin, name, most)
	switch {
	case err != nil:
		return nil, cli.Usage(field, "", "%w", err)
	case long:
		return nil, cli.Usage(field, fmt.Sprintf("at most %d bytes", most), "it is longer")
	}
	return text, nil
}
