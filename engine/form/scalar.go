package form

import (
	"encoding"
	"fmt"
	"math"
	"net"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
)

// scalar reads a single value and checks it by the tags of its field.
func (r *reader) scalar(n *yaml.Node, t reflect.Type, path string, tag reflect.StructTag) (any, bool) {
	if n.Kind == yaml.SequenceNode && r.wrong() == finding.Warning && t.Kind() == reflect.String {
		return r.joined(n, path)
	}
	if n.Kind != yaml.ScalarNode {
		r.unfit(n, path, Words(t, tag))
		return nil, false
	}

	text, kind := n.Value, n.ShortTag()
	if r.kind.Loose {
		text, kind = loose(text, t), ""
	}
	if r.kind.Loose && strings.ContainsRune(text, 0) {
		r.bad(n, "bad-value", path+":", "found "+r.describe(n)+", allowed: a text without zero bytes")
		return nil, false
	}

	v, ok := parse(text, kind, t, tag)
	if r.json && kind != "!!str" && text == v {
		v, ok = nil, false // in YAML, 5 is a text where one is wanted
	}
	if ok {
		return v, true
	}

	found, allowed := r.describe(n), Words(t, tag)
	if HasCheck(tag, "env") {
		found = "something else" // it may be a secret
	}
	if v == nil {
		r.bad(n, "wrong-type", path+":", "found "+found+", allowed: "+allowed)
		return nil, false
	}
	if text, isText := v.(string); isText && r.kind.Odd != "" {
		r.add(n, r.kind.Odd, "bad-value", path+": found "+found+", allowed: "+allowed, "")
		return text, r.kind.Odd != finding.Error
	}

	r.bad(n, "bad-value", path+":", "found "+found+", allowed: "+allowed)
	return nil, false
}

// joined reads a list of texts where one is wanted, which is no reason to lose them.
func (r *reader) joined(n *yaml.Node, path string) (any, bool) {
	var parts []string
	for _, e := range n.Content {
		parts = append(parts, e.Value)
	}
	r.add(n, finding.Warning, "wrong-type", path+": found a list, allowed: a text", "")

	return strings.Join(parts, " "), true
}

// loose maps common slips to the value that was meant.
func loose(text string, t reflect.Type) string {
	text = strings.TrimSpace(text)
	if t.Kind() == reflect.Bool {
		switch strings.ToLower(text) {
		case "yes", "on":
			return "true"
		case "no", "off":
			return "false"
		}
		return strings.ToLower(text)
	}

	return text
}

// Parse makes a value of a text for a field, such as one of the environment. On failure
// it says what is allowed.
func Parse(text string, f Field) (v any, allowed string) {
	v, ok := parse(text, "", f.Type, f.Tag)
	if !ok {
		return nil, Words(f.Type, f.Tag)
	}

	return v, ""
}

// parse makes a value of a text. kind is YAML's tag for how it is written, "" for
// a text from the environment, which may be anything. Without ok the value is not
// allowed; v is then nil if the kind is wrong already.
func parse(text, kind string, t reflect.Type, tag reflect.StructTag) (v any, ok bool) {
	written := func(kinds ...string) bool { return kind == "" || slices.Contains(kinds, kind) }
	switch {
	case t == durationType:
		return parseDuration(text, tag)
	case reflect.PointerTo(t).Implements(textType):
		if err := reflect.New(t).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil {
			return nil, false
		}
		return text, true
	case t.Kind() == reflect.String, t == bytesType:
		return text, fits(text, tag)
	case t.Kind() == reflect.Bool:
		b, err := strconv.ParseBool(text)
		if err != nil || !written("!!bool") {
			return nil, false
		}
		return b, true
	case isFloat(t):
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || !written("!!int", "!!float") || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, false
		}
		return f, within(f, tag)
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		i, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err != nil || !written("!!int") || i < 0 && t.Kind() >= reflect.Uint ||
			reflect.Zero(t).CanInt() && reflect.Zero(t).OverflowInt(i) {
			return nil, false
		}
		return i, within(float64(i), tag)
	}

	return nil, false
}

// IsTime reports whether a type is a time, or one with a spelling of its own.
func IsTime(t reflect.Type) bool {
	return t == timeType || t.Kind() == reflect.Struct && t.NumField() == 1 && t.Field(0).Type == timeType
}

func isFloat(t reflect.Type) bool { return t.Kind() == reflect.Float64 || t.Kind() == reflect.Float32 }

// span reads a length of time: 90s, 30m, 1h30m, and whole days as 30d. "0" needs no unit.
func span(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseInt(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}

	return time.ParseDuration(text)
}

func parseDuration(text string, tag reflect.StructTag) (any, bool) {
	d, err := span(text)
	if err != nil {
		return nil, false
	}
	if d == 0 && HasCheck(tag, "off") {
		return d, true
	}
	if low, err := time.ParseDuration(tag.Get("min")); d < 0 || err == nil && d < low {
		return d, false
	}
	if high, err := time.ParseDuration(tag.Get("max")); err == nil && d > high {
		return d, false
	}

	return d, true
}

// fits reports whether a text is one that its field allows. Where the field is
// not required, the empty text is its way to say "not set".
func fits(text string, tag reflect.StructTag) bool {
	if allow := tag.Get("allow"); allow != "" {
		return slices.Contains(strings.Split(allow, "|"), text)
	}
	if text == "" {
		return !HasCheck(tag, "required")
	}
	if pattern := tag.Get("pattern"); pattern != "" && !compiled(pattern).MatchString(text) {
		return false
	}

	return checks(text, tag)
}

var patterns sync.Map // *regexp.Regexp by its text, compiled when it is first used

func compiled(pattern string) *regexp.Regexp {
	if re, ok := patterns.Load(pattern); ok {
		return re.(*regexp.Regexp)
	}
	re := regexp.MustCompile(pattern)
	patterns.Store(pattern, re)

	return re
}

// within reports whether f is within the field's bounds.
func within(f float64, tag reflect.StructTag) bool {
	if low, err := strconv.ParseFloat(tag.Get("min"), 64); err == nil && f < low {
		return false
	}
	high, err := strconv.ParseFloat(tag.Get("max"), 64)
	return err != nil || f <= high
}

// Words says what a field allows.
func Words(t reflect.Type, tag reflect.StructTag) string {
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
	case high != "":
		limits = fmt.Sprintf(" of at most %s", high)
	}

	switch {
	case t == durationType && HasCheck(tag, "off"):
		return "0 for never, or a duration such as 30m or 1h30m" + limits
	case t == durationType:
		return "a duration such as 30s, 5m or 1h30m" + limits
	case IsTime(t):
		return "a time such as 2026-12-01T09:00:00Z"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case isFloat(t):
		return "a number" + limits
	case t.Kind() >= reflect.Int && t.Kind() <= reflect.Uint64:
		return "a whole number" + limits
	}

	if allow := tag.Get("allow"); allow != "" {
		return strings.ReplaceAll(strings.TrimPrefix(allow, "|"), "|", ", ")
	}
	for name := range strings.SplitSeq(tag.Get("check"), ",") {
		if c, ok := texts[name]; ok {
			return c.words
		}
	}

	if pattern := tag.Get("pattern"); pattern != "" {
		return "a match of " + pattern
	}
	if HasCheck(tag, "required") {
		return "a text that is not empty"
	}

	return "a text"
}

// checks reports whether a text passes the checks that its field names.
func checks(text string, tag reflect.StructTag) bool {
	for name := range strings.SplitSeq(tag.Get("check"), ",") {
		if c, ok := texts[name]; ok && !c.ok(text) {
			return false
		}
	}

	return true
}

// Is reports whether a text is of a kind that the check tag names.
func Is(kind, text string) bool { return text != "" && texts[kind].ok(text) }

// Of says how texts of a kind look.
func Of(kind string) string { return texts[kind].words }

// texts are the kinds of text that a field may ask for in its check tag.
var texts = map[string]struct {
	ok    func(string) bool
	words string
}{
	"id":       {isID, "letters, digits, dot, dash and underscore, at most 64"},
	"env":      {isEnvName, "the name of an environment variable, not the secret itself"},
	"hours":    {isHours, `hours such as "08:00-22:00"`},
	"url":      {isURL, "an address that starts with http:// or https://"},
	"listen":   {isListen, "HOST:PORT, such as 127.0.0.1:7331"},
	"port":     {isPort, "HOST:PORT of one host in your network, such as nas.home:8080"},
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

func isPort(s string) bool {
	return isListen(s) && !strings.HasPrefix(s, ":") && !strings.HasPrefix(s, "*") && !strings.HasSuffix(s, ":0")
}

func isZone(s string) bool {
	_, err := time.LoadLocation(s)
	return err == nil
}

// The forms below are written out: compiled patterns would cost every command a
// part of a millisecond at start.

func isID(s string) bool {
	return len(s) <= 64 && letterOrDigit(rune(s[0])) &&
		!strings.ContainsFunc(s, func(r rune) bool { return !letterOrDigit(r) && !strings.ContainsRune("._-", r) })
}

func isEnvName(s string) bool {
	return len(s) <= 128 && (s[0] < '0' || s[0] > '9') &&
		!strings.ContainsFunc(s, func(r rune) bool { return !letterOrDigit(r) && r != '_' })
}

func letterOrDigit(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

// isHours knows "08:00-22:00"; the end may be 24:00 and may be before the start.
func isHours(s string) bool {
	from, to, ok := strings.Cut(s, "-")
	return ok && isClock(from) && (isClock(to) || to == "24:00")
}

func isClock(s string) bool {
	_, err := time.Parse("15:04", s)
	return err == nil && len(s) == 5
}
