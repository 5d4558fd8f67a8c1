package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// texts are what was delivered, in its order.
func (w *world) texts() (all []string) {
	for _, in := range w.taken {
		all = append(all, in.Text)
	}
	return all
}

// A queue takes messages in their order, tries the one that is refused until it is durable, also
// after it was stopped, and says of each when it is done with.
func TestAQueueKeepsItsOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		var done []string
		q := NewQueue(w.desk(Options{}, talker{w}), time.Second, func(p Post) { done = append(done, p.Text) })
		run := func(during time.Duration) {
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); q.Run(ctx, w.deliver) }()
			time.Sleep(during)
			cancel()
			<-ended
		}
		w.refuse = disk.ErrFull
		for _, text := range []string{"one", "two", "three"} {
			if !q.Put(t.Context(), Post{Key: text, From: ada, Text: text}) {
				t.Fatal("there is no room")
			}
		}
		run(time.Minute)
		if len(w.taken)+len(done) != 0 {
			t.Errorf("refused, and delivered are %v, done %v", w.texts(), done)
		}
		w.refuse = nil
		run(time.Minute)
		if want := []string{"one", "two", "three"}; !slices.Equal(w.texts(), want) || !slices.Equal(done, want) {
			t.Errorf("delivered are %v, done %v", w.texts(), done)
		}
		run(time.Minute)
		if len(w.taken) != 3 {
			t.Errorf("delivered once more: %v", w.texts())
		}
		ctx, cancel := context.WithCancel(t.Context())
		for n := range queued {
			if !q.Put(ctx, Post{Key: fmt.Sprint(n)}) {
				t.Fatalf("there is no room for %d", n)
			}
		}
		time.AfterFunc(time.Second, cancel)
		if q.Put(ctx, Post{Key: "over"}) {
			t.Error("more was taken than there is room for")
		}
	})
}

// What a sender writes after a message that waits is behind it; others are not.
func TestWhoWaitsKeepsTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		d := w.desk(Options{Settings: Settings{Allow: []string{"eve", "bob"}}}, talker{w})
		take := func(p Post) {
			t.Helper()
			if err := d.Take(t.Context(), w.deliver, p); err != nil {
				t.Fatal(err)
			}
		}
		w.refuse = inbox.ErrFull
		take(from("eve", "1", "one"))
		take(from("eve", "1", "one")) // the platform offers it again
		w.refuse = nil
		take(from("bob", "2", "of another"))
		take(from("eve", "3", "two"))
		elsewhere := from("eve", "4", "in another chat")
		elsewhere.From.ChannelID = "c-other"
		take(elsewhere)
		if got := w.texts(); !slices.Equal(got, []string{"of another", "in another chat"}) {
			t.Errorf("delivered at once are %v", got)
		}
		if heads := headsOf(d); len(heads) != 1 || heads[0].Text != "one" {
			t.Errorf("tried next is %+v", heads)
		}
		ctx, cancel := context.WithCancel(t.Context())
		go d.Run(ctx, w.deliver, time.Second)
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		if got := w.texts(); !slices.Equal(got[2:], []string{"one", "two"}) {
			t.Errorf("delivered later are %v", got[2:])
		}
		if log := w.log.String(); strings.Contains(log, "level=ERROR") {
			t.Errorf("log:\n%s", log)
		}
	})
}

// All senders together have no more room than is good for the machine.
func TestWaitingOfAllIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		most int
	}{"messages": {"x", maxWaitingAll}, "bytes": {strings.Repeat("x", maxWaitingBytes/2), 2 * maxWaitingBytesAll / maxWaitingBytes}} {
		w := newWorld()
		w.refuse = inbox.ErrFull
		d := w.desk(Options{Settings: Settings{Allow: []string{"eve", "bob"}}}, talker{w})
		d.waiting.load()
		for n := range tt.most - 1 {
			user := fmt.Sprint("user", n)
			d.waiting.all = append(d.waiting.all, message.Incoming{From: message.Address{ChannelID: user, UserID: user}, Dedupe: user,
				Text: tt.text})
		}
		for i, user := range []string{"eve", "bob"} {
			if err := d.Take(t.Context(), w.deliver, from(user, user, tt.text)); err != nil {
				t.Fatal(err)
			}
			if n, said := len(d.waiting.all), len(w.heard()); n != tt.most || said != i {
				t.Errorf("%s: %d messages wait, want %d; %d were told that they do not", name, n, tt.most, said)
			}
		}
	}
}

// A message goes on without a file that will not come, and says so; one that may come is asked for
// again, so many times.
func TestFilesThatDoNotCome(t *testing.T) {
	disconnected := errors.New("disconnected")
	opened := 0
	open := func(r io.Reader, err error) func(context.Context) (io.ReadCloser, error) {
		return func(context.Context) (io.ReadCloser, error) {
			opened++
			if err != nil {
				return nil, err
			}
			return io.NopCloser(r), nil
		}
	}
	for name, tt := range map[string]struct {
		file    File
		nowhere bool // no files are kept here
		tries   int  // until the message is taken
		opened  int
		kept    bool
	}{
		"whole":             {File{Name: "a", Open: open(strings.NewReader("x"), nil)}, false, 1, 1, true},
		"as large as it is": {File{Name: "a", Size: maxFile, Open: open(bytes.NewReader(make([]byte, maxFile)), nil)}, false, 1, 1, true},
		"said to be larger": {File{Name: "a", Size: maxFile + 1, Open: open(strings.NewReader("x"), nil)}, false, 1, 0, false},
		"larger":            {File{Name: "a", Open: open(io.LimitReader(zeros{}, maxFile+5), nil)}, false, 1, 1, false},
		"refused":           {File{Name: "a", Open: open(nil, TooLarge)}, false, 1, 1, false},
		"disconnected":      {File{Name: "a", Open: open(nil, disconnected)}, false, fetchTries, fetchTries, false},
		"kept nowhere":      {File{Name: "a", Open: open(strings.NewReader("x"), nil)}, true, 1, 0, false},
	} {
		w := newWorld()
		d := w.desk(Options{}, talker{w})
		d.files.store = store{w, maxFile}
		if tt.nowhere {
			d = New(Options{Settings: Settings{ID: "chat", Allow: []string{"ada"}}}, Host{Directory: w}, talker{w},
				slog.New(slog.DiscardHandler))
		}
		opened = 0
		tries := 0
		for err := errors.New("not yet"); err != nil && tries < 10; tries++ {
			p := post("see")
			p.Files = []File{tt.file}
			if err = d.Take(t.Context(), w.deliver, p); err != nil && !errors.Is(err, disconnected) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if tries != tt.tries || opened != tt.opened || len(w.taken) != 1 {
			t.Fatalf("%s: taken after %d tries, opened %d times, want %d, %d", name, tries, opened, tt.tries, tt.opened)
		}
		in := w.taken[0]
		if kept := len(in.Files) == 1; kept != tt.kept || strings.Contains(in.Text, "a is missing") == kept ||
			!strings.HasPrefix(in.Text, "see") {
			t.Errorf("%s: delivered %+v", name, in)
		}
		if len(d.files.failed) != 0 {
			t.Errorf("%s: what failed is remembered for good: %v", name, d.files.failed)
		}
	}
}

// A file that does not come holds its message up for so many tries and no more, wherever it
// stands among others.
func TestAFileThatDoesNotComeHoldsUpNoMessage(t *testing.T) {
	disconnected := errors.New("disconnected")
	for files, want := range map[string]struct{ tries, kept int }{ // g comes, b does not, l is too large
		"b": {fetchTries, 0}, "gb": {fetchTries, 1}, "bg": {fetchTries, 1}, "lb": {fetchTries, 0}, "gbg": {fetchTries, 2},
		"bb": {2*fetchTries - 1, 0}, "bgb": {2*fetchTries - 1, 1}, "gg": {1, 2},
	} {
		w := newWorld()
		d := w.desk(Options{}, talker{w})
		asked := make([]int, len(files))
		p := post("see")
		for i, kind := range files {
			f := File{Name: fmt.Sprint("f", i), Open: func(context.Context) (io.ReadCloser, error) {
				if asked[i]++; kind == 'b' {
					return nil, disconnected
				}
				return io.NopCloser(strings.NewReader("x")), nil
			}}
			if kind == 'l' {
				f.Size = maxFile + 1
			}
			p.Files = append(p.Files, f)
		}
		tries := 1
		for d.Take(t.Context(), w.deliver, p) != nil && tries < 50 {
			tries++
		}
		if tries != want.tries || len(w.taken) != 1 || len(w.taken[0].Files) != want.kept {
			t.Fatalf("%s: after %d tries %+v was delivered, want %d tries and %d files", files, tries, w.taken, want.tries, want.kept)
		}
		for i, kind := range files {
			if missing := strings.Contains(w.taken[0].Text, fmt.Sprintf("[the file f%d is missing: ", i)); missing != (kind != 'g') ||
				kind == 'b' && asked[i] != fetchTries {
				t.Errorf("%s: file %d was asked for %d times; delivered %q", files, i, asked[i], w.taken[0].Text)
			}
		}
		if len(d.files.failed) != 0 {
			t.Errorf("%s: what failed is remembered for good: %v", files, d.files.failed)
		}
	}
}

// store keeps files up to a size.
type store struct {
	*world
	most int64
}

func (s store) Put(name string, r io.Reader) (message.File, error) {
	f, err := s.world.Put(name, r)
	if err == nil && f.Size > s.most {
		err = errors.New("over the bound of the store")
	}
	return f, err
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// What a message is follows from how it was sent: a note is not answered, a quotation stands before
// its text, a place has a name, and a group's talk is none of its business.
func TestWhatBecomesOfAPost(t *testing.T) {
	for name, tt := range map[string]struct {
		post Post
		kind message.Kind
		text string
		none bool
	}{
		"a message":        {Post{Text: "hi"}, "", "hi", false},
		"a note":           {Post{Text: "hi", Note: true, Quote: "before"}, message.System, "hi", false},
		"a quotation":      {Post{Text: "hi", Quote: " a\nb "}, "", "> a\n> b\n\nhi", false},
		"nothing":          {Post{Text: " "}, "", "", true},
		"in a group":       {Post{Text: "hi", Group: true}, "", "", true},
		"to us in a group": {Post{Text: "hi", Group: true, Addressed: true}, "", "hi", false},
		"a mark":           {Post{Text: "/mark here"}, message.Mark, "here", false},
		"a mark of 2b":     {Post{Text: "/mark 2b"}, message.Mark, "2b", false},
		"no mark":          {Post{Text: "/mark"}, "", "", true},
		"a mark of 12":     {Post{Text: "/mark 12"}, "", "", true},
		"going back":       {Post{Text: "/rewind"}, message.Rewind, "", false},
		"back to a mark":   {Post{Text: "/rewind here"}, message.Rewind, "here", false},
		"back to 12":       {Post{Text: "/rewind 12"}, message.Rewind, "12", false},
		"a summary":        {Post{Text: "/compact"}, message.Compact, "", false},
		"a reset":          {Post{Text: "/reset"}, message.Reset, "", false},
	} {
		w := newWorld()
		d := w.desk(Options{}, talker{w})
		tt.post.Key, tt.post.From = "k", ada
		if err := d.Take(t.Context(), w.deliver, tt.post); err != nil || (len(w.taken) == 0) != tt.none {
			t.Errorf("%s: %v, delivered %+v", name, err, w.taken)
			continue
		}
		if tt.none {
			continue
		}
		in := w.taken[0]
		if note := tt.post.Note; in.Kind != tt.kind || in.Text != tt.text || in.Dedupe != "chat:k" || in.Silent != note ||
			(in.Origin != "") != note {
			t.Errorf("%s: delivered %+v", name, in)
		}
		if w.stopped != (tt.kind == message.Reset) {
			t.Errorf("%s: what is under way is stopped: %v", name, w.stopped)
		}
	}
	if long := quoted(strings.Repeat("ü", maxQuote+1)); long != "> "+strings.Repeat("ü", maxQuote)+"…" ||
		quoted(strings.Repeat("ü", maxQuote)) != "> "+strings.Repeat("ü", maxQuote) {
		t.Errorf("quoted is %q", long)
	}
}
