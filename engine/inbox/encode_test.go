package inbox

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/disk"
	"daycare/engine/message"
)

// fill sets every field of v to something that is not zero, so that a field that
// is added to an item and forgotten by the encoder fails the test.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	switch v.Kind() {
	case reflect.String:
		v.SetString("text")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Date(2026, 11, 20, 18, 22, 0, 10_000_000, time.UTC)))
			return
		}
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}

func TestEveryFieldIsEncoded(t *testing.T) {
	var want Item
	fill(t, reflect.ValueOf(&want).Elem())
	want.Kind = message.Permission
	raw := appendItem(nil, &want)
	want.Long = false // it is on the way only, and not on disk
	var got Item
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("teach appendItem about this (-want +got):\n%s", d)
	}
}

// The format is a promise to users and to files that exist: nobody edits these.
func TestLines(t *testing.T) {
	at := time.Date(2026, 11, 20, 18, 22, 0, 0, time.FixedZone("CET", 3600))
	for _, tt := range []struct {
		got  []byte
		want string
	}{
		{appendItem(nil, &Item{Seq: 7, At: at, Kind: message.Text, ID: "a", Dedupe: "telegram:123",
			Context: message.Context{MessageID: "77", Sender: "Ann"}, Text: "hi \"you\"\n", Files: []message.File{{ID: "f", Name: "n"}}}),
			`{"seq":7,"at":"2026-11-20T17:22:00.000Z","type":"message","id":"a","dedupe":"telegram:123","context":{"messageId":"77",` +
				`"sender":"Ann"},"text":"hi \"you\"\n","files":[{"id":"f","name":"n","size":0}],"crc":"c9a32edc"}`},
		{appendItem(nil, &Item{Seq: 7, At: at, Kind: message.Text, ID: "a", Text: "hi", After: 41}),
			`{"seq":7,"at":"2026-11-20T17:22:00.000Z","type":"message","id":"a","text":"hi","after":41,"crc":"bf880483"}`},
		{appendDone(nil, 8, at, []string{"a", "b"}, 3),
			`{"seq":8,"at":"2026-11-20T17:22:00.000Z","type":"done","ids":["a","b"],"open":3,"crc":"04c0d522"}`},
		{appendDone(nil, 8, at, nil, 0), `{"seq":8,"at":"2026-11-20T17:22:00.000Z","type":"done","ids":[],"open":0,"crc":"8c2f2786"}`},
		{appendMark(nil, 9, at, lineFront, "a"), `{"seq":9,"at":"2026-11-20T17:22:00.000Z","type":"front","id":"a","crc":"06cdd7e3"}`},
		{appendKeys(nil, 1, at, []string{"00ff 1 a"}),
			`{"seq":1,"at":"2026-11-20T17:22:00.000Z","type":"keys","keys":["00ff 1 a"],"crc":"8015f01b"}`},
	} {
		if got := strings.TrimSuffix(string(tt.got), "\n"); got != tt.want {
			t.Errorf("line is\n%s\nwant\n%s", got, tt.want)
		}
		l, err := decode(tt.got[:len(tt.got)-1])
		if err != nil || l.byHand {
			t.Errorf("%s: decode: %v, by hand: %v", tt.got, err, l.byHand)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for _, raw := range []string{"", "x", "null", "[]", "{}", `{"type":"message"}`, `{"type":"dropped"}`, `{"type":"poem","id":"a"}`,
		`{"type":"message","id":7}`, `{"type":"message","id":"a","at":"yesterday"}`, `{"type":"message","id":"a"}}`} {
		if l, err := decode([]byte(raw)); err == nil {
			t.Errorf("%s was accepted: %+v", raw, l)
		}
	}
	l, err := decode([]byte(`{"type":"message","id":"a","text":"by hand"}`))
	if err != nil || !l.byHand {
		t.Errorf("a line written by hand: %+v, %v", l, err)
	}
}

func FuzzString(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\x1f \"\\\n\r\t\u2028\xff\xc3(")
	f.Fuzz(func(t *testing.T, s string) {
		raw := appendString(nil, s)
		var got string
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%q became %s: %v", s, raw, err)
		}
		if utf8.ValidString(s) && got != s {
			t.Errorf("%q came back as %q", s, got)
		}
	})
}

func FuzzLine(f *testing.F) {
	f.Add(appendDone(nil, 8, time.Time{}, []string{"a"}, 3))
	f.Add([]byte(`{"type":"keys","keys":["x y z"]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := decode(raw)
		if err == nil && l.Kind == "" {
			t.Error("a line without a type")
		}

		for _, s := range salvage(raw) {
			if !disk.Sealed(raw[s.off : s.off+int64(s.n)]) {
				t.Error("salvaged a line that is not intact")
			}
		}
		idAt(raw)
		proves(raw, true)
	})
}
