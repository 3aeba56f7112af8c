package hostile

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"ringlight/mzi/detmath"
	"ringlight/proto"
)

// Goal: no kind of message is forgotten when seals are attacked. Method: the table of
// topics of docs/protocol.md and proto's own kinds, against the rows here.
func TestEveryKindIsAttacked(t *testing.T) {
	page, err := os.ReadFile("../../docs/protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z]+(?:/[^`]*)?)` \\| [a-z-]+(?:, always sealed)? \\| [^|]*\\| [^|]*\\| [01] \\|").FindAllStringSubmatch(string(page), -1) {
		said[m[1]] = true
	}
	if len(said) < 16 {
		t.Fatalf("the page's table of topics has changed its form: %v", said)
	}
	im := &impostor{s: &stranger{cfg: Config{Fabric: "f1", Nodes: 2, Seals: &Seals{}}, topics: proto.Topics{Fabric: "f1"}, birth: make([]proto.Presence, 2)}, term: 1, life: 1, ownKey: proto.PublicKey{1}, token: "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", random: detmath.Stream(1, 0)}
	have := map[proto.TopicKind]bool{}
	for _, k := range kinds {
		if !said[k.path] {
			t.Errorf("%s: not on the page", k.path)
		}
		delete(said, k.path)
		topic, msg := k.lie(im, 1, 3)
		at, err := proto.ParseTopic(topic)
		if err != nil || at.Kind != k.topic {
			t.Errorf("%s: its lie goes to %s: %v", k.path, topic, err)
		}
		if _, err := proto.Encode(msg); err != nil {
			t.Errorf("%s: its lie is not well formed: %v", k.path, err)
		}
		have[k.topic] = true
	}
	for path := range said { // any order: each is told
		t.Errorf("%s: on the page, and no row attacks it", path)
	}
	for k := proto.TopicPlanner; !strings.HasPrefix(k.String(), "unknown"); k++ {
		if !have[k] {
			t.Errorf("kind %v: no row attacks it", k)
		}
	}
}
