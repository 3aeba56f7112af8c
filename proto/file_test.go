package proto

import (
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
			if err == nil || at > 0 && !strings.HasPrefix(err.Error(), "line ") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
	for text, want := range map[string]string{ // any order: independent
		"":                                    "it is empty",
		" \n":                                 "it is empty",
		whole + "\n{}":                        "line 7: something follows the end",
		strings.Replace(whole, "3", `"`, 1):   "line 3: invalid character '\\n' in string",
		strings.Replace(whole, "3", `"3"`, 1): "line 3: json: cannot unmarshal string",
		strings.Replace(whole, "ports", "porst", 1): `line 3: json: unknown field "porst"`,
		"{\n\"name\": \"f\"\n":                      "line 3: it is cut off",
	} {
		if err := DecodeFile([]byte(text), new(file)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
