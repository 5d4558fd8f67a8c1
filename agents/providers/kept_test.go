package providers

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// written is how a wire of the test writes a message.
func written(wire string) func(*Message) []byte {
	return func(m *Message) []byte { return []byte(wire + m.Parts[0].(Text).Text) }
}

// body is what a wire of the test sends.
func (r *Request) body(wire string) *Body {
	var b Body
	b.Add([]byte(r.System))
	b.Messages(r, wire, written(wire))
	b.Add([]byte("]"))

	return &b
}

// want is the same, put together by hand.
func (r *Request) want(wire string) string {
	var all []string
	for _, m := range r.Messages {
		all = append(all, string(written(wire)(m)))
	}
	return r.System + strings.Join(all, ",") + "]"
}

// chars is what Estimate counts, by hand.
func (r *Request) chars() (n int) {
	for _, m := range r.Messages {
		n += len(m.Parts[0].(Text).Text)
	}
	return n + len(r.System)
}

// Whatever a conversation does, a request that is made of what was kept is the same as one that is made anew, also one that is
// read, summed or sent again after later ones.
func TestKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		next := 0
		says := func() *Message {
			next++
			text := strings.Repeat("x", rapid.IntRange(0, 100).Draw(t, "length")) + fmt.Sprint(next)
			return &Message{Role: User, Parts: []Part{Text{text}}}
		}
		kept, system, tools := &Kept{}, "system", []Tool{{Name: "a"}, {Name: "b"}}
		messages, answered := []*Message{says()}, 0
		type sent struct {
			body *Body
			want string
		}
		var earlier []sent
		check := func(s sent) {
			if got := string(s.body.Bytes()); got != s.want || s.body.Len() != int64(len(got)) {
				t.Fatalf("%d bytes: %s\nwant %s", s.body.Len(), got, s.want)
			}
			if got, want := s.body.Sum(), fmt.Sprintf("%x", sha256.Sum256([]byte(s.want))); got != want {
				t.Fatalf("sum %s of %s, want %s", got, s.want, want)
			}
		}

		t.Repeat(map[string]func(*rapid.T){
			"answer": func(*rapid.T) {
				messages = append(messages, says(), says())
				answered = len(messages) - 1
			},
			"other last messages": func(*rapid.T) {
				messages = append(slices.Clone(messages[:answered]), says(), says())
			},
			"another old message": func(t *rapid.T) {
				messages = slices.Clone(messages)
				messages[rapid.IntRange(0, len(messages)-1).Draw(t, "which")] = says()
			},
			"another system prompt": func(*rapid.T) { system += "!" },
			"another tool":          func(*rapid.T) { tools = append(slices.Clip(tools), Tool{Name: "c", Description: system}) },
			"a call": func(t *rapid.T) {
				wire := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "wire")
				r := &Request{System: system, Messages: messages, Known: Known{Answered: answered, Kept: kept}}
				s := sent{r.body(wire), r.want(wire)}
				check(s)
				check(sent{(&Request{System: system, Messages: messages}).body(wire), s.want})
				if got, want := Estimate(r), tokens(r.chars()); got != want {
					t.Fatalf("%d tokens, want %d", got, want)
				}
				r.Tools = tools
				if got, want := sentOf(r, "sum"), (Sent{"sum", SystemSum(system), ToolsSum(tools)}); got != want {
					t.Fatalf("sent %+v, want %+v", got, want)
				}
				earlier = append(earlier, s)
			},
			"an earlier call once more": func(t *rapid.T) {
				if len(earlier) > 0 {
					check(rapid.SampledFrom(earlier).Draw(t, "call"))
				}
			},
		})
	})
}

// What was kept is not encoded again, and messages do not keep it a second time.
func TestWhatIsKeptIsEncodedOnce(t *testing.T) {
	kept, encoded := &Kept{}, 0
	var messages []*Message
	for n := range 100 {
		messages = append(messages, &Message{Role: User, Parts: []Part{Text{fmt.Sprint(n)}}})
		r := &Request{Messages: messages, Known: Known{Answered: n, Kept: kept}}
		var b Body
		b.Add(nil)
		b.Messages(r, "wire", func(m *Message) []byte {
			encoded++
			return written("")(m)
		})
		_ = b.Sum()
	}
	if encoded != len(messages) {
		t.Errorf("%d messages were encoded %d times", len(messages), encoded)
	}
	for _, m := range messages[:len(messages)-1] {
		if m.encoded.bytes != nil {
			t.Fatalf("%v is kept twice", m.Parts)
		}
	}
}

// Several requests of a conversation may be made at once.
func TestKeptByManyAtOnce(t *testing.T) {
	kept, messages := &Kept{}, []*Message{}
	for n := range 50 {
		messages = append(messages, &Message{Role: User, Parts: []Part{Text{fmt.Sprint(n)}}})
	}
	var calls sync.WaitGroup
	for n := range 16 {
		calls.Go(func() {
			for length := 1; length <= len(messages); length++ {
				r := &Request{System: fmt.Sprint(n % 2), Messages: messages[:length], Known: Known{Answered: length - 1, Kept: kept}}
				wire := []string{"a", "b"}[n/2%2]
				b := r.body(wire)
				want := r.want(wire)
				if got := string(b.Bytes()); got != want || b.Sum() != fmt.Sprintf("%x", sha256.Sum256([]byte(want))) {
					t.Errorf("%s with sum %s, want %s", got, b.Sum(), want)
				}
			}
		})
	}
	calls.Wait()
}
