package cli

import (
	"cmp"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options makes a flag of every field of a configuration, and of structs in it, that has
// the tag flag, its name; only: of the named. The tag usage, or doc, says what it is for,
// and takes which word of that is the value's name. What the field has is the default.
func Options(fs *flag.FlagSet, c any, only ...string) {
	options(fs, reflect.ValueOf(c).Elem(), only)
}

func options(fs *flag.FlagSet, v reflect.Value, only []string) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, is := f.Tag.Lookup("flag")
		if !is {
			if (f.IsExported() || f.Anonymous) && f.Type.Kind() == reflect.Struct {
				options(fs, v.Field(i), only)
			}
			continue
		}
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		usage := cmp.Or(f.Tag.Get("usage"), f.Tag.Get("doc"))
		if word := f.Tag.Get("takes"); word != "" {
			usage = strings.Replace(usage, word, "`"+word+"`", 1)
		}
		switch to := v.Field(i).Addr().Interface().(type) {
		case *string:
			fs.StringVar(to, name, *to, usage)
		case *bool:
			fs.BoolVar(to, name, *to, usage)
		case *int:
			fs.IntVar(to, name, *to, usage)
		case *uint64:
			fs.Uint64Var(to, name, *to, usage)
		case *float64:
			fs.Float64Var(to, name, *to, usage)
		case *time.Duration:
			fs.DurationVar(to, name, *to, usage)
		case flag.Value:
			fs.Var(to, name, usage)
		case *[]int:
			usage += fmt.Sprintf(", `LIST` (default %s)", strings.Trim(strings.ReplaceAll(fmt.Sprint(*to), " ", ","), "[]"))
			listVar(fs, to, name, usage, "integer: want a list such as 8,16", strconv.Atoi)
		case *[]float64:
			usage += fmt.Sprintf(", `LIST` of shares of one, rising (default %v to %v)", (*to)[0], (*to)[len(*to)-1])
			listVar(fs, to, name, usage, "number: want a list such as 0.01,0.05", func(s string) (float64, error) { return strconv.ParseFloat(s, 64) })
		case *[]time.Duration:
			usage += fmt.Sprintf(", `LIST` (default %s)", strings.NewReplacer(" ", ",", "µ", "u", "[", "", "]", "").Replace(fmt.Sprint(*to)))
			listVar(fs, to, name, usage, "time: want a list such as 100us,10ms", time.ParseDuration)
		default:
			panic("cli: invariant: no flag has a " + f.Type.String() + ", as " + name + " is")
		}
	}
}

// listVar is a flag of values with commas between; want says of what is none what it is
// not, and how a list looks.
func listVar[T any](fs *flag.FlagSet, to *[]T, name, usage, want string, read func(string) (T, error)) {
	fs.Func(name, usage, func(text string) error {
		var list []T
		for _, part := range strings.Split(text, ",") {
			v, err := read(strings.TrimSpace(part))
			if err != nil {
				return fmt.Errorf("%q is no %s", part, want)
			}
			list = append(list, v)
		}
		*to = list
		return nil
	})
}
