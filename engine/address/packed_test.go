package address

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Every member of a descriptor is kept: whoever adds one adds it to texts, or fails here.
func TestADescriptorIsKeptWhole(t *testing.T) {
	var fill func(v reflect.Value, path string) // gives each member another value
	fill = func(v reflect.Value, path string) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				fill(v.Field(i), path+"."+v.Type().Field(i).Name)
			}
		case reflect.String:
			v.SetString(path + strings.Repeat("x", 300))
		case reflect.Bool:
			v.SetBool(true)
		default:
			t.Fatalf("%s is of a kind that pack does not keep", path)
		}
	}
	var full Descriptor
	fill(reflect.ValueOf(&full).Elem(), "")
	for name, d := range map[string]Descriptor{"nothing": {}, "all": full, "some": {Type: User, ChannelID: "1", Spawned: true}} {
		got, ok := pack(d).unpack()
		if diff := cmp.Diff(d, got); diff != "" || !ok {
			t.Errorf("%s: %v, %s", name, ok, diff)
		}
	}
	whole := pack(Descriptor{Type: User, ChannelID: "1"})
	for _, bad := range []packed{"\x16\x00", "\x00", "\x00\x80", "\x00\x02a", packed("\x00" + strings.Repeat("\xff", 11)),
		whole[:len(whole)-1]} {
		if d, ok := bad.unpack(); ok {
			t.Errorf("%q is %+v", fmt.Sprintf("%x", string(bad)), d)
		}
	}
}
