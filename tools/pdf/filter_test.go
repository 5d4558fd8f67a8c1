package pdf

import (
	"bytes"
	"compress/flate"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// predicted applies a filter of PNG to each row of an image, as the standard of PNG has it.
func predicted(rows [][]byte, pixel int, kind func(row int) byte) []byte {
	var out []byte
	before := make([]byte, len(rows[0]))
	abs := func(n int) int { return max(n, -n) }
	for n, row := range rows {
		k := kind(n)
		out = append(out, k)
		for i, c := range row {
			a, b, d := 0, int(before[i]), 0
			if i >= pixel {
				a, d = int(row[i-pixel]), int(before[i-pixel])
			}
			guess := 0
			switch k {
			case 1:
				guess = a
			case 2:
				guess = b
			case 3:
				guess = (a + b) / 2
			case 4:
				p := a + b - d
				pa, pb, pc := abs(p-a), abs(p-b), abs(p-d)
				switch {
				case pa <= pb && pa <= pc:
					guess = a
				case pb <= pc:
					guess = b
				default:
					guess = d
				}
			}
			out = append(out, c-byte(guess))
		}
		before = row
	}
	return out
}

// What the filters of PNG did is undone, whatever the size of a pixel.
func TestPredictionIsUndone(t *testing.T) {
	for _, tt := range []struct {
		colors, bits, columns, pixel, width int
	}{{1, 8, 9, 1, 9}, {3, 8, 7, 3, 21}, {1, 1, 10, 1, 2}, {1, 4, 3, 1, 2}, {2, 16, 5, 4, 20}, {3, 5, 4, 2, 8}} {
		r := rand.New(rand.NewPCG(7, uint64(tt.width)))
		var rows [][]byte
		var want []byte
		for range 40 {
			row := make([]byte, tt.width)
			for i := range row {
				row[i] = byte(r.IntN(8) * 31)
			}
			rows, want = append(rows, row), append(want, row...)
		}
		data := predicted(rows, tt.pixel, func(row int) byte { return byte(row % 5) })
		parm := dict{"Predictor": 12.0, "Colors": float64(tt.colors), "BitsPerComponent": float64(tt.bits), "Columns": float64(tt.columns)}
		if got := fresh("").predict(parm, bytes.Clone(data)); !bytes.Equal(got, want) {
			t.Errorf("%+v: undone is\n% x, want\n% x", tt, got[:min(99, len(got))], want[:99])
		}
		parm["Predictor"] = 2.0 // of another format
		if got := fresh("").predict(parm, data); !bytes.Equal(got, data) {
			t.Errorf("%+v: what is no prediction of PNG was changed", tt)
		}
	}
	// Sizes that make no sense are those that apply where nothing is said; the last row may be short.
	for _, columns := range []float64{-3, 0, 1 << 16} {
		got := fresh("").predict(dict{"Predictor": 10.0, "Columns": columns}, []byte{0, 'a', 2, 1, 0, 'c', 0})
		if string(got) != "abc" {
			t.Errorf("with %v columns: %q", columns, got)
		}
	}
	if got := fresh("").predict(dict{"Predictor": 15.0, "Columns": 4.0}, []byte{0, 'a', 'b', 'c', 'd', 2, 0, 1}); string(got) != "abcdac" {
		t.Errorf("of a short row is left %q", got)
	}
}

// Each way of packing has two names; one that only pictures have gives nothing.
func TestWaysOfPacking(t *testing.T) {
	var bare bytes.Buffer
	w, err := flate.NewWriter(&bare, 9)
	if err != nil {
		t.Fatal(err)
	}
	w.Write([]byte("hello"))
	w.Close()
	lzw := string([]byte{0x80, 0x0B, 0x60, 0x50, 0x22, 0x0C, 0x0C, 0x85, 0x01})
	for _, tt := range []struct{ kinds, data, want string }{
		{"FlateDecode Fl", string(packed("hello")), "hello"}, {"FlateDecode Fl", bare.String(), "hello"},
		{"FlateDecode", "", ""}, {"FlateDecode", "\x78\x9c", ""},
		{"LZWDecode LZW", lzw, "-----A---B"}, {"ASCIIHexDecode AHx", "68 65 6C 6C 6F>", "hello"},
		{"ASCII85Decode A85", "<~" + a85([]byte("hello")) + "x", "hello"},
		{"ASCII85Decode A85", strings.TrimSuffix(a85([]byte("hello")), "~>"), "hello"},
		{"RunLengthDecode RL", "\x01he\xffl\x00o\x80x", "hello"}, {"RL", "\x04hel", "hel"}, {"RL", "\x00", ""},
		{"RL", "\x81x\x7f" + strings.Repeat("y", 128), strings.Repeat("x", 128) + strings.Repeat("y", 128)},
		{"DCTDecode JBIG2Decode", "hello", ""},
	} {
		for kind := range strings.FieldsSeq(tt.kinds) {
			if got := string(fresh("").filter(name(kind), nil, []byte(tt.data))); got != tt.want {
				t.Errorf("%s of %q: %q, want %q", kind, tt.data, got, tt.want)
			}
		}
	}
	twice := &stream{dict: dict{"Filter": []any{name("AHx"), name("Fl")},
		"DecodeParms": []any{nil, dict{"Predictor": 12.0, "Columns": 5.0}}},
		raw: fmt.Appendf(nil, "%x>", packed("\x00hello"))}
	if got := string(fresh("").unpack(twice)); got != "hello" {
		t.Errorf("packed twice: %q", got)
	}
	one := &stream{dict: dict{"Filter": name("Fl"), "DecodeParms": dict{"Predictor": 12.0, "Columns": 5.0}}, raw: packed("\x00hello")}
	if got := string(fresh("").unpack(one)); got != "hello" {
		t.Errorf("packed once: %q", got)
	}
	if got := string(fresh("").unpack(&stream{raw: []byte("hello")})); got != "hello" {
		t.Errorf("not packed: %q", got)
	}
}

// asked is a context that counts how often it is looked at.
type asked struct {
	context.Context
	times int
	err   error
}

func (a *asked) Err() error { a.times++; return a.err }

// The work of a Read has an end, and its context is looked at on the way, not all the time.
func TestTheWorkOfAReadIsBounded(t *testing.T) {
	ctx := &asked{Context: context.Background()}
	m := meter{ctx: ctx, work: 4 << 20, check: 4 << 20}
	for range 4<<20 - 1 {
		if !m.charge(1) {
			t.Fatalf("ended with %d left: %v", m.work, m.err)
		}
	}
	if ctx.times < 3 || ctx.times > 6 {
		t.Errorf("the context was looked at %d times", ctx.times)
	}
	if m.charge(1) || !errors.Is(m.err, ErrTooLarge) || m.charge(-9999) {
		t.Errorf("nothing is left, and it goes on: %v", m.err)
	}
	ctx.err = context.Canceled
	m = meter{ctx: ctx, work: 100, check: 100}
	if m.charge(0) && m.charge(1) || m.err != context.Canceled || m.charge(1) {
		t.Errorf("cancelled, it goes on: %v", m.err)
	}
}

// What is unpacked is bounded in bytes, over all streams.
func TestWhatIsUnpackedIsBounded(t *testing.T) {
	for _, kind := range []name{"Fl", "RL"} {
		data := packed(strings.Repeat("x", 256))
		if kind == "RL" {
			data = []byte("\x81x\x81x")
		}
		f := fresh("")
		f.left.unpacked = 512
		for n := range 2 {
			if got := f.filter(kind, nil, data); len(got) != 256 || f.left.err != nil {
				t.Errorf("%s: after %d times %d bytes, %v", kind, n, len(got), f.left.err)
			}
		}
		if f.filter(kind, nil, data); !errors.Is(f.left.err, ErrTooLarge) {
			t.Errorf("%s: beyond the limit: %v", kind, f.left.err)
		}
	}
	ctx := &asked{Context: context.Background(), err: context.Canceled}
	f := fresh("")
	f.left.ctx = ctx
	if got := f.filter("Fl", nil, packed(strings.Repeat("x", 5<<20))); len(got) > 2<<20 || !errors.Is(f.left.err, context.Canceled) {
		t.Errorf("cancelled, %d bytes are unpacked: %v", len(got), f.left.err)
	}
}

// A page that is too much work ends the text before it, and the next call begins there; as
// the first page it is an error.
func TestAPageThatIsTooMuchWork(t *testing.T) {
	bomb := raw("/Filter[/FlateDecode/FlateDecode]", string(packed(string(packed(strings.Repeat("0 ", 1<<20))))))
	data := made(root, "<</Kids[3 0 R 4 0 R 8 0 R]/Resources<</Font<</F1 7 0 R>>>>>>", "<</Contents 5 0 R>>", "<</Contents 6 0 R>>",
		raw("", "BT /F1 9 Tf (good) Tj"), bomb, plain, "<</Contents 5 0 R>>")
	limited := func(ctx context.Context, first int) (Text, error) {
		return (&file{data: data, left: meter{ctx: ctx, unpacked: maxUnpacked / 100, work: maxWork / 100,
			check: maxWork / 100}}).all(Options{First: first})
	}
	if got, err := limited(t.Context(), 1); err != nil || got != (Text{Pages: 3, First: 1, Last: 1, Body: "[page 1]\ngood", Next: 2}) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := limited(t.Context(), 2); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := limited(t.Context(), 3); err != nil || got.Body != "[page 3]\ngood" || got.Next != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}

// As many whole pages are shown as there is room for.
func TestAsManyPagesAsThereIsRoomFor(t *testing.T) {
	for chars, want := range map[int]Text{ // a page has 14, the second one none
		28: {First: 1, Last: 3, Next: 4}, 27: {First: 1, Last: 2, Next: 3}, 14: {First: 1, Last: 2, Next: 3},
		13: {First: 1, Last: 1, Next: 2}, 0: {First: 1, Last: 4},
	} {
		got := read(t, many(4), Options{MaxChars: chars})
		if got.First != want.First || got.Last != want.Last || got.Next != want.Next ||
			strings.Contains(got.Body, "left out") != (chars == 13) {
			t.Errorf("with room for %d: %+v, want %+v", chars, got, want)
		}
	}
}
