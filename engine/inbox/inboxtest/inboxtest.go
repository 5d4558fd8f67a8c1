package inboxtest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Run checks every rule of the Mailbox comment. open opens the mailbox of an
// agent's folder, which exists; opening a folder again while the first mailbox
// was not closed is how the suite makes a crash.
func Run(t *testing.T, open func(t *testing.T, dir string) inbox.Mailbox) {
	for name, test := range map[string]func(*testing.T, *bench){
		"order":              order,
		"body":               body,
		"reopen":             reopen,
		"done":               done,
		"dedupe":             dedupe,
		"dedupe in flight":   dedupeInFlight,
		"dedupe over reopen": dedupeOverReopen,
		"front":              front,
		"drop":               drop,
		"edit":               edit,
		"taken":              taken,
		"unknown":            unknown,
		"too large":          tooLarge,
		"full of items":      fullOfItems,
		"full of bytes":      fullOfBytes,
		"wait":               wait,
		"arrived":            arrived,
		"close":              closing,
		"concurrent accepts": concurrent,
		"fresh":              fresh,
		"reached":            reached,
		"accept again":       again,
		"same id":            sameID,
	} {
		t.Run(name, func(t *testing.T) {
			b := &bench{t: t, dir: filepath.Join(t.TempDir()), open: open}
			b.crash()
			test(t, b)
		})
	}
}

// A bench is one mailbox under test.
type bench struct {
	t    *testing.T
	dir  string
	open func(*testing.T, string) inbox.Mailbox
	box  inbox.Mailbox
}

// crash abandons the mailbox and opens its folder anew.
func (b *bench) crash() {
	b.t.Helper()
	box := b.open(b.t, b.dir)
	b.t.Cleanup(func() { box.Close() })
	b.box = box
}

func (b *bench) accept(text string) string {
	b.t.Helper()
	return b.offer(inbox.Item{Kind: message.Text, Text: text}).Item
}

func (b *bench) offer(it inbox.Item) message.Receipt {
	b.t.Helper()
	r, err := b.box.Accept(b.t.Context(), it)
	if err != nil {
		b.t.Fatalf("accept: %v", err)
	}
	if r.Item == "" {
		b.t.Fatal("a receipt without an item id")
	}

	return r
}

func (b *bench) take(ids ...string) []inbox.Item {
	b.t.Helper()
	items, err := b.box.Take(ids...)
	if err != nil {
		b.t.Fatalf("take %v: %v", ids, err)
	}

	return items
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// holds checks which items are open, in which order.
func (b *bench) holds(want ...string) {
	b.t.Helper()
	got := make([]string, 0, len(want))
	for _, h := range b.box.Open() {
		got = append(got, h.ID)
	}
	if d := cmp.Diff(append([]string{}, want...), got); d != "" {
		b.t.Errorf("open items (-want +got):\n%s", d)
	}
	if n := b.box.Len(); n != len(want) {
		b.t.Errorf("Len is %d, want %d", n, len(want))
	}
}

func order(t *testing.T, b *bench) {
	var ids []string
	var last int64
	for i := range 20 {
		r := b.offer(inbox.Item{Kind: message.Text, Text: fmt.Sprint(i)})
		if r.Seq <= last {
			t.Errorf("seq %d after %d", r.Seq, last)
		}
		last = r.Seq
		ids = append(ids, r.Item)
	}
	b.holds(ids...)
	b.crash()
	b.holds(ids...)
}

func body(t *testing.T, b *bench) {
	at := time.Date(2026, 11, 20, 18, 22, 1, 250_000_000, time.UTC)
	want := inbox.Item{
		At: at, Kind: message.System, ID: "tz4a98xxat96iws9zmbrgj3a", Dedupe: "telegram:1",
		Context: message.Context{MessageID: "77", ReplyTo: "76", Sender: "Ann \"A\" <a@b>"},
		Route:   &message.Address{Connector: "telegram", ChannelID: "5", UserID: "6", ThreadID: "7"},
		Text:    "several\nlines\twith \"quotes\", \\ and \u2028, \x00 and \u00e9\U0001F600 </message>",
		Files:   []message.File{{ID: "f", Name: "n", MimeType: "text/plain", Size: 3, Path: "/p"}},
		Origin:  "agent", Silent: true, Hops: 2, Untrusted: true, Source: "the hook x",
		Token: "t", Decision: "once", By: "Ann", Tag: "@web", SHA256: "00", Scripts: []message.Script{{Path: "/a b", SHA256: "ff"}},
	}
	want.Seq = b.offer(want).Seq
	check := func(got inbox.Item, err error) {
		t.Helper()
		b.must(err)
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("body (-want +got):\n%s", d)
		}
	}
	check(b.box.Read(want.ID))
	b.crash()
	check(b.box.Read(want.ID))
	check(b.take(want.ID)[0], nil)
	h := b.box.Open()[0]
	if h.ID != want.ID || h.Seq != want.Seq || !h.At.Equal(at) || h.Kind != want.Kind || !h.Silent || h.Sender == "" ||
		h.Bytes < len(want.Text) {
		t.Errorf("head is %+v", h)
	}
}

func reopen(t *testing.T, b *bench) {
	one, two, three := b.accept("one"), b.accept("two"), b.accept("three")
	b.take(one)
	b.crash()
	b.holds(one, two, three)
	if b.box.Open()[0].Taken {
		t.Error("an item is still taken after a crash")
	}
	b.take(one, two)
	b.must(b.box.Done(one, two))
	four := b.accept("four")
	b.crash()
	b.holds(three, four)
	b.must(b.box.Close())
	b.crash()
	b.holds(three, four)
}

func done(t *testing.T, b *bench) {
	one, two := b.accept("one"), b.accept("two")
	b.take(one)
	b.must(b.box.Done(one))
	b.must(b.box.Done(one))
	b.must(b.box.Done("nosuchitemnosuchitem1234"))
	b.holds(two)
	b.must(b.box.Done(two))
	b.holds()
	b.accept("three")
	b.crash()
	if got := b.take(b.box.Open()[0].ID)[0].Text; got != "three" {
		t.Errorf("after done and a crash %q is open", got)
	}
	if b.box.Len() != 1 {
		t.Errorf("what was done is open again: %d items", b.box.Len())
	}
}

func dedupe(t *testing.T, b *bench) {
	it := inbox.Item{Kind: message.Text, Text: "one", Dedupe: "telegram:1"}
	first := b.offer(it)
	second := b.offer(it)
	if first.Duplicate || !second.Duplicate || second.Item != first.Item {
		t.Errorf("receipts %+v and %+v", first, second)
	}
	other := b.offer(inbox.Item{Kind: message.Text, Text: "one", Dedupe: "telegram:2"})
	if other.Duplicate {
		t.Error("another key counts as a duplicate")
	}
	b.holds(first.Item, other.Item)
	// Without a key the same text is another message.
	if one, other := b.accept("x"), b.accept("x"); one == other {
		t.Error("two items have one id")
	}
	b.must(b.box.Done(first.Item))
	if r := b.offer(it); !r.Duplicate || r.Item != first.Item {
		t.Errorf("after done: %+v", r)
	}
}

func dedupeInFlight(t *testing.T, b *bench) {
	const callers = 16
	for round := range 10 {
		var wg sync.WaitGroup
		receipts := make([]message.Receipt, callers)
		for i := range callers {
			wg.Go(func() {
				r, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x", Dedupe: fmt.Sprint("k:", round)})
				if err != nil {
					t.Error(err)
				}
				receipts[i] = r
			})
		}
		wg.Wait()
		firsts := 0
		for _, r := range receipts {
			if !r.Duplicate {
				firsts++
			}
			if r.Item != receipts[0].Item {
				t.Errorf("two items of one key: %s and %s", r.Item, receipts[0].Item)
			}
		}
		if firsts != 1 {
			t.Errorf("%d of %d callers are told that theirs is the first", firsts, callers)
		}
	}
	if b.box.Len() != 10 {
		t.Errorf("%d items of 10 keys", b.box.Len())
	}
}

func dedupeOverReopen(t *testing.T, b *bench) {
	it := inbox.Item{Kind: message.Text, Text: "one", Dedupe: "telegram:1"}
	first := b.offer(it)
	b.crash()
	if r := b.offer(it); !r.Duplicate || r.Item != first.Item {
		t.Errorf("after a crash: %+v, the first was %+v", r, first)
	}
	b.must(b.box.Done(first.Item))
	b.accept("two")
	b.crash()
	if r := b.offer(it); !r.Duplicate || r.Item != first.Item {
		t.Errorf("after done and a crash: %+v, the first was %+v", r, first)
	}
}

func front(t *testing.T, b *bench) {
	one, two, three := b.accept("one"), b.accept("two"), b.accept("three")
	b.must(b.box.Front(three))
	b.holds(three, one, two)
	b.must(b.box.Front(two))
	b.holds(two, three, one)
	four := b.accept("four")
	b.crash()
	b.holds(two, three, one, four)
	b.take(two)
	if err := b.box.Front(two); !errors.Is(err, inbox.ErrTaken) {
		t.Errorf("moving a taken item: %v, want ErrTaken", err)
	}
}

func drop(t *testing.T, b *bench) {
	one, two, three := b.accept("one"), b.accept("two"), b.accept("three")
	b.take(one)
	if err := b.box.Drop(one); !errors.Is(err, inbox.ErrTaken) {
		t.Errorf("dropping a taken item: %v, want ErrTaken", err)
	}
	b.must(b.box.Drop(two))
	b.holds(one, three)
	if err := b.box.Drop(two); !errors.Is(err, inbox.ErrUnknown) {
		t.Errorf("dropping twice: %v, want ErrUnknown", err)
	}
	four := b.accept("four")
	b.crash()
	b.holds(one, three, four)
}

func taken(t *testing.T, b *bench) {
	one, two := b.accept("one"), b.accept("two")
	items := b.take(one, two)
	if len(items) != 2 || items[0].Text != "one" || items[1].Text != "two" {
		t.Errorf("took %+v", items)
	}
	if h := b.box.Open(); len(h) != 2 || !h[0].Taken || !h[1].Taken {
		t.Errorf("taken items are open and marked; got %+v", h)
	}
	if _, err := b.box.Take(two); !errors.Is(err, inbox.ErrTaken) {
		t.Errorf("taking twice: %v, want ErrTaken", err)
	}
	if _, err := b.box.Read(one); err != nil {
		t.Errorf("reading a taken item: %v", err)
	}
	b.box.Untake(two)
	three := b.accept("three")
	if _, err := b.box.Take(three, one); !errors.Is(err, inbox.ErrTaken) {
		t.Errorf("taking one that is taken: %v, want ErrTaken", err)
	}
	b.take(two, three) // so three was not marked by the attempt that failed
}

func unknown(t *testing.T, b *bench) {
	const id = "nosuchitemnosuchitem1234"
	_, rerr := b.box.Read(id)
	_, terr := b.box.Take(id)
	for name, err := range map[string]error{"read": rerr, "take": terr, "drop": b.box.Drop(id), "front": b.box.Front(id)} {
		if !errors.Is(err, inbox.ErrUnknown) {
			t.Errorf("%s: %v, want ErrUnknown", name, err)
		}
	}
	b.box.Untake(id)
	b.must(b.box.Wait(t.Context(), id))
}

func tooLarge(t *testing.T, b *bench) {
	if _, err := b.box.Accept(t.Context(),
		inbox.Item{Kind: message.Text, Text: strings.Repeat("x", inbox.MaxItemBytes+1)}); !errors.Is(err, inbox.ErrTooLarge) {
		t.Errorf("one byte too many: %v, want ErrTooLarge", err)
	}
	b.holds()
	text := strings.Repeat("y", inbox.MaxItemBytes)
	id := b.accept(text)
	b.crash()
	if got := b.take(id)[0].Text; got != text {
		t.Errorf("the largest item came back with %d bytes", len(got))
	}
}

func fullOfItems(t *testing.T, b *bench) {
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range inbox.MaxItems / 50 {
				if _, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	refused := func() {
		t.Helper()
		if _, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x"}); !errors.Is(err, inbox.ErrFull) {
			t.Errorf("item %d: %v, want ErrFull", inbox.MaxItems+1, err)
		}
	}
	refused()
	b.crash()
	refused()
	b.must(b.box.Done(b.box.Open()[0].ID))
	b.accept("there is room again")
	if b.box.Len() != inbox.MaxItems {
		t.Errorf("%d items", b.box.Len())
	}
}

func fullOfBytes(t *testing.T, b *bench) {
	text := strings.Repeat("x", inbox.MaxItemBytes)
	n := 0
	for ; n < 2*inbox.MaxBytes/inbox.MaxItemBytes; n++ {
		_, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: text})
		if errors.Is(err, inbox.ErrFull) {
			break
		}
		b.must(err)
	}
	if most := inbox.MaxBytes / inbox.MaxItemBytes; n < most-1 || n > most {
		t.Errorf("%d items of 1 MiB were accepted", n)
	}
	b.must(b.box.Drop(b.box.Open()[0].ID))
	b.accept(text)
}

func wait(t *testing.T, b *bench) {
	one, two, three := b.accept("one"), b.accept("two"), b.accept("three")
	results := make(chan error, 3)
	for _, id := range []string{one, one, two} {
		go func() { results <- b.box.Wait(t.Context(), id) }()
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.box.Wait(ctx, three); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait that was cancelled: %v", err)
	}
	b.must(b.box.Done(one))
	b.must(b.box.Drop(two))
	for range 3 {
		b.must(<-results)
	}
	b.must(b.box.Wait(t.Context(), one))
}

func arrived(t *testing.T, b *bench) {
	select {
	case <-b.box.Arrived():
		t.Error("something arrived in an empty mailbox")
	default:
	}
	b.accept("one")
	b.accept("two")
	select {
	case <-b.box.Arrived():
	default:
		t.Error("no hint after an accept")
	}
	b.crash()
	select {
	case <-b.box.Arrived():
	default:
		t.Error("no hint after opening a mailbox that is not empty")
	}
}

func closing(t *testing.T, b *bench) {
	one := b.accept("one")
	waited := make(chan error, 1)
	go func() { waited <- b.box.Wait(t.Context(), one) }()
	b.must(b.box.Close())
	b.must(b.box.Close())
	if err := <-waited; !errors.Is(err, inbox.ErrClosed) {
		t.Errorf("wait: %v, want ErrClosed", err)
	}
	_, aerr := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: "x"})
	_, terr := b.box.Take(one)
	for name, err := range map[string]error{"accept": aerr, "take": terr, "done": b.box.Done(one), "drop": b.box.Drop(one)} {
		if !errors.Is(err, inbox.ErrClosed) {
			t.Errorf("%s on a closed mailbox: %v, want ErrClosed", name, err)
		}
	}
	b.crash()
	b.holds(one)
}

// concurrent has many senders and the agent at work at the same time: nothing is
// lost, nothing comes twice, and each sender's messages keep their order.
func concurrent(t *testing.T, b *bench) {
	const senders, each = 8, 25
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				text := fmt.Sprintf("%d/%d", s, i)
				if _, err := b.box.Accept(t.Context(), inbox.Item{Kind: message.Text, Text: text, Dedupe: "k:" + text}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	next := make([]int, senders)
	for got := 0; got < senders*each; {
		<-b.box.Arrived()
		for _, h := range b.box.Open() {
			var s, i int
			fmt.Sscanf(b.take(h.ID)[0].Text, "%d/%d", &s, &i)
			if next[s] != i {
				t.Errorf("sender %d: message %d came when %d was due", s, i, next[s])
			}
			next[s] = i + 1
			b.must(b.box.Done(h.ID))
			got++
		}
	}
	wg.Wait()
	b.holds()
	carrier := b.accept("carries the done lines")
	b.crash()
	b.holds(carrier)
}
