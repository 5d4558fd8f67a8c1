package form

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

// A Field is a field of a struct that a file can set.
type Field struct {
	reflect.StructField
	Key string

	free     bool // its tags allow everything
	required bool
}

var known sync.Map // the fields of each type, []Field: descriptors and states are read by the thousand

// Fields lists the keys of a struct in order, those of embedded structs among them.
func Fields(t reflect.Type) []Field {
	if all, ok := known.Load(t); ok {
		return all.([]Field)
	}
	var all []Field
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && key == "" && f.Type.Kind() == reflect.Struct {
			for _, inner := range Fields(f.Type) {
				inner.Index = append([]int{i}, inner.Index...)
				all = append(all, inner)
			}
		}
		if f.IsExported() && key != "" && key != "-" {
			all = append(all, newField(f, key))
		}
	}

	known.Store(t, all)
	return all
}

func newField(f reflect.StructField, key string) Field {
	free := true
	for _, tag := range []string{"check", "allow", "pattern", "min", "max"} {
		free = free && f.Tag.Get(tag) == ""
	}

	return Field{f, key, free, HasCheck(f.Tag, "required")}
}

// Clean reads a JSON file without anything to complain about, at the price of one parse.
// false: there may be something, so that File.Read has to look; into is then half filled.
func Clean(data []byte, into any) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if d.Decode(into) != nil {
		return false
	}
	rest := bytes.TrimSpace(data[d.InputOffset():])

	return len(rest) == 0 && sound(reflect.ValueOf(into).Elem(), Field{free: true})
}

// sound reports whether the value of a field is surely one that its tags allow.
func sound(v reflect.Value, f Field) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || sound(v.Elem(), f)
	case reflect.Struct:
		for _, inner := range Fields(v.Type()) {
			if !sound(v.FieldByIndex(inner.Index), inner) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !sound(v.Index(i), f) {
				return false
			}
		}
	case reflect.String:
		return f.free || fits(v.String(), f.Tag)
	case reflect.Int, reflect.Int64:
		return f.free || within(float64(v.Int()), f.Tag)
	case reflect.Float64:
		return f.free || within(v.Float(), f.Tag)
	}

	return true
}
