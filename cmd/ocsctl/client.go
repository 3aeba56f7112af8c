package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"ringlight/cmd/cli"
	"ringlight/planner/health"
	"ringlight/proto"
	"ringlight/proto/mqtt"
)

const (
	defaultBroker = "mqtt://127.0.0.1:18830"
	// lookRound is how long fabrics may show themselves; chosen: retained
	// messages follow a subscription at once.
	lookRound = 400 * time.Millisecond
	// patience is how long a person waits for a broker that does not answer, for a
	// fabric that nobody knows, for a planner that gives no sign. chosen: a little
	// over the period of a planner's signs of life.
	patience = 2200 * time.Millisecond
)

// clientFlags are those of every command that asks.
type clientFlags struct {
	broker, fabric, ca, cert, key string
	password                      string // file
	context, http                 string
	insecure, json                bool
	timeout                       time.Duration
	flags                         *flag.FlagSet
	named                         []named                 // nodes that were told by name
	names                         map[proto.NodeID]string // of all, where one was
}

func (c *clientFlags) register() {
	fs := c.flags
	fs.StringVar(&c.context, "context", "", "`NAME` of where to ask and as whom; see ocsctl context")
	fs.Bool("wide", false, "lines of any length")
	fs.StringVar(&c.broker, "broker", defaultBroker, "`URL` of the broker, mqtt:// or mqtts://, or URL,URL")
	fs.StringVar(&c.fabric, "fabric", "", "`NAME` of the fabric; default: the only one there is")
	fs.StringVar(&c.ca, "ca", "", "PEM `FILE` of the broker's authority, with mqtts")
	fs.StringVar(&c.cert, "cert", "", "PEM `FILE` of the own certificate")
	fs.StringVar(&c.key, "key", "", "PEM `FILE` of the own key")
	fs.StringVar(&c.password, "password-file", "", "`FILE` with user:password for the broker, or with the password where the URL names the user")
	fs.BoolVar(&c.insecure, "insecure", false, "allow mqtt:// beyond loopback")
	fs.BoolVar(&c.json, "json", false, "print JSON")
	fs.DurationVar(&c.timeout, "timeout", 10*time.Second, "give up after this `TIME`; where none is given, after 2.2s without any sign of a broker or planner")
}

// read takes a command's flags, its own and those of every command that asks,
// and gives its words.
func (c *clientFlags) read(args []string, text string) ([]string, error) {
	c.register()
	words, err := cli.Parse(c.flags, args, text)
	if err != nil {
		return nil, err
	}
	return words, c.settle()
}

// readNone is read where no word may stand.
func (c *clientFlags) readNone(args []string, text string) error {
	words, err := c.read(args, text)
	if err == nil && len(words) > 0 {
		err = wrongUsage(c.flags.Name(), "no further word", "%q", cli.Clip(strings.Join(words, " ")))
	}
	return err
}

// print writes an answer as JSON, or for people.
func (c *clientFlags) print(out io.Writer, v any, text func()) error {
	if c.json {
		return printJSON(out, v)
	}
	text()
	return nil
}

// answer prints one, unless err says why there is none.
func (c *clientFlags) answer(out io.Writer, v any, err error, text func()) error {
	if err != nil {
		return err
	}
	return c.print(out, v, text)
}

// client is a connection to a broker and the fabric that is asked.
type client struct {
	mqtt.Asker
	elsewhere map[proto.NodeID]string // agents of fabrics without a planner in service, where all were looked at
}

// knowsWhere adds to an agent that is offline that its number speaks for another fabric.
func (cl *client) knowsWhere(a *proto.AlarmStatus) {
	if a.Check == "offline" && a.Node != nil && cl.elsewhere[*a.Node] != "" {
		a.Why = fmt.Sprintf("an agent of its number speaks on this broker for fabric %s", cl.elsewhere[*a.Node])
		a.Remedy = "if that is the one: 'fabric' in its configuration, then restart it"
	}
}

// dial connects and finds the fabric. More filters are of topics to follow;
// they may match every fabric.
func (c *clientFlags) dial(ctx context.Context, follow ...string) (*client, error) {
	if c.timeout <= 0 {
		return nil, wrongUsage("timeout", "over 0", "%v", c.timeout)
	}
	if c.fabric != "" {
		if err := proto.CheckName("fabric", c.fabric); err != nil {
			return nil, wrongUsage("fabric", "1 to 64 of a-z 0-9 -", "%q", c.fabric)
		}
	}
	cl := &client{Asker: mqtt.Asker{Wait: c.timeout, Patience: patience, Waits: tellOnce(os.Stderr, c.json)}, elsewhere: map[proto.NodeID]string{}}
	if given(c.flags, "timeout") {
		cl.Patience = c.timeout
	}
	_, _ = rand.Read(cl.Seed[:]) // never fails
	cl.Name = "ctl-" + hex.EncodeToString(cl.Seed[:])
	to := mqtt.Config{Broker: c.broker, ClientID: cl.Name, CAFile: c.ca, CertFile: c.cert, KeyFile: c.key,
		PasswordFile: c.password, Insecure: c.insecure, Ordered: true, MinReconnect: 200 * time.Millisecond, MaxReconnect: time.Second}
	if err := c.identify(cl, &to); err != nil {
		return nil, err
	}
	every := proto.Topics{Fabric: proto.AnyFabric}
	subs := append([]string{every.Reply(cl.Name)}, follow...)
	more := []string{every.Planner()}
	if c.fabric == "" {
		more = append(more, every.EveryNode(proto.TopicPresence))
	}
	for _, s := range more {
		if !slices.Contains(subs, s) {
			subs = append(subs, s)
		}
	}
	if cl.Name != to.ClientID { // who asks under a name, with rights in one fabric
		every.Fabric = c.fabric
		for i := range subs {
			subs[i] = strings.Replace(subs[i], "/"+proto.AnyFabric+"/", "/"+c.fabric+"/", 1)
		}
	}
	to.Subscriptions = subs
	link, err := mqtt.Dial(to)
	if err != nil {
		if e, ok := errors.AsType[*proto.Error](err); ok {
			return nil, cli.AsUsage(e)
		}
		return nil, wrongUsage("broker", "", "%v", err)
	}
	cl.Link = link
	if err = cl.Connect(ctx); err == nil {
		cl.Topics.Fabric, err = cl.findFabric(ctx, c.broker, c.fabric, every)
	}
	if err != nil {
		link.Close()
		return nil, err
	}
	return cl, nil
}

func (cl *client) close() { cl.Link.Close() }

// tellOnce tells a person what a command waits for, and again when that changes.
func tellOnce(out io.Writer, asJSON bool) func(why string) {
	said := ""
	return func(why string) {
		if why != said && !asJSON && cli.IsTerminal(out) {
			said = why
			fmt.Fprintln(out, "ocsctl: waiting for:", why)
		}
	}
}

// findFabric takes the fabric that is wanted, once it shows itself, or the only one
// that does, or of several the only one with a planner in service. Planners show
// fabrics at once; only where none does, agents do.
func (cl *client) findFabric(ctx context.Context, broker, wanted string, every proto.Topics) (string, error) {
	var names, served []string            // fabrics, those with a planner in service
	spoken := map[string][]proto.NodeID{} // agents online, by fabric, some more than once
	limit := time.After(cl.Patience)
	for look, asked := time.After(lookRound), wanted == ""; ; {
		select {
		case p := <-cl.Link.Recv():
			cl.Note(p)
			topic, err := proto.ParseTopic(p.Topic)
			if p.Kind == proto.Publish && err == nil && len(p.Payload) > 0 && !slices.Contains(names, topic.Fabric) {
				names = append(names, topic.Fabric)
			}
			if s := new(proto.PlannerState); topic.Kind == proto.TopicPlanner && err == nil {
				served = slices.DeleteFunc(served, func(name string) bool { return name == topic.Fabric })
				if _, err := proto.Decode(p.Payload, s); err == nil && s.Online {
					served = append(served, topic.Fabric)
				}
			}
			if b := new(proto.Presence); topic.Kind == proto.TopicPresence && err == nil {
				if _, err := proto.Decode(p.Payload, b); err == nil && b.Online {
					spoken[topic.Fabric] = append(spoken[topic.Fabric], b.Node)
				}
			}
			if wanted != "" && slices.Contains(names, wanted) {
				return wanted, nil
			}
			continue
		case <-look:
		case <-limit:
			if wanted != "" && len(names) > 0 {
				slices.Sort(names)
				return "", wrongUsage("fabric", "one of "+strings.Join(names, ", "), "there is no fabric %s on %s", wanted, broker)
			}
			return "", fmt.Errorf("no fabric shows itself on %s; is ocs-planner running, with this broker?", broker)
		case <-ctx.Done():
			return "", ctx.Err()
		}
		look = time.After(lookRound)
		switch {
		case !asked: // no planner has ever spoken for it; have its agents?
			asked = true
			_ = cl.Link.Send(proto.Packet{Kind: proto.Subscribe, Topic: every.EveryNode(proto.TopicPresence), QoS: 1}) // its want shows in the limit
		case wanted != "" || len(names) == 0:
		case len(names) == 1:
			return names[0], nil
		case len(served) == 1:
			slices.Sort(names)
			for _, name := range names {
				if ids := slices.Compact(slices.Sorted(slices.Values(spoken[name]))); name != served[0] && len(ids) > 0 {
					for _, id := range ids {
						cl.elsewhere[id] = name
					}
					fmt.Fprintf(os.Stderr, "ocsctl: fabric %s is meant; node %s of another, %s, which has no planner in service, speaks on this broker, too\n", served[0], health.Spans(ids, 4), name)
				}
			}
			return served[0], nil
		default:
			slices.Sort(names)
			return "", wrongUsage("fabric", "one of "+strings.Join(names, ", "), "several fabrics on %s", broker)
		}
	}
}

// every asks for all pages of an answer and gives what it lists in our form.
func every[S, J any](ctx context.Context, cl *client, q proto.OpRequest, of func(*proto.OpReply) []S, form func(*S) J) ([]J, error) {
	out := []J{}
	err := cl.Pages(ctx, q, func(r *proto.OpReply) {
		list := of(r)
		for i := range list {
			out = append(out, form(&list[i]))
		}
	})
	return out, err
}

// text asks for all pages of a text.
func (cl *client) text(ctx context.Context, q proto.OpRequest) (string, error) {
	var text strings.Builder
	err := cl.Pages(ctx, q, func(r *proto.OpReply) { text.WriteString(string(r.Text)) })
	return text.String(), err
}

// list asks for all pages of one answer, and for nothing else. In q a node may stand
// that was told by name.
func list[S, J any](ctx context.Context, c *clientFlags, q *proto.OpRequest, of func(*proto.OpReply) []S, form func(*S) J) ([]J, error) {
	return found(ctx, c, func(cl *client) ([]J, error) { return every(ctx, cl, *q, of, form) })
}

// found is what one question finds.
func found[T any](ctx context.Context, c *clientFlags, ask func(*client) (T, error)) (v T, err error) {
	err = c.with(ctx, func(cl *client) error {
		v, err = ask(cl)
		return err
	})
	return v, err
}

// with dials, asks and closes.
func (c *clientFlags) with(ctx context.Context, ask func(*client) error) error {
	cl, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer cl.close()
	if err := c.findNamed(ctx, cl); err != nil {
		return err
	}
	return ask(cl)
}

// one asks one question, in which nodes may stand that were told by name.
func (c *clientFlags) one(ctx context.Context, q *proto.OpRequest) (*proto.OpReply, error) {
	if q.Author == "" && q.Needs() > proto.RoleView {
		q.Author = c.author()
	}
	return found(ctx, c, func(cl *client) (*proto.OpReply, error) { return cl.Ask(ctx, *q) })
}

// change asks for something to be done. What is done already, because it was
// asked again after a lost answer or long ago, is done.
func (c *clientFlags) change(ctx context.Context, q *proto.OpRequest) (*proto.OpReply, error) {
	r, err := c.one(ctx, q)
	if duplicate(err) {
		return &proto.OpReply{}, nil
	}
	return r, err
}

// listing is a noun that has list and show: S is what the planner says of one,
// J the form that scripts rely on.
type listing[S, J any] struct {
	noun, help string
	plural     string // "": with an s
	from       uint64 // page that the list begins with
	keep       func(one *J, f *filters) bool
	list       proto.Noun
	show       func(word string, q *proto.OpRequest) error // makes the question of one
	of         func(*proto.OpReply) []S
	form       func(*S) J
	table      func(out io.Writer, all []J)
	print      func(out io.Writer, one *J) // nil: a table of one
}

func (l listing[S, J]) run(ctx context.Context, c *clientFlags, args []string, out io.Writer) error {
	var f filters
	f.register(c.flags)
	words, err := c.read(args, l.help)
	if err != nil {
		return err
	}
	q, one := proto.OpRequest{Noun: l.list, Page: l.from}, len(words) == 2 && words[0] == "show"
	if one {
		q = proto.OpRequest{}
		err = l.show(words[1], &q)
	} else if len(words) != 1 || words[0] != "list" {
		err = wrongUsage(l.noun, "list, or show "+strings.ToUpper(l.noun), "%q", strings.Join(words, " "))
	}
	if err != nil {
		return err
	}
	all, err := list(ctx, c, &q, l.of, l.form)
	if err != nil {
		return err
	}
	if !one {
		all = slices.DeleteFunc(all, func(j J) bool { return !l.keep(&j, &f) })
	}
	rows := func() { l.table(out, all) }
	switch {
	case !one:
		return c.print(out, map[string][]J{cmp.Or(l.plural, l.noun+"s"): all}, rows)
	case len(all) != 1:
		return fmt.Errorf("the planner's answer has no %s", l.noun)
	case l.print == nil:
		return c.print(out, all[0], rows)
	}
	return c.print(out, all[0], func() { l.print(out, &all[0]) })
}

// number reads the number of a node, ring or job.
func number(field, s string, least uint64) (uint32, error) {
	id, err := strconv.ParseUint(s, 10, 32)
	if err != nil || id < least {
		return 0, wrongUsage(field, fmt.Sprintf("an integer from %d to %d", least, uint32(math.MaxUint32)), "%q", s)
	}
	return uint32(id), nil
}

// filters choose of what a list has.
type filters struct {
	state, name string
	ring        uint
}

func (f *filters) register(fs *flag.FlagSet) {
	fs.StringVar(&f.state, "state", "", "list: only those in this `STATE` (a ring's, a mode, online, offline, usable, unusable)")
	fs.StringVar(&f.name, "name", "", "list: only nodes with this `TEXT` in their name")
	fs.UintVar(&f.ring, "ring", 0, "list: only nodes of this `RING`")
}

// stateIs: a device is in the state that is asked for.
func (f *filters) stateIs(mode string, online, usable bool) bool {
	switch f.state {
	case "":
		return true
	case "online", "offline":
		return online == (f.state == "online")
	case "usable", "unusable":
		return usable == (f.state == "usable")
	}
	return strings.ReplaceAll(f.state, " ", "_") == mode
}

// duplicate: what is asked for is done already.
func duplicate(err error) bool {
	return errors.Is(err, &proto.Error{Code: proto.Duplicate})
}

// saidNo: the planner answered, and refused; not that nobody answered.
func saidNo(err error) bool {
	var e *proto.Error
	return errors.As(err, &e) && !(e.Code == proto.Expired && e.Field == "fabric")
}
