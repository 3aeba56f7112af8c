package proto

import (
	"errors"
	"strings"
	"testing"
)

// Goal: a file that is cut, zeroed or mistaken is refused with the line.
// Method: one whole file, cut at every byte, zeroed from every byte, and the
// mistakes that people make.
func TestFileErrorsNameTheLine(t *testing.T) {
	type file struct {
		Name  string
		Ports int
		List  []int
	}
	whole := "{\n  \"name\": \"f\",\n  \"ports\": 3,\n  \"list\": [1,\n 2]\n}"
	var f file
	if err := DecodeFile([]byte(whole+"\n\n"), &f); err != nil || f.Ports != 3 || len(f.List) != 2 {
		t.Fatalf("%+v, %v", f, err)
	}
	for at := range len(whole) {
		for _, text := range []string{whole[:at], whole[:at] + strings.Repeat("\x00", len(whole)-at)} {
			err := DecodeFile([]byte(text), new(file))
			if err == nil || at > 0 && !strings.Contains(err.Error(), ", line ") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for text, want := range map[string]string{ // any order: independent
		"":                                  "it is empty",
		" \n":                               "it is empty",
		whole + "\n{}":                      "data follows the end of the JSON, line 7",
		strings.Replace(whole, "3", `"`, 1): "want JSON: invalid character '\\n' in string literal, line 3",
		"{\n\"name\": \"f\"\n":              "JSON ends unexpectedly, line 3",
	} {
		if err := DecodeFile([]byte(text), new(file)); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

type testAddr string

func (a testAddr) MarshalText() ([]byte, error) { return []byte(a), nil }
func (a *testAddr) UnmarshalText(text []byte) error {
	if *a = testAddr(text); len(text) != 4 {
		return errors.New("want four letters")
	}
	return nil
}

// Goal: a value that does not fit is named by its key, with what is wanted and
// on which line, in no words of the decoder's. Method: one document, one value
// or key changed at a time; of two mistakes the first is named.
func TestFileErrorsNameTheKey(t *testing.T) {
	type part struct {
		Bus  uint8    `json:"bus"`
		Addr testAddr `json:"addr"`
		Ohm  float64  `json:"ohm"`
		On   bool     `json:"on"`
	}
	type file struct {
		Node  int64  `json:"node"`
		Name  string `json:"name"`
		Board struct {
			Parts []part           `json:"parts"`
			Sizes map[string]int16 `json:"sizes"`
		} `json:"board"`
	}
	const whole = `{
  "node": 7,
  "name": "parts",
  "board": {
    "parts": [
      {"bus": 1, "addr": "0x48", "on": true},
      {"bus": 2, "addr": "0x49", "ohm": 1.5}
    ],
    "sizes": {"on": 12}
  }
}`
	if err := DecodeFile([]byte(whole), new(file)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{": 7", `: "seven"`, `node: want a number, got "seven", line 2`},
		{": 7", `: "` + strings.Repeat("s", 99) + `"`, `node: want a number, got "` + strings.Repeat("s", 40) + `...", line 2`},
		{": 7", `: 7.5`, `node: want a whole number from -9223372036854775808 to 9223372036854775807, got 7.5, line 2`},
		{": 7", `: {"a": 1}`, `node: want a number, got an object, line 2`},
		{`"parts",`, `["parts"],`, `name: want text, got a list, line 3`},
		{`"bus": 2`, `"bus": 300`, `board.parts[1].bus: want a whole number from 0 to 255, got 300, line 7`},
		{`"bus": 2`, `"bus": -2`, `board.parts[1].bus: want a whole number from 0 to 255, got -2, line 7`},
		{`"0x49"`, `49`, `board.parts[1].addr: want text, got 49, line 7`},
		{`"0x49"`, `"0x049"`, `board.parts[1].addr: want four letters, line 7`},
		{`1.5`, `true`, `board.parts[1].ohm: want a number, got true, line 7`},
		{`1.5`, `1e999`, `board.parts[1].ohm: want a number within the range of floating point, got 1e999, line 7`},
		{`true`, `1`, `board.parts[0].on: want true or false, got 1, line 6`},
		{`"ohm"`, `"node"`, `board.parts[1]: there is no key "node", line 7`},
		{`"ohm": 1.5`, `"x": {"y": [1]}`, `board.parts[1]: there is no key "x", line 7`},
		{`{"on": 12}`, `{"on": "a"}`, `board.sizes.on: want a number, got "a", line 9`},
		{`{"on": 12}`, `4`, `board.sizes: want an object, got 4, line 9`},
		{`"parts": [`, `"parts": {"a": [`, ""},
		{`"node": 7`, `"node": 7, "node": 8`, `node: the key is there twice, line 2`},
		{`"bus": 2`, `"bus": 2, "bus": 2`, `board.parts[1].bus: the key is there twice, line 7`},
		{`{"on": 12}`, `{"on": 12, "off": 1, "on": 13}`, `board.sizes.on: the key is there twice, line 9`},
		{whole, "\n[]", `want an object, got a list, line 2`},
	} {
		text := strings.Replace(whole, c.old, c.new, 1)
		if c.want == "" {
			text, c.want = strings.Replace(text, "    ],", "    ]},", 1), `board.parts: want a list, got an object, line 5`
		}
		if err := DecodeFile([]byte(text), new(file)); err == nil || err.Error() != c.want {
			t.Errorf("%s: %v\nwant %s", c.new, err, c.want)
		}
		if strings.Contains(c.want, "twice") {
			continue // what is read at all comes before what is read twice
		}
		// A later mistake does not hide the first.
		text = strings.Replace(text, `"sizes": {"on": 12}`, `"size": {"addr": 12}`, 1)
		if err := DecodeFile([]byte(text), new(file)); err == nil || err.Error() != c.want {
			t.Errorf("%s and a later one: %v\nwant %s", c.new, err, c.want)
		}
	}
}
