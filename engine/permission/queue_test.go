package permission

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/attacktest"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

var (
	noon    = time.Date(2026, 11, 20, 12, 0, 0, 123e6, time.UTC)
	owner   = Owner{Connector: "telegram", UserID: "5550001"}
	request = Request{Tag: "@exec:git push", Reason: "publish <it> & go", Detail: Detail{Command: "git push origin"},
		Workdir: "/ws", AskAlways: true}
)

const agent = "tz4a98xxat96iws9zmbrgj3a"

func open(t *testing.T, root string) *Queue {
	t.Helper()
	q, findings, err := OpenQueue(disk.NewVolume(root), root, func() time.Time { return noon }, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		t.Errorf("finding at open: %v", f)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

func ask(t *testing.T, q *Queue, r Request) Pending {
	t.Helper()
	p, fresh, err := q.Ask(agent, owner, r)
	if err != nil || !fresh {
		t.Fatalf("ask: fresh %v, %v", fresh, err)
	}
	return p
}

func edit(t *testing.T, q *Queue, p Pending, old, new string) {
	t.Helper()
	data, err := os.ReadFile(q.store.path(p.Token))
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(data), old, new, 1)
	if changed == string(data) {
		t.Fatalf("%q is not in the file:\n%s", old, data)
	}
	if err := os.WriteFile(q.store.path(p.Token), []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFileOnDisk(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	data, err := os.ReadFile(q.store.path(p.Token))
	if err != nil {
		t.Fatal(err)
	}
	want := `{
  "token": "` + p.Token + `",
  "agentId": "tz4a98xxat96iws9zmbrgj3a",
  "owner": {
    "connector": "telegram",
    "userId": "5550001"
  },
  "permission": "@exec:git push",
  "reason": "publish <it> & go",
  "request": {
    "command": "git push origin",
    "workdir": "/ws"
  },
  "askAlways": true,
  "sha256": "` + request.SHA256(agent) + `",
  "askedAt": "2026-11-20T12:00:00.123Z",
  "expiresAt": "2026-11-21T12:00:00.123Z",
  "decision": null
}
`
	if diff := cmp.Diff(want, string(data)); diff != "" {
		t.Errorf("the file's format changed (-want +got):\n%s", diff)
	}
}

func TestAskedOnce(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	p := ask(t, q, request)
	again, fresh, err := q.Ask(agent, owner, request)
	if err != nil || fresh || again.Token != p.Token {
		t.Errorf("the same request was asked twice: %v %v", again.Token, err)
	}
	if _, fresh, _ := q.Ask("another6gent0000000000000", owner, request); !fresh {
		t.Error("the same request of another agent is another request")
	}
	other := request
	other.Detail.Command += " --force"
	ask(t, q, other)
	q.Close()
	if got := len(open(t, root).List()); got != 3 {
		t.Errorf("after a restart %d requests wait, want 3", got)
	}
	if _, _, err := q.Ask(agent, owner, Request{Tag: "@web:a.example",
		Also: []string{"@read:/" + strings.Repeat("x", 10<<10)}}); !errors.Is(err, ErrTag) {
		t.Errorf("a further right of 10 KB: %v", err)
	}
	if _, _, err := q.Ask(agent, owner, Request{Tag: "x"}); !errors.Is(err, ErrTag) {
		t.Errorf("a request for nonsense: %v", err)
	}
}

func TestSettle(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	p := ask(t, q, request)
	if got, err := q.Get(p.Token); err != nil || !reflect.DeepEqual(got, p) {
		t.Fatalf("Get: %+v, %v", got, err)
	}
	if _, err := q.Settle(p.Token, "maybe", "me", noon); err == nil {
		t.Error("a decision that does not exist was taken")
	}
	done, err := q.Settle(p.Token, Once, "telegram:5550001", noon.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Settle(p.Token, Deny, "late", noon); !errors.Is(err, ErrUnknown) {
		t.Errorf("the second settle must be ErrUnknown, it is %v", err)
	}
	if disk.Exists(q.store.path(p.Token)) || len(q.List()) != 0 {
		t.Error("a settled request is still in the queue")
	}
	log, err := Log(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]Pending{done}, log); diff != "" {
		t.Errorf("log (-settled +read):\n%s", diff)
	}
	if done.Decision != Once || done.DecidedBy == "" || done.DecidedAt.IsZero() {
		t.Errorf("the log does not say who decided what and when: %+v", done)
	}
}

// A crash between the line in the log and the removal of the file leaves both.
func TestRecoveryFinishesTheMove(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	p := ask(t, q, request)
	left, err := os.ReadFile(q.store.path(p.Token))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Settle(p.Token, Always, "me", noon); err != nil {
		t.Fatal(err)
	}
	q.Close()
	if err := os.WriteFile(q.store.path(p.Token), left, 0o600); err != nil {
		t.Fatal(err)
	}
	q = open(t, root)
	if len(q.List()) != 0 || disk.Exists(q.store.path(p.Token)) {
		t.Error("a request that was answered waits again after a crash")
	}
}

func TestAnsweredByHand(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	if got, findings := q.Answered(); len(got) != 0 || len(findings) != 0 {
		t.Fatalf("nobody answered: %v %v", got, findings)
	}
	edit(t, q, p, `"decision": null`, `"decision":   "once"`)
	got, findings := q.Answered()
	if len(got) != 1 || got[0].Decision != Once || got[0].DecidedBy != "file" || len(findings) != 0 {
		t.Fatalf("the answer in the file was not found: %+v %v", got, findings)
	}
	if len(q.List()) != 1 {
		t.Error("an answer settles nothing before the inbox has it")
	}
}

func TestChangedByHandIsRefused(t *testing.T) {
	for name, change := range map[string][2]string{
		"command":  {"git push origin", "rm -rf /"},
		"tag":      {"@exec:git push", "@exec:rm"},
		"owner":    {"5550001", "666"},
		"expiry":   {"2026-11-21", "2036-11-21"},
		"sha256":   {request.SHA256(agent)[:8], "00000000"},
		"decision": {`"decision": null`, `"decision": "perhaps"`},
		"expired":  {`"decision": null`, `"decision": "expired"`},
		"broken":   {`"decision": null`, `"decision": `},
	} {
		t.Run(name, func(t *testing.T) {
			q := open(t, t.TempDir())
			p := ask(t, q, request)
			if name != "decision" && name != "expired" && name != "broken" {
				edit(t, q, p, `"decision": null`, `"decision": "always"`)
			}
			edit(t, q, p, change[0], change[1])
			got, findings := q.Answered()
			if len(got) != 0 || len(findings) != 1 {
				t.Fatalf("answers %+v, findings %v", got, findings)
			}
			if findings[0].File != q.store.path(p.Token) || findings[0].Severity != finding.Error {
				t.Errorf("finding does not name the file: %v", findings[0])
			}
			if _, again := q.Answered(); len(again) != 0 {
				t.Errorf("reported twice: %v", again)
			}
			if kept, err := q.Get(p.Token); err != nil || !reflect.DeepEqual(kept, p) {
				t.Error("the request as it was asked must go on waiting")
			}
			attacktest.Held(t, attacktest.Row{Class: "approvals", How: "bound to the request by its hash", Name: "forged file: " + name})
		})
	}
}

// late looks for late answers, as the engine does.
func late(t *testing.T, q *Queue) (said []Decision) {
	t.Helper()
	if err := errors.Join(q.SetAside(), q.Late(func(late, _ Pending) { said = append(said, late.Decision) })); err != nil {
		t.Error(err)
	}
	return said
}

// Whoever answers in a file after someone else is told: whether the file was saved
// before the request left the queue, or was written again afterwards.
func TestLateAnswersInFiles(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	late := func(want ...Decision) {
		t.Helper()
		if diff := cmp.Diff(want, late(t, q)); diff != "" {
			t.Errorf("late answers (-want +got):\n%s", diff)
		}
		if again := late(t, q); len(again) > 0 {
			t.Errorf("told twice: %+v", again)
		}
	}
	p := ask(t, q, request)
	picture, err := os.ReadFile(q.store.path(p.Token))
	if err != nil {
		t.Fatal(err)
	}
	edit(t, q, p, `"decision": null`, `"decision": "always"`)
	if _, err := q.Settle(p.Token, Deny, "me", noon); err != nil {
		t.Fatal(err)
	}
	late(Always)
	for _, now := range []string{`"once"`, "null"} {
		text := strings.Replace(string(picture), `"decision": null`, `"decision": `+now, 1)
		if err := os.WriteFile(q.store.path(p.Token), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if now == "null" {
			late()
		} else {
			late(Once)
		}
		if disk.Exists(q.store.path(p.Token)) {
			t.Error("the file of a request that was answered stays")
		}
	}

	other := ask(t, q, Request{Tag: "@web"})
	edit(t, q, other, `"decision": null`, `"decision": "once"`)
	if _, err := q.Settle(other.Token, Once, "file", noon); err != nil {
		t.Fatal(err)
	}
	late() // the file was first
}

func TestFileRemovedByHandIsNo(t *testing.T) { synctest.Test(t, fileRemovedByHand) }

func fileRemovedByHand(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	if err := os.Remove(q.store.path(p.Token)); err != nil {
		t.Fatal(err)
	}
	if got, _ := q.Answered(); len(got) != 1 || got[0].Decision != Deny {
		t.Fatalf("a removed request must count as denied: %+v", got)
	}
	if _, err := q.Settle(p.Token, Deny, "file", noon); err != nil {
		t.Errorf("settle without file: %v", err)
	}
}

func TestExpired(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	if got := q.Expired(p.ExpiresAt.Add(-time.Millisecond)); len(got) != 0 {
		t.Errorf("expired too early: %+v", got)
	}
	if got := q.Expired(p.ExpiresAt); len(got) != 1 || got[0].Decision != Expired {
		t.Errorf("not expired in time: %+v", got)
	}
}

// A request expires by itself: whoever waits for something to do is told when the next one does,
// whatever else there is to do later.
func TestTheNextExpiryIsKnown(t *testing.T) {
	q := open(t, t.TempDir())
	if at, ok := q.Next(); ok {
		t.Errorf("nothing waits, and there is something to do at %v", at)
	}
	now := noon
	q.now = func() time.Time { return now }
	first := ask(t, q, request)
	now = noon.Add(time.Hour)
	second := ask(t, q, Request{Tag: "@web", Reason: "to look"})
	if at, ok := q.Next(); !ok || !at.Equal(first.ExpiresAt) {
		t.Errorf("the next look is at %v, %v; want %v, when the first request expires", at, ok, first.ExpiresAt)
	}

	now = first.ExpiresAt.Add(-saving / 2)
	settle(t, q, second, Always) // whose file is looked after for a minute
	if at, ok := q.Next(); !ok || !at.Equal(first.ExpiresAt) {
		t.Errorf("with a file that is kept for longer the next look is at %v, %v; want %v", at, ok, first.ExpiresAt)
	}
}

// After a hint only the files of the requests that it names are read: each costs a read, and
// there can be hundreds.
func TestOnlyNamedRequestsAreLookedAt(t *testing.T) {
	q := open(t, t.TempDir())
	one, other := ask(t, q, request), ask(t, q, Request{Tag: "@web", Reason: "to look"})
	for _, p := range []Pending{one, other} {
		edit(t, q, p, `"decision": null`, `"decision": "once"`)
	}
	if got, _ := q.Answered(other.Token, "gone"); len(got) != 1 || got[0].Token != other.Token {
		t.Errorf("of the one that is named, answered are %+v", got)
	}
	if got, _ := q.Answered(); len(got) != 2 {
		t.Errorf("of all, answered are %+v", got)
	}
	q.List() // no lock is left
}

// A file in the folder of requests says by its name which request it belongs to; what else is
// saved there belongs to none.
func TestWhichRequestAFileBelongsTo(t *testing.T) {
	for name, want := range map[string]string{"tok.json": "tok", "tok.x1.answered": "tok", "tok.json.swp": "", "README.md": "",
		"tok": "", ".json": ""} {
		if token, ok := TokenOf(name); token != want || ok != (want != "" || name == ".json") {
			t.Errorf("%s belongs to %q, %v; want %q", name, token, ok, want)
		}
	}
}

func TestOpenWithBadFiles(t *testing.T) {
	root := t.TempDir()
	q := open(t, root)
	good := ask(t, q, request)
	q.Close()
	for name, content := range map[string]string{"a.json": "{\n  broken", "b.json": `{"token":"x"}`,
		".tmp-c.json-1": "left by a crash", "log.jsonl": `{"torn":`} {
		if err := os.WriteFile(filepath.Join(root, "permissions", name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	q, findings, err := OpenQueue(disk.NewVolume(root), root, nil, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	if len(findings) != 3 {
		t.Errorf("findings %v, want one for each bad file and the torn log", findings)
	}
	if findings[0].Line != 2 {
		t.Errorf("finding without line: %v", findings[0])
	}
	if list := q.List(); len(list) != 1 || list[0].Token != good.Token {
		t.Errorf("bad files must not cost the good one: %+v", list)
	}
	if disk.Exists(filepath.Join(root, "permissions", ".tmp-c.json-1")) {
		t.Error("a temporary file is left")
	}
}

// Who asks for what another is just asking gets the same request, when that is durable.
func TestTheSameRequestTwiceAtOnce(t *testing.T) {
	q := open(t, t.TempDir())
	type asked struct {
		Pending
		fresh bool
		err   error
	}
	other := make(chan asked, 1)
	written := false
	crash.Meanwhile(t, "permission.rename", func(int) {
		go func() {
			p, fresh, err := q.Ask(agent, owner, request)
			if !written {
				t.Error("the second has an answer before the request is durable")
			}
			other <- asked{p, fresh, err}
		}()
		time.Sleep(10 * time.Millisecond) // so that it waits
		written = true
	})
	p, fresh, err := q.Ask(agent, owner, request)
	second := <-other
	if err != nil || !fresh || second.err != nil || second.fresh || second.Token != p.Token || len(q.List()) != 1 {
		t.Errorf("%s, %v, %v and then %s, %v, %v, want one request", p.Token, fresh, err, second.Token, second.fresh, second.err)
	}
}

// An answer from another machine does not take a request away that is just being answered here: that answer counts.
func TestAnAnswerElsewhereWhileOneIsLogged(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	crash.Meanwhile(t, "permissions.write", func(int) {
		_, waits := Others{q}.Parted(p.Token)
		if _, err := q.Get(p.Token); !waits || err != nil {
			t.Errorf("while it is answered the request waits %v, %v", waits, err)
		}
	})
	if settled, err := q.Settle(p.Token, Once, "me", noon); err != nil || settled.Decision != Once {
		t.Errorf("settled with %q, %v", settled.Decision, err)
	}
	if _, err := q.Get(p.Token); !errors.Is(err, ErrUnknown) {
		t.Errorf("after the answer it waits: %v", err)
	}
}

func TestLogMovedAwayByHand(t *testing.T) {
	q := open(t, t.TempDir())
	p := ask(t, q, request)
	if err := os.Remove(q.store.logPath()); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Settle(p.Token, Once, "me", noon); err != nil {
		t.Fatal(err)
	}
	if data, _ := os.ReadFile(q.store.logPath()); !strings.Contains(string(data), p.Token) {
		t.Errorf("the decision is not in the new log: %q", data)
	}
}

func FuzzDecode(f *testing.F) {
	p := Pending{Token: "a", Agent: agent, Owner: owner, Request: request, SHA256: request.SHA256(agent), AskedAt: noon, ExpiresAt: noon}
	line, err := encode(p, "")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(line)
	f.Add([]byte(`{"token":"a","agentId":"b","decision":"once","decidedAt":"2026-01-01T00:00:00Z"}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decode("f", data)
		if err != nil {
			if !errors.As(err, new(finding.Finding)) {
				t.Fatalf("an error that is no finding: %v", err)
			}
			return
		}
		line, err := encode(p, "")
		if err != nil {
			return // a year that RFC 3339 does not have
		}
		again, err := decode("f", line)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, line)
		}
		again.AskedAt, again.ExpiresAt, again.DecidedAt = p.AskedAt, p.ExpiresAt, p.DecidedAt // cut to milliseconds
		if !reflect.DeepEqual(again, p) {
			t.Fatalf("read %+v\nwrote %+v", p, again)
		}
	})
}

// A request that another machine has put into the folder waits here as well, until that machine has
// its answer; that it goes is no answer.
func TestRequestsOfAnotherMachine(t *testing.T) {
	root, there := t.TempDir(), t.TempDir()
	q, other := open(t, root), open(t, there)
	p := ask(t, other, request)
	data, err := os.ReadFile(other.store.path(p.Token))
	if err == nil {
		err = os.WriteFile(q.store.path(p.Token), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, fresh := range []bool{true, false} {
		got, isFresh, err := Others{q}.Met(p.Token)
		if err != nil || isFresh != fresh || got.SHA256 != p.SHA256 {
			t.Errorf("met %v, fresh %v, %v", got, isFresh, err)
		}
	}
	if list := q.Of(agent); len(list) != 1 || list[0].Token != p.Token {
		t.Errorf("waiting are %v", list)
	}

	if got, ok := (Others{q}).Parted(p.Token); !ok || got.Token != p.Token {
		t.Errorf("parted %v %v", got, ok)
	}
	if err := os.Remove(q.store.path(p.Token)); err != nil {
		t.Fatal(err)
	}
	if answers, found := q.Answered(p.Token); len(answers)+len(found) > 0 {
		t.Errorf("answered: %v %v", answers, found)
	}
	if _, ok := (Others{q}).Parted(p.Token); ok {
		t.Error("parted twice")
	}
	if _, _, err := (Others{q}).Met(p.Token); err == nil {
		t.Error("met without a file")
	}
}
