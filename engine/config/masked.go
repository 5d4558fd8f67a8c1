package config

import (
	"reflect"
	"strings"
	"time"

	"daycare/engine/form"
)

// Masked returns the configuration in the spelling of settings.yaml, for display: secrets and
// logins in addresses are [redacted], durations are formatted as in the file, and of connectors
// only options are included that are known not to be secret.
func (c *Config) Masked() any { return masked(reflect.ValueOf(*c)) }

func masked(v reflect.Value) any {
	switch t := v.Type(); {
	case t == reflect.TypeFor[time.Duration]():
		return FormatDuration(v.Interface().(time.Duration))
	case t == secretType:
		return v.Interface().(Secret).String()
	case t.Kind() == reflect.Pointer && v.IsNil():
		return nil
	case t.Kind() == reflect.Pointer:
		return masked(v.Elem())
	case t.Kind() == reflect.Struct:
		m := map[string]any{}
		for _, f := range form.Fields(t) {
			m[f.Key] = masked(v.FieldByIndex(f.Index))
		}
		return m
	case t.Kind() == reflect.Slice:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = masked(v.Index(i))
		}
		return list
	case t.Kind() == reflect.Map:
		// Headers, environments and options often carry keys: the names are enough.
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[k.String()] = redacted
		}
		return m
	case t.Kind() == reflect.String:
		return HideLogin(v.String())
	}

	return v.Interface()
}

// FormatDuration formats a duration as users write it: 30m, not 30m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}

	return s
}
