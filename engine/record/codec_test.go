package record

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/engine/finding"
	"daycare/engine/message"
)

// oneOfEach is a record of every type with every member set.
func oneOfEach() []Record {
	to := message.Address{Connector: "telegram", ChannelID: "5550001", UserID: "5550001", ThreadID: "7"}
	file := message.File{ID: "f1", Name: "a.png", MimeType: "image/png", Size: 12, Path: "/w/.daycare/files/f1__a.png"}
	tokens := Tokens{Input: 1200, Output: 34, CacheRead: 900, CacheWrite: 12}
	out := Out{ID: "o1", To: to, ReplyTo: "77"}
	late := Out{ID: "o0", To: to, Parts: 3, Delivered: []int{0, 2}}
	once := []OnceGrant{{Token: "p1", SHA256: "ab12"}}
	return []Record{
		&Start{Session: "s1", V: Version, Outs: []Out{late}, Once: once, ForkedFrom: &Fork{Agent: "a1", Seq: 9},
			Continues: "history/000001.jsonl"},
		&Reset{Session: "s2", V: Version, Outs: []Out{late}, Once: once, Item: "i1", Reason: "user", Message: "forget <it> & go on"},
		&Mark{Name: "before"},
		&Rewind{To: 3, Item: "i2"},
		&Permission{Token: "p1", Item: "i3", Event: "once", Tag: "@exec:git push", By: "telegram:5550001",
			SHA256: "ab12", Request: "git push origin"},
		&TurnBegin{Turn: "t1", Items: []string{"i4", "i5"}, Attempt: 1, Model: "m"},
		&TurnBegin{Turn: "t1", Attempt: 2},
		&User{Item: "i4", Text: "look at\n<this>", Files: []message.File{file},
			Context: &message.Context{MessageID: "77", ReplyTo: "70", Sender: "Ada"},
			Route:   &to, Zone: "Europe/Berlin", Preface: "one child runs", Origin: "a2", Silent: true, Hops: 2,
			Untrusted: true, Joins: true},
		&Assistant{Turn: "t1", Text: "I look", Thinking: []Thinking{{Text: "hm", Signature: "c2ln"}},
			ToolCalls: []ToolCall{{ID: "c1", RemoteID: "toolu_1", Name: "read", Arguments: json.RawMessage(`{"path":"a.png"}`)}},
			Finish:    FinishToolUse, Provider: "anthropic", Model: "m", Tokens: tokens, Cost: 0.0123, Out: &out},
		&ToolStart{ToolCallID: "c1", Name: "exec", Grant: "p1"},
		&ToolResult{ToolCallID: "c1", Name: "exec", Status: StatusOK, Files: []message.File{file}, MS: 12,
			Output: Output{Text: "done\u2028", Blocks: []Block{{Type: "image", File: &file}, {Type: "diff", Text: "+a"}}, Blob: "ff00"}},
		&Delivery{Out: "o1", Part: 1, Parts: 2, RemoteID: "900"},
		&Delivery{Out: "o1", Part: 1, Parts: 2, Error: "chat not found", Retry: true, Final: true},
		&TurnEnd{Turn: "t1", Items: []string{"i4"}, Outs: []Out{out}, Once: once, Session: "s2", Reason: ReasonError, Error: "status 500"},
		&TurnEnd{Turn: "t2", Reason: ReasonDone},
		&Summary{Text: "so far", From: 2, KeptFrom: 8, SHA256: "cd34", Provider: "p", Model: "m", Item: "i6", Tokens: tokens, Cost: 0.5},
		&Note{Text: "stopped here", Item: "i7", Suspended: "t1"},
	}
}

func encodeAll(recs []Record) []byte {
	var buf bytes.Buffer
	at := time.Date(2026, 11, 20, 17, 22, 0, 7_000_000, time.FixedZone("CET", 3600))
	for i, r := range recs {
		buf.Write(Encode(&Entry{Seq: int64(i + 1), At: at.Add(time.Duration(i) * time.Second), Rec: r}))
	}
	return buf.Bytes()
}

func TestGoldenLines(t *testing.T) {
	path := filepath.Join("testdata", "history.golden.jsonl")
	got := encodeAll(oneOfEach())
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the line format changed; old histories must stay readable (-file +now):\n%s", diff)
	}
}

func TestDecodeGivesBackWhatWasEncoded(t *testing.T) {
	recs := oneOfEach()
	for i, line := range splitLines(encodeAll(recs)) {
		e, err := Decode(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e.ByHand || e.Seq != int64(i+1) {
			t.Errorf("line %d: seq %d, by hand %v", i+1, e.Seq, e.ByHand)
		}
		if diff := cmp.Diff(recs[i], e.Rec, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-encoded +decoded):\n%s", recs[i].Type(), diff)
		}
	}
}

func TestEncodeMendsWhatJSONCannotHold(t *testing.T) {
	a := &Assistant{Turn: "t", Finish: FinishToolUse, Cost: math.NaN(), ToolCalls: []ToolCall{
		{ID: "c1", Name: "read", Arguments: json.RawMessage(`{"path": "a`)}, {ID: "c2", Name: "ls"}}}
	e, err := Decode(Encode(&Entry{Seq: 1, At: time.Now(), Rec: a}))
	if err != nil {
		t.Fatal(err)
	}
	got := e.Rec.(*Assistant)
	if string(got.ToolCalls[0].Arguments) != `"{\"path\": \"a"` || string(got.ToolCalls[1].Arguments) != `{}` || got.Cost != 0 {
		t.Errorf("arguments %s and %s, cost %v", got.ToolCalls[0].Arguments, got.ToolCalls[1].Arguments, got.Cost)
	}
}

func TestDecodeByHand(t *testing.T) {
	tests := []struct {
		name, line string
		want       *Entry // nil: an error
		column     int
		unknown    bool
	}{
		{name: "no crc, no seq", line: `{"type":"note","text":"hi"}`, want: &Entry{Rec: &Note{Text: "hi"}, ByHand: true}},
		{name: "other order and spacing", line: ` { "text": "hi", "type": "note", "seq": 4 } `,
			want: &Entry{Seq: 4, Rec: &Note{Text: "hi"}, ByHand: true}},
		{name: "wrong crc", line: `{"seq":4,"type":"note","text":"hi","crc":"00000000"}`,
			want: &Entry{Seq: 4, Rec: &Note{Text: "hi"}, ByHand: true}},
		{name: "unknown member", line: `{"type":"mark","name":"x","colour":"red"}`, want: &Entry{Rec: &Mark{Name: "x"}, ByHand: true}},
		{name: "unknown type", line: `{"seq":5,"type":"holiday"}`, want: &Entry{Seq: 5, ByHand: true}, unknown: true},
		{name: "no type", line: `{"seq":5}`},
		{name: "a list", line: `[1]`, column: 1},
		{name: "null", line: `null`},
		{name: "empty", line: ``, column: 1},
		{name: "negative seq", line: `{"seq":-1,"type":"mark"}`},
		{name: "absurd seq", line: `{"seq":9223372036854775807,"type":"mark"}`},
		{name: "syntax", line: `{"type":"mark","name":x}`, column: 23},
		{name: "wrong kind", line: `{"type":"mark","name":7}`, column: 23},
		{name: "cut", line: `{"type":"mark","na`, column: 18},
		{name: "bad time", line: `{"at":"yesterday","type":"mark"}`},
		{name: "a time after the year 9999", line: `{"at":"9999-12-31T23:59:59-05:00","type":"mark"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Decode([]byte(tt.line))
			if errors.Is(err, ErrUnknownType) != tt.unknown {
				t.Errorf("error %v, want unknown type: %v", err, tt.unknown)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("entry (-want +got):\n%s", diff)
			}

			var f finding.Finding
			if (tt.want == nil || tt.unknown) && !errors.As(err, &f) {
				t.Errorf("error %v is no finding", err)
			}
			if tt.column != 0 && f.Column != tt.column {
				t.Errorf("column %d, want %d (%s)", f.Column, tt.column, f.Reason)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	for _, line := range splitLines(encodeAll(oneOfEach())) {
		f.Add(line)
	}
	f.Add([]byte(`{"type":"note","text":"hi"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := Decode(line)
		if err != nil || bytes.ContainsRune(line, '\n') {
			return
		}

		// What was read can be written, and reads the same.
		again, err := Decode(Encode(e))
		if err != nil {
			t.Fatalf("%q: written anew it cannot be read: %v", line, err)
		}
		if e.Seq != again.Seq || e.Rec.Type() != again.Rec.Type() {
			t.Errorf("%q: seq or type changed", line)
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	e := &Entry{Seq: 123456, At: time.Now(), Rec: answering("tz4a98xxat96iws9zmbrgj3a", strings.Repeat("An answer of some length. ", 40))}
	b.SetBytes(int64(len(Encode(e))))
	b.ReportAllocs()
	for b.Loop() {
		Encode(e)
	}
}

func BenchmarkDecode(b *testing.B) {
	line := Encode(&Entry{Seq: 123456, At: time.Now(),
		Rec: answering("tz4a98xxat96iws9zmbrgj3a", strings.Repeat("An answer of some length. ", 40))})
	b.SetBytes(int64(len(line)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode(line); err != nil {
			b.Fatal(err)
		}
	}
}
