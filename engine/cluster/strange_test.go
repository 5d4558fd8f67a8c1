package cluster

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/nats-io/nats.go"

	"daycare/engine/address"
	"daycare/engine/cluster/clustertest"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/event"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// contents is a store that has objects alone.
type contents struct {
	store
	all map[string][]byte
}

func (c contents) get(_ context.Context, sha string) ([]byte, error) {
	data, ok := c.all[sha]
	if !ok {
		return nil, errors.New("no such object")
	}
	return data, nil
}

// A log that names what is not there, or is not what it was, is not read as far as it goes: the error names the message.
func TestDamagedLogs(t *testing.T) {
	t.Parallel()
	put := content(opPut, "state.json", 0, []byte("{}"))
	objects := contents{all: map[string][]byte{"torn": []byte("{"), "again": encode([]segment{{Op: opSnapshot}}),
		"outside": encode([]segment{content(opPut, "../x", 0, []byte("x"))}), "good": encode([]segment{put}), "short": []byte("12")}}
	snapshot := func(sha string) segment { return segment{Op: opSnapshot, Object: true, SHA: sha} }
	for name, test := range map[string]struct {
		last segment
		want string
	}{
		"a snapshot that is gone":     {snapshot("missing"), "message 2: no such object"},
		"a snapshot that is torn":     {snapshot("torn"), "message 2: damaged message"},
		"a snapshot in a snapshot":    {snapshot("again"), "message 2: damaged message: a snapshot in a snapshot"},
		"a name out of the folder":    {snapshot("outside"), `message 2: damaged message: it has a file "../x"`},
		"an operation without a name": {segment{Op: "rename"}, "message 2: written by a newer version"},
	} {
		_, err := fold(t.Context(), objects, messages(put, test.last), covered)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}

	files, err := fold(t.Context(), objects, messages(content(opPut, "inbox.jsonl", 0, []byte("x")), snapshot("good")), covered)
	if err != nil || len(files) != 1 || string(files["state.json"].tail) != "{}" {
		t.Errorf("of a snapshot there are %v, %v", files, err)
	}
	files, err = fold(t.Context(), objects, messages(put, content(opPut, "inbox.jsonl", 0, []byte("x")),
		segment{Op: opRemove, File: "state.json"}), covered)
	if err != nil || len(files) != 1 || string(files["inbox.jsonl"].tail) != "x" {
		t.Errorf("after a removal there are %v, %v", files, err)
	}
	for sha, size := range map[string]int64{"short": 3, "missing": 1} {
		f := file{object: sha, base: size}
		if data, err := f.bytes(t.Context(), objects); err == nil {
			t.Errorf("object %s of %d bytes is %q", sha, size, data)
		}
		if whole(t.Context(), objects, map[string]file{"a": {tail: []byte("x")}, "b": f}) {
			t.Errorf("object %s of %d bytes is whole", sha, size)
		}
	}
	f := file{object: "short", base: 2, tail: []byte("3")}
	data, err := f.bytes(t.Context(), objects)
	if err != nil || string(data) != "123" || !whole(t.Context(), objects, map[string]file{"": f}) {
		t.Errorf("an object and what follows are %q, %v", data, err)
	}
}

// growing is a store whose log grows while it is read, and has a hole until it has grown enough.
type growing struct {
	store
	log   []logged
	until int
	reads int
}

func (g *growing) last(context.Context, string) (logged, error) {
	return logged{seq: uint64(10 * min(g.reads+1, g.until))}, nil
}

func (g *growing) read(context.Context, string) ([]logged, error) {
	g.reads++
	log := slices.Clone(g.log)
	log[len(log)-1].seq = uint64(10 * min(g.reads, g.until))
	if g.reads < g.until {
		log = slices.Delete(log, 0, 1)
	}
	return log, nil
}

// A log with a hole is read again as long as somebody writes to it, and no longer than it takes to be sure.
func TestAHoleInALogThatGrows(t *testing.T) {
	t.Parallel()
	const holeFor = 2 * time.Second
	g := &growing{log: messages(content(opPut, "state.json", 0, []byte("1")), content(opPut, "inbox.jsonl", 0, []byte("x"))), until: 150}
	w := &workingCopy{covers: covered, log: slog.New(slog.DiscardHandler)}
	files, err := w.newest(t.Context(), g, "one", holeFor) // 150 looks take 3 seconds
	if err != nil || len(files) != 2 {
		t.Errorf("after %d reads there are %v, %v", g.reads, files, err)
	}
	quiet := &quiet{&growing{log: g.log, until: 1 << 30}}
	_, err = w.newest(t.Context(), quiet, "one", 50*time.Millisecond)
	if !errors.Is(err, errHole) || !strings.Contains(err.Error(), "one") {
		t.Errorf("of a log that nobody writes to: %v, want a hole", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := w.newest(ctx, quiet, "one", time.Hour); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after its time: %v", err)
	}
}

// quiet is a growing log that has stopped, with its hole.
type quiet struct{ *growing }

func (q *quiet) last(context.Context, string) (logged, error) { return logged{seq: 20}, nil }

// answering has a machine that is not one of daycare's answer a request with these pieces, and then no more. It returns its name.
func answering(t *testing.T, a *host, pieces ...*nats.Msg) string {
	t.Helper()
	name, inbox := cuid.New(), a.conn.NewInbox()
	_, err := a.conn.Subscribe(inbox, func(m *nats.Msg) {
		if len(pieces) > 0 {
			if err := m.RespondMsg(pieces[0]); err != nil {
				t.Error(err)
			}
			pieces = pieces[1:]
		}
	})
	if err == nil {
		_, err = a.conn.Subscribe(askSubject+name, func(m *nats.Msg) { _ = m.Respond([]byte(inbox)) })
	}
	if err != nil {
		t.Fatal(err)
	}

	return name
}

func piece(text string, headers ...string) *nats.Msg {
	m := &nats.Msg{Data: []byte(text), Header: nats.Header{}}
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	return m
}

func newRequest(ctx context.Context, t *testing.T, body io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://x/y", body)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// An answer of another machine that is torn, ends early or ends with an error does not pass as whole.
func TestStrangeAnswers(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	begun := piece("", pieceHead, `{"status":200}`)
	for name, test := range map[string]struct {
		pieces    []*nats.Msg
		ask, read string // errors
	}{
		"a torn head":           {[]*nats.Msg{piece("", pieceHead, "{")}, "unexpected end", ""},
		"the end before a head": {[]*nats.Msg{piece("", pieceEnd, "1")}, "EOF", ""},
		"text before a head":    {[]*nats.Msg{piece("text")}, "unexpected EOF", ""},
		"an error at once":      {[]*nats.Msg{piece("", pieceError, "it is full")}, "it is full", ""},
		"an error in it":        {[]*nats.Msg{begun, piece("some"), piece("", pieceError, "it broke")}, "", "it broke"},
		"whole":                 {[]*nats.Msg{begun, piece(""), piece("so"), piece("me", pieceEnd, "1")}, "", ""},
	} {
		resp, err := a.Ask(answering(t, a, test.pieces...), []byte(`"me"`), newRequest(t.Context(), t, nil))
		if test.ask != "" {
			if err == nil || !strings.Contains(err.Error(), test.ask) {
				t.Errorf("%s: %v, want %q", name, err, test.ask)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		data, err := io.ReadAll(resp.Body)
		if string(data) != "some" || (err == nil) != (test.read == "") || err != nil && !strings.Contains(err.Error(), test.read) {
			t.Errorf("%s: %q, %v, want %q", name, data, err, test.read)
		}
		if err := resp.Body.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	if _, err := a.Ask(answering(t, a, begun), []byte("{"), newRequest(ctx, t, nil)); err == nil {
		t.Error("a caller that is no JSON is sent")
	}
	resp, err := a.Ask(answering(t, a, begun), []byte(`"me"`), newRequest(ctx, t, nil))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(50*time.Millisecond, cancel)
	if n, err := resp.Body.Read(make([]byte, 10)); n > 0 || !errors.Is(err, context.Canceled) || errors.Is(err, disk.ErrAway) {
		t.Errorf("a canceled one reads %d bytes, %v", n, err)
	}
	for want, body := range map[string]io.Reader{"torn": iotest.ErrReader(errors.New("torn")), "67108864 bytes": endless{}} {
		if _, err := a.Ask(a.Boot(), []byte(`"me"`), newRequest(t.Context(), t, body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a body that is not sent: %v, want %q", err, want)
		}
	}
	a.Close()
	for _, size := range []int{1, pieceMost + 1} {
		if _, err := a.Ask("b", []byte(`"me"`), newRequest(t.Context(), t, strings.NewReader(strings.Repeat("x", size)))); err == nil {
			t.Errorf("%d bytes are sent without a connection", size)
		}
	}
}

// endless is a body that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// The caller gets the error of the machine that it asks; what is no message harms nothing, and is in the log.
func TestStrangeRequests(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	var said saying
	b := joinWith(t, s, t.TempDir(), testLease, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	go func() {
		_ = b.Answer(t.Context(), func(_ []byte, r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/refused" {
				return nil, errors.New("not today")
			}
			body := io.MultiReader(strings.NewReader("some"), iotest.ErrReader(errors.New("it broke")))
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(body)}, nil
		})
	}()
	until(t, "it answers", func() bool {
		resp, err := a.Ask(b.Boot(), []byte(`"me"`), newRequest(t.Context(), t, nil))
		if errors.As(err, new(*message.Elsewhere)) {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(resp.Body); string(data) != "some" || err == nil || err.Error() != "it broke" {
			t.Errorf("the answer is %q, %v", data, err)
		}
		return true
	})
	r := newRequest(t.Context(), t, nil)
	r.URL.Path = "/refused"
	if _, err := a.Ask(b.Boot(), []byte(`"me"`), r); err == nil || err.Error() != "not today" {
		t.Errorf("refused: %v", err)
	}

	for _, strange := range []struct{ subject, text string }{
		{askSubject + b.Boot(), "{"}, {askSubject + b.Boot(), `{"method":"B D"}`}, {askSubject + b.Boot(), `{"method":"GET","uri":"/"}`},
		{offerSubject + b.Boot(), `{"agent":"one"}`}, {hadSubject, "one"}, {hadSubject, "../x"},
	} {
		if err := a.conn.Publish(strange.subject, []byte(strange.text)); err != nil { // nobody waits for an answer
			t.Fatal(err)
		}
	}
	for _, strange := range []struct{ subject, text string }{
		{askSubject + b.Boot(), "{"}, {askSubject + b.Boot(), `{"method":"B D"}`}, {hadSubject, "../x"}} {
		if m, err := a.conn.Request(strange.subject, []byte(strange.text), 200*time.Millisecond); err == nil {
			t.Errorf("%q is answered with %q", strange.text, m.Data)
		}
	}
	for text, want := range map[string]string{"{": "unexpected end", `{"agent":"../x"}`: `\"../x\" is not the id of an agent`} {
		m, err := a.conn.Request(offerSubject+b.Boot(), []byte(text), 30*time.Second)
		if err != nil || !strings.Contains(string(m.Data), want) {
			t.Errorf("offered for %q is %v, %v, want %q", text, m, err, want)
		}
	}
	for want, n := range map[string]int{"request of another machine not answered": 3, "was not offered": 1, "could not report": 1} {
		until(t, want, func() bool { return strings.Count(said.String(), want) >= n })
	}
}

// What cannot be a card is left alone, and said; those who listen hear of all others, also of those that were there before.
func TestStrangeCards(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	good, bad := address.Meta{ID: cuid.New(), Handle: "0/"}, cuid.New()
	if err := a.Announce(good, false); err != nil {
		t.Fatal(err)
	}
	for key, text := range map[string]string{cardKey + bad: "{", cardKey + "x": `{"handle":"1/"}`, "other.x": "{}"} {
		if _, err := a.cards.keep.handles.agents.Put(t.Context(), key, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	var said saying
	b := joinWith(t, s, t.TempDir(), testLease, func(c *Config) { c.Log = slog.New(slog.NewTextHandler(&said, nil)) })
	met := make(chan Agent, 10)
	b.cards.listen(func(one Agent) { met <- one }, func(string) {})
	if one := <-met; one.Handle != "0/" {
		t.Errorf("met is %+v", one)
	}
	if err := a.Announce(good, true); err != nil {
		t.Fatal(err)
	}
	until(t, "its end is heard of", func() bool { return (<-met).Ended })
	if all := b.Agents(); len(all) != 1 || all[good.ID].Handle != "0/" {
		t.Errorf("known are %v", all)
	}
	b.Close()
	if text := said.String(); !strings.Contains(text, "cannot be read") || !strings.Contains(text, bad) {
		t.Errorf("said is %q", text)
	}

	here := a.cards.away
	a.cards.away = func() bool { return true }
	_, claimed := a.Claim("x", good.ID)
	_, numbered := a.Number("7/", good.ID)
	for what, err := range map[string]error{"claimed": claimed, "numbered": numbered, "announced": a.Announce(good, false),
		"kept": a.Keep("file.x.content", nil)} {
		if !errors.Is(err, disk.ErrAway) {
			t.Errorf("without servers %s: %v", what, err)
		}
	}
	if err := a.Announce(good, true); err != nil {
		t.Errorf("what all know is announced without servers: %v", err)
	}
	a.cards.away = here
}

// A file that is removed is not there for the next owner, and begins anew; files of two agents, and of one that is not owned, are
// refused.
func TestFilesOfAnOwner(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a, b := newHost(t, s), newHost(t, s)
	for _, agent := range []string{"one", "two"} {
		a.make(agent)
		a.own(agent)
	}
	path, other := a.path("one", "history.jsonl"), a.path("two", "state.json")
	for _, step := range []error{os.WriteFile(path, []byte("1\n"), 0o600), a.Append(path, 0, []byte("1\n")), os.Remove(path),
		a.Remove(path), os.WriteFile(path, []byte("2\n"), 0o600), a.Append(path, 0, []byte("2\n")),
		os.WriteFile(a.path("one", "state.json"), []byte("{}"), 0o600),
		a.Put(disk.Content{Path: a.path("one", "state.json"), Data: []byte("{}")}), os.Remove(a.path("one", "state.json")),
		a.Remove(a.path("one", "state.json"))} {
		if step != nil {
			t.Fatal(step)
		}
	}
	if h, err := (memory{a.Node}).had("one"); err != nil || h.N == 0 || h.Boot != a.Boot() {
		t.Errorf("of an agent that is awake here it had %+v, %v", h, err)
	}
	err := a.Put(disk.Content{Path: a.path("one", "state.json"), Data: []byte("{}")}, disk.Content{Path: other, Data: []byte("{}")})
	if err == nil || !strings.Contains(err.Error(), other) {
		t.Errorf("files of two agents: %v", err)
	}
	a.Release("one", false)
	for name, err := range map[string]error{"removed": a.Remove(path), "appended": a.Append(path, 2, []byte("3\n")),
		"put": a.Put(disk.Content{Path: path}), "retired": a.Retire("one")} {
		if !errors.Is(err, disk.ErrFenced) {
			t.Errorf("%s after it was given up: %v", name, err)
		}
	}
	b.own("one")
	if got := b.lines("one", "history.jsonl"); !slices.Equal(got, []string{"2"}) || disk.Exists(b.path("one", "state.json")) {
		t.Errorf("the next owner has %q", got)
	}
}

// A machine that stops does not wait long for servers that do not answer: those who wait for them get an error.
func TestPartWithoutServers(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	a.make("one")
	a.own("one")
	l := a.open("one", "history.jsonl")
	s.Shutdown()
	waiting := make(chan error, 2)
	go func() { waiting <- write(l, "x") }()
	large := disk.Content{Path: a.path("one", "state.json"), Data: bytes.Repeat([]byte("x"), inlineMost+1)}
	go func() { waiting <- a.Put(large) }()
	a.Part()
	for range 2 {
		select {
		case err := <-waiting:
			if !errors.Is(err, disk.ErrAway) {
				t.Errorf("ended with %v", err)
			}
		case <-time.After(20 * time.Second):
			t.Fatal("it waits as long as for servers that answer")
		}
	}
}

// A body that is offered is read piece by piece by who asks for a place in it, and nothing else is answered. One that ends too early
// is an error.
func TestOfferedBodies(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	body := bytes.Repeat([]byte("0123456789"), pieceMost/10+1)
	offered, err := a.requests.offer(body)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{"-1", "x", "", strconv.Itoa(len(body) + 1)} {
		if m, err := a.conn.Request(offered.Subject, []byte(at), 100*time.Millisecond); err == nil {
			t.Errorf("at %q there are %d bytes", at, len(m.Data))
		}
	}
	whole := func(size int) ([]byte, error) {
		return io.ReadAll(&fetched{ctx: t.Context(), conn: a.conn, from: offered.Subject, size: size})
	}
	if data, err := whole(len(body)); err != nil || !bytes.Equal(data, body) {
		t.Errorf("it has %d bytes, %v", len(data), err)
	}
	if data, err := whole(len(body) + 1); !errors.Is(err, io.ErrUnexpectedEOF) || len(data) != len(body) {
		t.Errorf("of one byte more there are %d bytes, %v", len(data), err)
	}
	name := answering(t, a, piece("", pieceHead, `{"status":200}`))
	resp, err := a.Ask(name, []byte(`"me"`), newRequest(t.Context(), t, bytes.NewReader(body)))
	if err != nil {
		t.Fatal(err)
	}
	more := resp.Body.(*incoming).offered
	if m, err := a.conn.Request(more.Subject, []byte("0"), 30*time.Second); err != nil || len(m.Data) != pieceMost {
		t.Errorf("offered is %v, %v", m, err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	if m, err := a.conn.Request(more.Subject, []byte("0"), 100*time.Millisecond); err == nil {
		t.Errorf("after the answer %d bytes are offered", len(m.Data))
	}
	unsubscribed(offered)
	if data, err := whole(len(body)); err == nil {
		t.Errorf("after its end there are %d bytes", len(data))
	}
}

// What another machine says that cannot be read is an error, and none that is away.
func TestStrangeMachines(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	for _, subject := range []string{callSubject, itemSubject} {
		if _, err := a.conn.Subscribe(subject+"strange", func(m *nats.Msg) { _ = m.Respond([]byte("{")) }); err != nil {
			t.Fatal(err)
		}
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	forward := func(ctx context.Context) error {
		_, err := a.Forward(ctx, "strange", "one", inbox.Item{})
		return err
	}
	item := func(ctx context.Context) error {
		_, err := a.Item(ctx, "strange", "one", "x")
		return err
	}
	for name, ask := range map[string]func(context.Context) error{"forward": forward, "item": item} {
		if err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), "answer of machine strange") {
			t.Errorf("%s: %v", name, err)
		}
		if err := ask(canceled); !errors.Is(err, context.Canceled) || errors.As(err, new(*message.Elsewhere)) {
			t.Errorf("%s of who does not wait: %v", name, err)
		}
	}

	go func() {
		_ = a.ServeItems(t.Context(), func(context.Context, string, string) (event.Posted, error) { return event.Posted{}, disk.ErrFenced })
	}()
	for text, want := range map[string]string{"{": "cannot be read", `{"agent":"one"}`: `"moved":true`} {
		until(t, "it answers", func() bool {
			m, err := a.conn.Request(itemSubject+a.Boot(), []byte(text), time.Second)
			if err == nil && !strings.Contains(string(m.Data), want) {
				t.Errorf("the answer to %q is %q", text, m.Data)
			}
			return err == nil
		})
	}
}

// A file in the bucket that cannot be read does not count as removed: what machines have of it stays.
func TestStrangeSharedFiles(t *testing.T) {
	t.Parallel()
	a := newHost(t, clustertest.Serve(t, clustertest.Store(t), 0))
	const name = "memory/x.md"
	a.save(name, "kept")
	until(t, "all is known", func() bool { _, _, whole := a.files.take(); return whole })
	if err := a.files.agree(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	kv := a.files.keep.handles.files
	if _, err := kv.Put(t.Context(), sharedKey(name), []byte("{")); err != nil {
		t.Fatal(err)
	}
	revision, err := kv.Put(t.Context(), sharedKey("memory/last.md"), []byte(`{"sha":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	until(t, "all is heard", func() bool { f, _ := a.files.of("memory/last.md"); return f.revision == revision })
	if err := a.files.agree(t.Context(), name); err != nil || a.has(name) != "kept" {
		t.Errorf("it has %q, %v", a.has(name), err)
	}
	if err := a.files.agree(t.Context(), "memory/last.md"); !errors.Is(err, errDamaged) || a.has("memory/last.md") != "" {
		t.Errorf("a file of another checksum has %q, %v", a.has("memory/last.md"), err)
	}
}

// Names of shared files are those in the folders of them, written in one way, and none that daycare gives itself.
func TestSharedNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"SOUL.md": true, "memory/a.md": true, "memory/a/b.md": true, "memory": true,
		"": false, ".": false,
		"memory/": false, "memory//a.md": false, "./SOUL.md": false, "memory/./a": false, "memory/../SOUL.md": false, "../SOUL.md": false,
		"/SOUL.md": false, "settings.yaml": false, "memory/a\x00": false, "memory/.a": false, "memory/.a/b": false, "memory/a~": false,
		"memory/a~/b": false, "memory/a.conflict-1": false, "memory/a.conflict-1/b": false,
		"cron/files/a": false, "cron/x/files/a": false} {
		if got := sharedByTests.covers(name); got != want {
			t.Errorf("%q is shared: %v", name, got)
		}
		if key, ok := sharedByTests.named(sharedKey(name)); ok != want || ok && key != name {
			t.Errorf("the key of %q is that of %q, %v", name, key, ok)
		}
	}
	if name, ok := sharedByTests.named("?"); ok {
		t.Errorf("what is no key is that of %q", name)
	}
}

// An attachment whose name leads out of its folder is not exported; what is no attachment is left alone.
func TestStrangeAttachments(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	a := newHost(t, s)
	keep := func(name, text string) {
		t.Helper()
		if err := a.Keep(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file.short.reference", "file." + cuid.New() + ".other"} {
		keep(name, `{"name":"a.txt"}`)
	}
	root := t.TempDir()
	if _, err := Export(t.Context(), elsewhere(s.ClientURL(), root)); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(filepath.Join(root, "files")); err != nil || len(left) > 0 {
		t.Errorf("exported are %v, %v", left, err)
	}
	id := cuid.New()
	for _, reference := range []string{`{"name":"../x"}`, `{"name":"a/b"}`, "{"} {
		keep("file."+id+".reference", reference)
		keep("file."+id+".content", "x")
		root := t.TempDir()
		_, err := Export(t.Context(), elsewhere(s.ClientURL(), root))
		if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), id) {
			t.Errorf("of %s: %v", reference, err)
		}
	}
}

// An attachment that servers do not give is not one without content.
func TestAttachmentsThatAreNotGiven(t *testing.T) {
	t.Parallel()
	s := clustertest.Serve(t, clustertest.Store(t), 0)
	w := clustertest.WayTo(t, s)
	a := called(t, "a", s, w)
	if err := a.Keep("file.x.content", []byte("text")); err != nil {
		t.Fatal(err)
	}
	eachRefused(t, w, 1, func(n int) error {
		data, ok, err := a.Fetch("file.x.content")
		// The machine itself asks, too, and what is left behind on the servers is only untidy.
		refused := strings.Contains(w.Met(), "dc-objects") && !strings.Contains(w.Met(), ".DELETE.")
		if errors.Is(err, disk.ErrAway) != refused || ok != (err == nil) || ok && string(data) != "text" {
			t.Errorf("request %d, to %q: %q, %v, %v", n, w.Met(), data, ok, err)
		}
		return err
	})
}
