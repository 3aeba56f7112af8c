package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
)

// Key is one key of a configuration, for people.
type Key struct {
	Key     string `json:"key"`
	Default any    `json:"default"`
	Unit    string `json:"unit,omitempty"`
	Text    string `json:"text"`
}

// Keys lists every key of a configuration with its value and unit, in the order
// of the file: the tags json, unit and doc of its fields.
func Keys(c any) []Key { return keysOf("", reflect.ValueOf(c)) }

func keysOf(prefix string, v reflect.Value) []Key {
	var out []Key
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name := prefix + f.Tag.Get("json")
		if f.Type.Kind() == reflect.Struct {
			if !f.Anonymous { // else its keys are the outer one's
				name += "."
			}
			out = append(out, keysOf(name, v.Field(i))...)
			continue
		}
		k := Key{Key: name, Default: v.Field(i).Interface(), Unit: f.Tag.Get("unit"), Text: f.Tag.Get("doc")}
		if f.Type.Kind() == reflect.Slice && v.Field(i).Len() == 0 {
			k.Default = []string{}
		}
		out = append(out, k)
	}
	return out
}

// PrintKeys lists every key with its default and unit, for people or as JSON.
func PrintKeys(out io.Writer, defaults any, asJSON bool) error {
	keys := Keys(defaults)
	if asJSON {
		return PrintJSON(out, keys)
	}
	width := ScreenOf(out).Width
	for _, k := range keys {
		value, err := json.Marshal(k.Default)
		if err != nil {
			return err
		}
		head := strings.TrimSpace(k.Key + "  " + string(value) + " " + k.Unit)
		if _, err := fmt.Fprintf(out, "%s\n    %s\n", Wrap(head, width-4, "    "), Wrap(k.Text, width-4, "    ")); err != nil {
			return err
		}
	}
	return nil
}

// changed names the keys that differ, but for some.
func changed(a, b any, but ...string) (out []string) {
	was, is := Keys(a), Keys(b)
	for i := range was {
		if !slices.Contains(but, was[i].Key) && !reflect.DeepEqual(was[i].Default, is[i].Default) {
			out = append(out, was[i].Key)
		}
	}
	return out
}
