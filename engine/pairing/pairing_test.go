package pairing

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

func from(user string) message.Address {
	return message.Address{Connector: "telegram", ChannelID: user, UserID: user}
}

func ask(t *testing.T, b *Book, a message.Address) string {
	t.Helper()
	code, err := b.Ask(a, "Ada")
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// A stranger has one code an hour, which outlives the process; after the hour it is worth
// nothing, and they can have another.
func TestACodeLastsAnHourAndOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root := t.TempDir()
		code := ask(t, Open(root, disk.NewVolume(root)), from("7"))
		if len(code) != codeLength || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" {
			t.Errorf("the code is %q", code)
		}
		b := Open(root, disk.NewVolume(root))
		for range 3 {
			time.Sleep(10 * time.Minute)
			if again := ask(t, b, from("7")); again != "" {
				t.Errorf("they were told a second code %q within the hour", again)
			}
		}

		if r, err := b.Find(" " + strings.ToLower(code)); err != nil || r.From != from("7") || r.Name != "Ada" {
			t.Errorf("found %+v, %v", r, err)
		}
		time.Sleep(31 * time.Minute)
		if r, err := b.Find(code); !errors.Is(err, ErrUnknown) {
			t.Errorf("after an hour the code is %+v, %v", r, err)
		}
		if again := ask(t, b, from("7")); again == "" || again == code {
			t.Errorf("after an hour they are told %q", again)
		}
	})
}

// Strangers cannot fill the disk: so many of a connector, and so many in all, have a code.
func TestRequestsAreBounded(t *testing.T) {
	root := t.TempDir()
	b := Open(root, disk.NewVolume(root))
	codes := map[string]bool{}
	for i := range 3 * Most {
		if code := ask(t, b, from(fmt.Sprint(i))); code != "" {
			codes[code] = true
		}
	}

	if len(codes) != Most {
		t.Errorf("%d people of one connector have a code, want %d", len(codes), Most)
	}
	for i := range 2 * mostAll {
		ask(t, b, message.Address{Connector: fmt.Sprint("c", i), UserID: "x"})
	}

	if list, err := b.List(); err != nil || len(list) != mostAll {
		t.Errorf("%d requests wait, %v; want %d", len(list), err, mostAll)
	}
	endless := strings.Repeat("x", maxID)
	for _, who := range []message.Address{from(endless), {Connector: "c", UserID: "u", ChannelID: endless},
		{Connector: "c", UserID: "u", ThreadID: endless}, {Connector: "c"}} {
		if code := ask(t, Open(t.TempDir(), nil), who); code != "" {
			t.Errorf("somebody with an endless id, or none, was given a code: %.60v", who)
		}
	}
	if info, err := os.Stat(filepath.Join(root, Name)); err != nil || info.Size() > 64<<10 || info.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v", info, err)
	}
}

// Whoever was answered is not asked about again, and cannot ask again at once.
func TestAnAnswerStays(t *testing.T) {
	root := t.TempDir()
	b := Open(root, disk.NewVolume(root))
	for user, d := range map[string]Decision{"1": Approved, "2": Rejected} {
		r, err := b.Find(ask(t, b, from(user)))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Decide(r, d); err != nil {
			t.Error(err)
		}
		if r, err = b.Find(r.Code); err != nil || r.Decision != d {
			t.Errorf("found %+v, %v", r, err)
		}
		if ask(t, b, from(user)) != "" {
			t.Errorf("after %s they are told another code", d)
		}
	}

	if list, err := b.List(); err != nil || len(list) != 0 {
		t.Errorf("waiting are %+v, %v", list, err)
	}
	if err := b.Decide(Request{Code: "AAAAAAAA"}, Approved); !errors.Is(err, ErrUnknown) {
		t.Errorf("a code that nobody has: %v", err)
	}
}

// A file that cannot be used lets nobody in, gives no codes, and is not overwritten.
func TestABrokenFileIsKept(t *testing.T) {
	for name, content := range map[string]string{
		"cut":        `{"requests": [`,
		"a list":     `[]`,
		"no code":    `{"requests": [{"from": {"connector": "x", "channelId": "1"}, "at": "2026-01-01T00:00:00.000Z"}]}`,
		"short code": `{"requests": [{"code": "A", "from": {"connector": "x", "channelId": "1"}, "at": "2026-01-01T00:00:00.000Z"}]}`,
		"a decision": `{"requests": [{"code": "AAAAAAAA", "decision": "yes", "at": "2026-01-01T00:00:00.000Z"}]}`,
	} {
		root := t.TempDir()
		path := filepath.Join(root, Name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		b := Open(root, disk.NewVolume(root))
		code, err := b.Ask(from("7"), "Ada")
		list, listErr := b.List()
		if _, err := b.Find("AAAAAAAA"); err == nil || errors.Is(err, ErrUnknown) {
			t.Errorf("%s: of a code it is said %v", name, err)
		}
		if found, err := Check(path, []byte(content)); err != nil || finding.Join(found) == nil || len(list) > 0 {
			t.Errorf("%s: found are %v, %v; there wait %v", name, found, err, list)
		}
		if after, _ := os.ReadFile(path); code != "" || err == nil || listErr == nil || string(after) != content {
			t.Errorf("%s: code %q, %v, %v; the file is %s", name, code, err, listErr, after)
		}
	}
}

// Whoever is told a code, and whoever is let in, has it on disk.
func TestWhatIsNotKeptIsReported(t *testing.T) {
	crashtest.EachStepFails(t, "eio", func(t *testing.T) func() error {
		root := t.TempDir()
		b := Open(root, disk.NewVolume(root))
		return func() error {
			code, err := b.Ask(from("7"), "Ada")
			if err != nil && code != "" {
				t.Errorf("told is %q, which is not kept", code)
			}
			return err
		}
	})
	crashtest.EachStepFails(t, "emfile", func(t *testing.T) func() error {
		root := t.TempDir()
		b := Open(root, disk.NewVolume(root))
		r, err := b.Find(ask(t, b, from("7")))
		if err != nil {
			t.Fatal(err)
		}
		return func() error { return b.Decide(r, Approved) }
	})
}

// A link into the workspace, where agents write, is not the file.
func TestALinkIntoTheWorkspaceLetsNobodyIn(t *testing.T) {
	root := filepath.Join(t.TempDir(), ".daycare")
	planted := filepath.Join(filepath.Dir(root), "planted.json")
	content := `{"requests": [{"code": "AAAAAAAA", "from": {"connector": "x", "channelId": "1", "userId": "1"}, "at": ` +
		`"2999-01-01T00:00:00.000Z"}]}`
	if err := errors.Join(os.Mkdir(root, 0o700), os.WriteFile(planted, []byte(content), 0o600),
		os.Symlink(planted, filepath.Join(root, Name))); err != nil {
		t.Fatal(err)
	}
	if list, err := Open(root, disk.NewVolume(root)).List(); len(list) != 0 || err == nil {
		t.Errorf("%+v, %v", list, err)
	}
}
