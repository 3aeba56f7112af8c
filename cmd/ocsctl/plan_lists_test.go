package main

import (
	"encoding/json"
	"reflect"
	"testing"
)

// Goal: what is read is what encoding/json reads, or it is refused; nothing
// panics or hangs.
// Method: any bytes that are valid JSON, against encoding/json.
func FuzzIntLists(f *testing.F) {
	for _, s := range []string{
		`[[0,1,2],[3]]`, `[]`, ` [ [ ] , [-1 , 2] ] `, `null`, `7`, `[7]`, `[[null]]`, `[[1.5]]`, `[[1e2]]`,
		`[[-]]`, `[["1"]]`, `[[999999999]]`, `[[1000000000]]`, `[[[1]]]`, `{"a":[[1]]}`, `[[0,-0]]`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var ours intLists
		if json.Unmarshal(data, &ours) != nil || ours.wrong != "" || !ours.there {
			return
		}
		var theirs [][]int
		if err := json.Unmarshal(data, &theirs); err != nil {
			t.Fatalf("%q was accepted: %v", data, err)
		}
		if len(ours.lists) != len(theirs) {
			t.Fatalf("%q: %v, want %v", data, ours.lists, theirs)
		}
		for n, list := range theirs {
			if len(list) != len(ours.lists[n]) || len(list) > 0 && !reflect.DeepEqual(list, ours.lists[n]) {
				t.Fatalf("%q: %v, want %v", data, ours.lists, theirs)
			}
		}
	})
}
