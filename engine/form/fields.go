package form

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"
)

// A Field is a field of a struct that a file can set.
type Field struct {
	reflect.StructField
	Key string
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
			all = append(all, Field{f, key})
		}
	}
	known.Store(t, all)
	return all
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
	return len(rest) == 0 && sound(reflect.ValueOf(into).Elem(), "")
}

// sound reports whether a value is surely one that its tags allow.
func sound(v reflect.Value, tag reflect.StructTag) bool {
	switch v.Kind() {
	case reflect.Pointer:
		return v.IsNil() || sound(v.Elem(), tag)
	case reflect.Struct:
		for _, f := range Fields(v.Type()) {
			if !sound(v.FieldByIndex(f.Index), f.Tag) {
				return false
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			if !sound(v.Index(i), tag) {
				return false
			}
		}
	case reflect.String:
		return tag == "" || fits(v.String(), tag)
	case reflect.Int, reflect.Int64:
		return v.Type() == reflect.TypeFor[time.Duration]() || outside(float64(v.Int()), tag, "x") == ""
	case reflect.Float64:
		return outside(v.Float(), tag, "x") == ""
	}
	return true
}
