package pki

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ringlight/proto"
	"ringlight/proto/seal"
)

// Kinds of brokers that are configured: each has a folder of its name, which goes to the
// broker's machine as it is.
const (
	KindMosquitto = "mosquitto"
	KindNATS      = "nats"
)

// Server is what a broker's configuration says of its machine.
type Server struct {
	Name       string   // of its certificate
	Hosts      []string // under which it is reached; of one that has a certificate: as before
	Days       int
	At         string // folder there; absolute
	Listen     string // host:port
	Others     string // mosquitto: host:port for planners and operators
	ByPassword bool   // mosquitto: clients log in with user and password, not certificates
	Routes     string // nats: host:port of the other servers, with commas between
}

// Sizes at a broker: as the planner's own has them, where it has them.
const (
	// chosen: the longest message and its topic.
	serverPacketSize = proto.MaxPayload + 1024
	// A planner of 10,000 nodes is told as many reports at once; mosquitto's default of
	// 1,000 loses the rest.
	serverQueued = 20_000
	// chosen: what a reader that has stopped may cost, so many of the usual messages.
	serverQueuedBytes = 64 << 20
	serverInflight    = 200
)

// Configure writes the folder of a broker: its configuration, access list, who is
// revoked, its certificate and, where there is none, its key. Every later edition writes
// anew what follows from it.
func (f *Folder) Configure(kind string, s Server) (files []string, err error) {
	for field, address := range map[string]string{"listen": s.Listen, "others": s.Others} { // any order: one is wrong, or none
		if _, port, err := net.SplitHostPort(address); (err != nil || port == "") && (field == "listen" || kind == KindMosquitto) {
			return nil, proto.Wrong(field, "HOST:PORT, or :PORT", "%q", address)
		}
	}
	if !path.IsAbs(s.At) || strings.ContainsAny(s.At, " \"\n") {
		return nil, proto.Wrong("at", "an absolute path without spaces", "%q", s.At)
	}
	if err := proto.CheckName("name", s.Name); err != nil {
		return nil, err
	}
	lists, err := f.readLists(nil)
	if err != nil {
		return nil, err
	}
	for _, k := range f.Trust.Issuers {
		if kind == KindMosquitto && !slices.ContainsFunc(lists, func(l *x509.RevocationList) bool { return isBy(l, k) }) {
			return nil, proto.Wrong("dir", "issuers of which "+crlName+" has a list: make another one, twice", "of issuer %s there is none, and mosquitto would refuse its nodes", seal.IDOf(k[:]))
		}
	}
	dir := filepath.Join(f.Dir, kind)
	cert := fileName(f.Trust.Fabric + "/broker/" + s.Name)
	if _, err := os.Stat(filepath.Join(dir, cert+".pem")); err != nil {
		if len(s.Hosts) == 0 {
			return nil, proto.Wrong("host", "names and addresses, with commas between them", "none, and there is no %s.pem in %s", cert, dir)
		}
		if _, err := f.Broker(Request{Hosts: s.Hosts, Days: s.Days, Out: dir}, s.Name); err != nil {
			return nil, err
		}
	}
	if users, err := f.users(); err != nil || s.ByPassword && len(users) == 0 {
		return nil, errors.Join(err, proto.Wrong("passwords", "somebody with a password: ocsctl pki password", "nobody has one"))
	}
	var w writer
	text, name := f.mosquittoConf(s, cert), "mosquitto.conf"
	if kind == KindNATS {
		text, name = f.natsConf(s, cert), "nats.conf"
	}
	w.replace(filepath.Join(dir, name), 0o644, []byte(text))
	if err := f.settle(&w, f.Trust); err != nil {
		return nil, err
	}
	list, err := os.ReadDir(dir)
	for _, e := range list {
		files = append(files, filepath.Join(dir, e.Name()))
	}
	return files, err
}

// tellBrokers has everything written that follows from an edition, for each broker that
// there is a configuration of.
func (f *Folder) tellBrokers(told, w *writer, authorities, lists []byte) error {
	there := func(kind, name string) bool {
		path := filepath.Join(f.Dir, kind, name)
		_, err := os.Stat(path)
		return err == nil || w.content(path) != nil
	}
	if there(KindMosquitto, "mosquitto.conf") {
		var acl bytes.Buffer
		if err := f.mosquitto(&acl, w.users); err != nil {
			return err
		}
		if len(w.users) > 0 || there(KindMosquitto, usersName) {
			told.replace(filepath.Join(f.Dir, KindMosquitto, usersName), 0o600, usersFile(w.users))
		}
		f.tell(told, KindMosquitto, map[string][]byte{"acl": acl.Bytes(), caName: authorities, crlName: lists})
	}
	if there(KindNATS, "nats.conf") {
		var users bytes.Buffer
		if err := f.NATS(&users); err != nil {
			return err
		}
		f.tell(told, KindNATS, map[string][]byte{"users.conf": users.Bytes(), caName: authorities})
	}
	return nil
}

func (f *Folder) tell(w *writer, kind string, files map[string][]byte) {
	for name, text := range files { // any order: files of their own
		w.replace(filepath.Join(f.Dir, kind, name), fs.FileMode(0o644), text)
	}
}

// mosquittoConf: sizes as measured, nothing kept on disk. Nodes have their name as client
// id, so that none throws another off; operators, of whom one may have several terminals,
// have not, and neither have planners.
func (f *Folder) mosquittoConf(s Server, cert string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# mosquitto 2 for fabric %[1]s, by ocsctl pki mosquitto. This folder lies at %[2]s,
# owned by the user that mosquitto runs as:
#
#   mosquitto -c %[2]s/mosquitto.conf
#
# After a change, bring the folder again and send SIGHUP: acl, certificates, crl.pem and
# passwords are read again. Who is connected with a certificate keeps the connection, and
# has the rights of the new acl; with a password that is another now, it has to come again.

persistence false
allow_anonymous false
acl_file %[2]s/acl
max_packet_size %[3]d
max_queued_messages %[4]d
max_queued_bytes %[5]d
max_inflight_messages %[6]d
set_tcp_nodelay true
`, f.Trust.Fabric, s.At, serverPacketSize, serverQueued, serverQueuedBytes, serverInflight)
	if s.ByPassword {
		fmt.Fprintf(&b, "password_file %s/%s\n", s.At, usersName)
	}
	for i, address := range []string{s.Listen, s.Others} {
		host, port, _ := net.SplitHostPort(address) // checked
		fmt.Fprintf(&b, "\n# %s\nlistener %s\n", []string{"nodes", "planners and operators: who reaches it can end a connection by its client id"}[i], strings.TrimSpace(port+" "+host))
		fmt.Fprintf(&b, "tls_version tlsv1.3\ncertfile %[1]s/%[2]s.pem\nkeyfile %[1]s/%[2]s.key\n", s.At, cert)
		if !s.ByPassword {
			fmt.Fprintf(&b, "cafile %[1]s/ca.pem\ncrlfile %[1]s/crl.pem\nrequire_certificate true\nuse_identity_as_username true\n", s.At)
		}
		if i == 0 {
			b.WriteString("use_username_as_clientid true\n")
		}
	}
	return b.String()
}

func (f *Folder) natsConf(s Server, cert string) string {
	cluster := ""
	if s.Routes != "" {
		cluster = fmt.Sprintf(`cluster {
  name: %s
  listen: "0.0.0.0:6222"
  routes: ["nats://%s"]
  tls { ca_file: "%s/ca.pem", cert_file: "%[3]s/%[4]s.pem", key_file: "%[3]s/%[4]s.key", verify: true, min_version: "1.3" }
}
`, f.Trust.Fabric, strings.ReplaceAll(s.Routes, ",", `", "nats://`), s.At, cert)
	}
	return fmt.Sprintf(`# nats-server 2 for fabric %[1]s, by ocsctl pki nats. This folder lies at %[2]s:
#
#   nats-server -c %[2]s/nats.conf
#
# It goes with cache off of planner and agents. nats-server binds no client ids: who is let
# in can throw another off by its id. After a change, bring the folder again, and
# nats-server --signal reload, which ends connections of names and keys that are not in
# it any more.

server_name: %[3]s
listen: "127.0.0.1:-1"
max_payload: %[4]d
jetstream { store_dir: "%[2]s/jetstream" }
%[5]smqtt {
  listen: "%[6]s"
  tls {
    ca_file: "%[2]s/ca.pem", cert_file: "%[2]s/%[7]s.pem", key_file: "%[2]s/%[7]s.key"
    verify_and_map: true, min_version: "1.3"
  }
}
include "users.conf"
`, f.Trust.Fabric, s.At, s.Name, serverPacketSize, cluster, anyHost(s.Listen), cert)
}

func anyHost(address string) string {
	if strings.HasPrefix(address, ":") {
		return "0.0.0.0" + address
	}
	return address
}
