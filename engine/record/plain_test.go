package record

import (
	"math"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"daycare/engine/disk"
)

// TestAsReadIsWhatIsRead fills the members of all records at random, those too that a later version adds.
func TestAsReadIsWhatIsRead(t *testing.T) {
	made := map[Type]int{}
	rapid.Check(t, func(r *rapid.T) {
		for _, rec := range Blanks() {
			fill(r, reflect.ValueOf(rec).Elem())
			e := &Entry{Seq: 7, At: disk.StampOf(time.Now()).Time, Rec: rec}
			line := Encode(e)
			got := asRead(rec, line)
			if got == nil {
				continue
			}
			made[rec.Type()]++
			want, err := Decode(line)
			if err != nil {
				r.Fatalf("%s: %v", line, err)
			}
			if !reflect.DeepEqual(got, want.Rec) {
				r.Fatalf("%s\nis read as %#v\nwhich is made as %#v", line, want.Rec, got)
			}
			if want.Rec = got; *want != (Entry{Seq: e.Seq, At: e.At, Rec: got}) {
				r.Fatalf("%s is read as %+v, written as %+v", line, want, e)
			}
		}
	})
	for _, often := range []Type{TypeTurnBegin, TypeUser, TypeAssistant, TypeToolStart, TypeDelivery, TypeTurnEnd} {
		if made[often] == 0 {
			t.Errorf("each %s is read", often)
		}
	}
}

// TestAsReadIsACopy: what happens to a record after it was appended does not change history.
func TestAsReadIsACopy(t *testing.T) {
	end := &TurnEnd{Turn: "t", Items: []string{"a"}, Outs: []Out{{ID: "o", Delivered: []int{1}}}, Once: []OnceGrant{{Token: "p"}}}
	got := asRead(end, nil).(*TurnEnd)
	end.Items[0], end.Outs[0].ID, end.Outs[0].Delivered[0], end.Once[0].Token = "", "", 0, ""
	want := &TurnEnd{Turn: "t", Items: []string{"a"}, Outs: []Out{{ID: "o", Delivered: []int{1}}}, Once: []OnceGrant{{Token: "p"}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}

	said := &Assistant{Out: &Out{ID: "o"}, Exchange: Exchange{Sent: &Sent{Model: "m"}}, Thinking: []Thinking{{Text: "hm"}}}
	as := asRead(said, nil).(*Assistant)
	said.Out.ID, said.Sent.Model, said.Thinking[0].Text = "", "", ""
	if as.Out.ID != "o" || as.Sent.Model != "m" || as.Thinking[0].Text != "hm" {
		t.Errorf("%+v", as)
	}
}

// fill sets what v holds at random, often to what a line cannot say.
func fill(r *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[disk.Stamp]() {
		v.Set(reflect.ValueOf(disk.Stamp{Time: time.Unix(rapid.Int64Range(0, 1<<32).Draw(r, "time"), 123456)}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(rapid.SampledFrom([]string{"", "a", "é\u2028\n<&>", "\ufffd"}).Draw(r, "text"))
		if rapid.IntRange(0, 19).Draw(r, "bad") == 19 {
			v.SetString(rapid.SampledFrom([]string{`\ufffd`, "bad \xff utf8"}).Draw(r, "text"))
		}
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(r, "bool"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(r, "int"))
	case reflect.Float64:
		v.SetFloat(rapid.SampledFrom([]float64{0, 0.1, 1e-9, 1e300, 2, 7, math.NaN(), math.Inf(1)}).Draw(r, "float"))
	case reflect.Uint8:
		v.SetUint('1')
	case reflect.Slice:
		if n := rapid.IntRange(-2, 2).Draw(r, "len"); n >= 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				fill(r, v.Index(i))
			}
		}
	case reflect.Pointer:
		if rapid.Bool().Draw(r, "there") {
			v.Set(reflect.New(v.Type().Elem()))
			fill(r, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(r, v.Field(i))
		}
	default:
		r.Fatalf("a %s in a record", v.Type())
	}
}
