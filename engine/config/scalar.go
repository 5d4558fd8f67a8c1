package config

import (
	"fmt"
	"math"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// scalar reads a single value and checks it by the tags of its field.
func (r *reader) scalar(n *yaml.Node, t reflect.Type, path string, tag reflect.StructTag) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		r.wrong(n, path, words(t, tag))
		return nil, false
	}
	v, allowed := parse(n.Value, n.ShortTag(), t, tag)
	if allowed == "" {
		return v, true
	}
	found := describe(n)
	if t == secretType || hasCheck(tag, "env") {
		found = "something else" // it may be a secret
	}
	id := "settings-bad-value"
	if v == nil {
		id = "settings-wrong-type"
	}
	r.bad(n, id, path+":", "found "+found+", allowed: "+allowed)
	return nil, false
}

// parse makes a value of a text. kind is YAML's tag for how it is written, "" for
// a text from the environment, which may be anything. On failure it says what
// is allowed; v is then nil if the kind is wrong already.
func parse(text, kind string, t reflect.Type, tag reflect.StructTag) (v any, allowed string) {
	allowed = words(t, tag)
	written := func(kinds ...string) bool { return kind == "" || slices.Contains(kinds, kind) }
	switch {
	case t == durationType:
		d, err := time.ParseDuration(text)
		if text == "0" {
			d, err = 0, nil
		}
		if err != nil {
			return nil, allowed
		}
		if hasCheck(tag, "off") && d == 0 {
			return d, ""
		}
		if low, err := time.ParseDuration(tag.Get("min")); d < 0 || err == nil && d < low {
			return d, allowed
		}
		return d, ""
	case t == secretType, t.Kind() == reflect.String:
		if allow := tag.Get("allow"); allow != "" && !slices.Contains(strings.Split(allow, "|"), text) {
			return text, allowed
		}
		if text != "" && !checks(text, tag) {
			return text, allowed
		}
		if text == "" && hasCheck(tag, "required") {
			return text, allowed
		}
		return text, ""
	case t.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || !written("!!bool") {
			return nil, allowed
		}
		return b, ""
	case t.Kind() == reflect.Float64:
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !written("!!int", "!!float") || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, allowed
		}
		return f, outside(f, tag, allowed)
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err != nil || !written("!!int") {
			return nil, allowed
		}
		return i, outside(float64(i), tag, allowed)
	}
	return nil, "nothing: the program has no reading for this setting"
}

// outside is allowed if f is not within the field's bounds, else "".
func outside(f float64, tag reflect.StructTag, allowed string) string {
	if low, err := strconv.ParseFloat(tag.Get("min"), 64); err == nil && f < low {
		return allowed
	}
	if high, err := strconv.ParseFloat(tag.Get("max"), 64); err == nil && f > high {
		return allowed
	}
	return ""
}

// words says what a field allows.
func words(t reflect.Type, tag reflect.StructTag) string {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	low, high := tag.Get("min"), tag.Get("max")
	limits := ""
	switch {
	case low != "" && high != "":
		limits = fmt.Sprintf(" from %s to %s", low, high)
	case low != "":
		limits = fmt.Sprintf(" of at least %s", low)
	}
	switch {
	case t == durationType && hasCheck(tag, "off"):
		return "0 for never, or a duration such as 30m or 1h30m" + limits
	case t == durationType:
		return "a duration such as 30s, 5m or 1h30m" + limits
	case t.Kind() == reflect.Bool:
		return "true or false"
	case t.Kind() == reflect.Float64:
		return "a number" + limits
	case t.Kind() == reflect.Int || t.Kind() == reflect.Int64:
		return "a whole number" + limits
	}
	if allow := tag.Get("allow"); allow != "" {
		return strings.ReplaceAll(allow, "|", ", ")
	}
	for name, c := range textChecks {
		if hasCheck(tag, name) {
			return c.words
		}
	}
	return "a text"
}

func hasCheck(tag reflect.StructTag, name string) bool {
	return slices.Contains(strings.Split(tag.Get("check"), ","), name)
}

// checks reports whether a text passes the checks that its field names.
func checks(text string, tag reflect.StructTag) bool {
	for name, c := range textChecks {
		if hasCheck(tag, name) && !c.ok(text) {
			return false
		}
	}
	return true
}

var (
	idPattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	envPattern   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	hoursPattern = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d-(([01]\d|2[0-3]):[0-5]\d|24:00)$`)
)

// textChecks are the forms of text that a field may ask for in its check tag.
var textChecks = map[string]struct {
	ok    func(string) bool
	words string
}{
	"id":       {idPattern.MatchString, "letters, digits, dot, dash and underscore, at most 64"},
	"env":      {envPattern.MatchString, "the name of an environment variable, not the secret itself"},
	"hours":    {hoursPattern.MatchString, `hours such as "08:00-22:00"`},
	"url":      {isURL, "an address that begins with http:// or https://"},
	"listen":   {isListen, "HOST:PORT, such as 127.0.0.1:7331"},
	"timezone": {isZone, "an IANA time zone such as Europe/Berlin"},
}

func isURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

func isListen(s string) bool {
	host, port, err := net.SplitHostPort(s)
	if err != nil || strings.ContainsAny(host, " /") {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	return err == nil && (n > 0 || port == "0")
}

func isZone(s string) bool {
	_, err := time.LoadLocation(s)
	return err == nil
}
