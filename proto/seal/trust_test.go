package seal

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"ringlight/proto"
)

func pub(n byte) (k proto.PublicKey) {
	copy(k[:], public(keyOf(n)))
	return k
}

func nodeOf(n proto.NodeID, key byte) Key {
	return Key{Public: pub(key), Holder: proto.Topics{Fabric: "f1"}.NodeHolder(n), Role: proto.RoleNode}
}

func writeTrust(t *testing.T, edition uint64, nodes []Key, roots ...byte) *Trust {
	t.Helper()
	m := proto.Trust{Fabric: "f1", Edition: edition, Keys: []proto.TrustedKey{{Public: pub(1), Name: "f1/planner/a", Role: proto.RolePlanner}, {Public: pub(2), Name: "f1/op/alice", Role: proto.RoleOperate}}}
	var former []ed25519.PrivateKey
	for _, r := range roots[1:] {
		former = append(former, keyOf(r))
	}
	tr, err := WriteTrust(m, nodes, keyOf(roots[0]), former...)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

// Goal: only the root that is known writes what is trusted next, and numbers only
// rise. Method: a table of what a device knows and what it is shown, roots changed
// once, twice and more often than is kept.
func TestTrustFollows(t *testing.T) {
	const r1, r2, r3, r4, thief = 101, 102, 103, 104, 200
	all := make([]byte, MaxRoots) // the newest first
	for i := range all {
		all[i] = byte(r1 + MaxRoots - 1 - i)
	}
	for _, c := range []struct {
		name   string
		is, to *Trust
		follow bool
	}{
		{"the next", writeTrust(t, 1, nil, r1), writeTrust(t, 2, nil, r1), true},
		{"one far on", writeTrust(t, 1, nil, r1), writeTrust(t, 900, nil, r1), true},
		{"the same again", writeTrust(t, 2, nil, r1), writeTrust(t, 2, nil, r1), false},
		{"an older one", writeTrust(t, 3, nil, r1), writeTrust(t, 2, nil, r1), false},
		{"a stranger's", writeTrust(t, 1, nil, r1), writeTrust(t, 2, nil, thief), false},
		{"a new root", writeTrust(t, 1, nil, r1), writeTrust(t, 2, nil, r2, r1), true},
		{"a new root that nobody knows", writeTrust(t, 1, nil, r1), writeTrust(t, 2, nil, r2), false},
		{"two new roots", writeTrust(t, 1, nil, r1), writeTrust(t, 5, nil, r3, r2, r1), true},
		{"two new roots, one known", writeTrust(t, 3, nil, r2), writeTrust(t, 5, nil, r3, r2, r1), true},
		{"the old root after the new", writeTrust(t, 2, nil, r2, r1), writeTrust(t, 3, nil, r1), false},
		{"a thief with a foreign old seal", writeTrust(t, 2, nil, r2), writeTrust(t, 3, nil, thief, r1), false},
		{"three new roots", writeTrust(t, 1, nil, r1), writeTrust(t, 9, nil, r4, r3, r2, r1), true},
		{"as many as there may be", writeTrust(t, 1, nil, r1), writeTrust(t, 99, nil, all...), true},
	} {
		if err := c.to.Follows(c.is); (err == nil) != c.follow {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	former := make([]ed25519.PrivateKey, MaxRoots)
	for i := range former {
		former[i] = keyOf(byte(i))
	}
	if _, err := WriteTrust(proto.Trust{Fabric: "f1", Edition: 9}, nil, keyOf(thief), former...); err == nil {
		t.Error("one root too many")
	}
	// A seal that was cut out of one document and laid around another.
	good, bad := writeTrust(t, 2, nil, r2, r1), writeTrust(t, 3, nil, thief)
	outer := good.layers[0]
	forged := bytes.Replace(good.Sealed(), outer.Payload, bad.Sealed(), 1)
	if tr, err := ReadTrust(forged); err == nil && tr.Follows(writeTrust(t, 1, nil, r1)) == nil {
		t.Error("another's seal was taken")
	}
	other := writeTrust(t, 9, nil, r1)
	other.Fabric = "f2"
	if other.Follows(writeTrust(t, 1, nil, r1)) == nil {
		t.Error("another fabric's was taken")
	}
}

// Goal: a document that is spoiled anywhere is refused, its list of nodes too.
// Method: each byte turned, cut, and lists that are not its own.
func TestSpoiledTrustIsRefused(t *testing.T) {
	tr := writeTrust(t, 1, []Key{nodeOf(9, 30), nodeOf(7, 31), nodeOf(7, 32)}, 101)
	file := tr.File()
	if again, err := ReadTrust(file); err != nil || !again.KnowsNodes() || len(again.NodeList()) != 3 || again.NodeList()[0].Holder.Node != 7 {
		t.Fatal(err)
	}
	if bare, err := ReadTrust(tr.Sealed()); err != nil || bare.KnowsNodes() {
		t.Errorf("without the nodes: %v", err)
	}
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 1
		if _, err := ReadTrust(bad); err == nil {
			t.Fatalf("byte %d turned: taken", i)
		}
		if i == len(tr.Sealed()) {
			continue // as it is told to everybody
		}
		if _, err := ReadTrust(file[:i]); err == nil {
			t.Fatalf("cut at %d: taken", i)
		}
	}
	if _, err := ReadTrust(append(bytes.Clone(tr.Sealed()), writeTrust(t, 1, []Key{nodeOf(9, 30), nodeOf(7, 31), nodeOf(8, 32)}, 101).nodes...)); err == nil {
		t.Error("another list of as many nodes")
	}
}

// Goal: a message counts when a trusted key sealed it for its own topic, and the
// refusal says what is wrong. Method: each thing wrong once.
func TestAuthor(t *testing.T) {
	tr := writeTrust(t, 1, []Key{nodeOf(7, 31)}, 101)
	f1 := proto.Topics{Fabric: "f1"}
	for _, c := range []struct {
		key       byte
		for_, on_ string
		want      string
	}{
		{1, f1.Desired(7), f1.Desired(7), ""},
		{31, f1.Ack(7), f1.Ack(7), ""},
		{2, f1.Request("alice"), f1.Request("alice"), ""},
		{1, f1.Desired(7), f1.Desired(8), "signature is wrong"},
		{31, f1.Desired(7), f1.Desired(7), "no word"},
		{31, f1.Ack(8), f1.Ack(8), "no word"},
		{2, f1.Request("bob"), f1.Request("bob"), "no word"},
		{2, f1.Desired(7), f1.Desired(7), "no word"},
		{50, f1.Desired(7), f1.Desired(7), "unknown here"},
		{101, f1.Desired(7), f1.Desired(7), "unknown here"}, // the root writes trust, no plans
	} {
		s, _, err := Open(Sign(keyOf(c.key), c.for_, []byte{1}))
		if err != nil {
			t.Fatal(err)
		}
		topic, err := proto.ParseTopic(c.on_)
		if err != nil {
			t.Fatal(err)
		}
		k, err := tr.Author(&s, c.on_, topic)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) || err == nil && k.Public != pub(c.key) {
			t.Errorf("key %d for %s on %s: %v, %v", c.key, c.for_, c.on_, k, err)
		}
	}
}

// Goal: no input makes ReadTrust panic. Method: fuzzing.
func FuzzReadTrust(f *testing.F) {
	tr, err := WriteTrust(proto.Trust{Fabric: "f1", Edition: 2}, []Key{nodeOf(7, 31)}, keyOf(101), keyOf(102))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tr.File())
	f.Fuzz(func(t *testing.T, b []byte) {
		if tr, err := ReadTrust(b); err == nil && !bytes.Equal(tr.File(), b) {
			t.Errorf("read as %x", tr.File())
		}
	})
}
