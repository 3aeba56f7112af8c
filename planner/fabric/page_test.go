package fabric

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// Goal: the page of the fabric file has every key, and its example is one.
func TestPageHasEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../docs/fabric-file.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(page), "```json\n")
	example, _, ok := strings.Cut(rest, "```\n")
	f, err := Parse([]byte(example))
	if !ok || err != nil || f.NodeName(3) != "r1/u04" || f.TargetRings() != 1 {
		t.Errorf("the example: %v %+v", err, f)
	}
	typ := reflect.TypeFor[Fabric]()
	for i := range typ.NumField() {
		key, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
		if key != "" && !strings.Contains(string(page), "`"+key+"`") {
			t.Errorf("%s is not in the page", key)
		}
	}
	for _, column := range cablingColumns {
		if !strings.Contains(string(page), "`"+column+"`") {
			t.Errorf("column %s is not in the page", column)
		}
	}
}
