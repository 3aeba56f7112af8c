package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ringlight/planner/fabric"
)

// Rings of several sizes are asked for by a flag.
// Method: fabric new, read back; what is refused, by field.
func TestFabricNewWithRingSizes(t *testing.T) {
	code, out, errs := ctl(t, strings.Fields("fabric new -nodes 64 -tp 32 -ring-sizes 64:2,16:4")...)
	f, err := fabric.Parse([]byte(out))
	if code != 0 || err != nil || !slices.Equal(f.Targets(), []fabric.RingSize{{TP: 64, Rings: 2}, {TP: 16, Rings: 4}, {TP: 32, Rings: 2}}) {
		t.Errorf("%d %s %v %s", code, errs, err, out)
	}
	for sizes, field := range map[string]string{"64": "ring-sizes", "64:x": "ring-sizes", "64:2,": "ring-sizes", "48:1": "ring_sizes[0].tp", "64:9": "ring_sizes[0].rings"} { // any order: each is judged by itself
		code, out, _ := ctl(t, "fabric", "new", "-json", "-ring-sizes", sizes)
		if code != 2 || !strings.Contains(out, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", sizes, code, out)
		}
	}
}

// A core is described by flags, alone or beside nodes, and nonsense is refused
// by field.
// Method: fabric new, read back.
func TestFabricNewWithACore(t *testing.T) {
	for args, want := range map[string]struct { // any order: each is judged by itself
		nodes, pods, spinePorts int
	}{
		"-pods 4":                         {0, 4, 8},
		"-pods 6 -leaves 3 -leaf-links 1": {0, 6, 4},
		"-pods 4 -nodes 16 -tp 16":        {16, 4, 8},
		"-nodes 16 -tp 16":                {16, 0, 0},
		"-pods 4 -leaves 3 -leaf-links 1 -wiring uniform": {0, 4, 3},
	} {
		code, out, errs := ctl(t, append([]string{"fabric", "new"}, strings.Fields(args)...)...)
		if code != 0 {
			t.Errorf("%s: %d %s", args, code, errs)
			continue
		}
		f, err := fabric.Parse([]byte(out))
		if err != nil {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if f.Nodes != want.nodes || (f.Core != nil) != (want.pods > 0) || f.Core != nil && (f.Core.Pods != want.pods || f.Core.SpinePorts != want.spinePorts) {
			t.Errorf("%s: %s", args, out)
		}
	}
	for args, want := range map[string]fabric.LeafSpine{ // any order: each is judged by itself
		"-core leaf-spine":                       *fabric.DefaultLeafSpine().LeafSpine,
		"-core leaf-spine -switches 0 -spines 4": {Leaves: 16, Spines: 4, GPUsPerLeaf: 32, Queue: fabric.FIFO},
		"-core leaf-spine -leaves 64 -spines 32 -gpus-per-leaf 64 -any-to-any=false -queue easy -move-ms 9": {Leaves: 64, Spines: 32, GPUsPerLeaf: 64, Switches: 32, Queue: fabric.EASY, MoveMillis: 9},
	} {
		code, out, errs := ctl(t, append([]string{"fabric", "new"}, strings.Fields(args)...)...)
		f, err := fabric.Parse([]byte(out))
		if code != 0 || err != nil || f.Nodes != 0 || f.Core.LeafSpine == nil || *f.Core.LeafSpine != want {
			t.Errorf("%s: %d %s %v %s", args, code, errs, err, out)
		}
	}
	for args, field := range map[string]string{ // any order: each is judged by itself
		"-leaves 4":                       "leaves",
		"-pods 1":                         "core.pods",
		"-pods 4 -spine-ports 9":          "core.spine_ports",
		"-pods 4 -wiring diagonal":        "core.wiring",
		"-backup":                         "backup",
		"-pods 4 -backup -wiring uniform": "core.backup",
		"-pods 4 -switch-ports 3":         "core.switch_ports",
		"-pods 4 -queue fifo":             "queue",
		"-queue fifo":                     "queue",
		"-core clos":                      "core",
		"-core pods":                      "pods",
		"-core leaf-spine -pods 4":        "pods",
		"-core leaf-spine -switches 5":    "core.switches",
		"-core leaf-spine -queue lifo":    "core.queue",
	} {
		code, out, _ := ctl(t, append([]string{"fabric", "new", "-json"}, strings.Fields(args)...)...)
		if code != 2 || !strings.Contains(out, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", args, code, out)
		}
	}
}

// A sheet of real names and labels becomes a description, and is named by line
// and column where it is wrong; nothing is written then.
// Method: the sheet that fabric cabling writes, edited.
func TestFabricFromACablingSheet(t *testing.T) {
	dir := t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	names := put("names", "a-0\na-1\na-2\na-3\nb-0\nb-1\nb-2\nb-3\n")
	first := filepath.Join(dir, "f.json")
	if code, _, errs := ctl(t, "fabric", "new", "-nodes", "8", "-tp", "16", "-names", names, "-o", first); code != 0 {
		t.Fatal(errs)
	}
	code, sheet, errs := ctl(t, "fabric", "cabling", first)
	if code != 0 || !strings.Contains(sheet, "\na-3,1,1,b-0,0,1,,\n") {
		t.Fatal(code, sheet, errs)
	}
	sheet = strings.Replace(sheet, "a-3,1,1,b-0,0,1,,", "a-3,1,1,b-0,0,1,F-77,", 1)
	code, out, errs := ctl(t, "fabric", "cabling", first, put("good.csv", sheet))
	f, err := fabric.Parse([]byte(out))
	if code != 0 || err != nil || !strings.Contains(out, `"id":"F-77"`) || f.NodeName(4) != "b-0" {
		t.Errorf("%d %s %v %s", code, errs, err, out)
	}
	bad := put("bad.csv", strings.Replace(sheet, "a-3,1,1,b-0", "a-3,1,1,b-9", 1))
	last := filepath.Join(dir, "never.json")
	for _, args := range [][]string{{"fabric", "cabling", first, bad, "-o", last, "-json"}, {"fabric", "new", "-nodes", "8", "-tp", "16", "-names", names, "-cabling", bad, "-o", last, "-json"}} {
		code, out, _ := ctl(t, args...)
		if code != 2 || !strings.Contains(out, `"field":"cabling line 8 peer"`) {
			t.Errorf("%v: %d %s", args, code, out)
		}
		if _, err := os.Stat(last); err == nil {
			t.Error("a wrong sheet was written")
		}
	}
	for _, args := range [][]string{{"fabric"}, {"fabric", "news"}, {"fabric", "cabling"}, {"fabric", "new", "x"}} {
		if code, _, _ := ctl(t, args...); code != 2 {
			t.Errorf("%v: %d", args, code)
		}
	}
}
