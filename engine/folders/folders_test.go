package folders

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"daycare/engine/address"
	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open is the folders of a new workspace.
func open(t *testing.T) *Folders {
	t.Helper()
	root := filepath.Join(t.TempDir(), ".daycare")
	must(t, os.Mkdir(root, 0o700))
	log := slog.New(slog.DiscardHandler)
	vol := disk.NewVolume(root)
	index, _, err := address.Load(vol, root, log)
	must(t, err)
	t.Cleanup(func() { index.Close() })
	return &Folders{Root: root, Volume: vol, Index: index, Log: log, User: "ann", Make: index.CreateWith}
}

// colleague makes an agent of that name with a state.
func colleague(t *testing.T, f *Folders, name string, s record.State) string {
	t.Helper()
	state, err := record.EncodeState(workspace.At(filepath.Dir(f.Root)), s)
	must(t, err)
	meta, err := f.Make(address.Descriptor{Type: address.Permanent, Name: name, Description: "d"}, state, nil)
	must(t, err)
	return meta.ID
}

// says writes a turn into an agent's history: a long output and an answer.
func says(t *testing.T, f *Folders, id, turn, text string) (blob string) {
	t.Helper()
	hist, _, err := record.Open(f.Volume, f.folder(id), time.Now, f.Log)
	must(t, err)
	must(t, hist.Begin("session"))
	blob, err = record.PutBlob(f.Volume, f.folder(id), "long output of "+text)
	must(t, err)
	for _, r := range []record.Record{&record.TurnBegin{Turn: turn}, &record.Assistant{Turn: turn, Text: text,
		Finish: record.FinishEndTurn},
		&record.TurnEnd{Turn: turn, Reason: record.ReasonDone}} {
		_, err := hist.Append(r)
		must(t, err)
	}
	must(t, hist.Close())
	return blob
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(data)
}

// A user's version of a file is published if it is good and nobody saved another one
// meanwhile, with the daemon and without.
func TestAFileIsWrittenOverTheVersionThatWasRead(t *testing.T) {
	for name, running := range map[string]bool{"running": true, "not running": false} {
		f := open(t)
		id := colleague(t, f, "Ops", record.State{})
		if !running {
			f.Volume = nil
		}
		for _, file := range editableFiles {
			v, err := f.Read(id, file)
			must(t, err)
			if old := string(v.Content); file != "history.jsonl" && old != text(t, f.folder(id), file) {
				t.Errorf("%s, %s: read is %s", name, file, old)
			}
			content := []byte(strings.Replace(string(v.Content), `"d"`, `"new"`, 1) + "\n")
			now, err := f.Write(id, file, content, v.Hash)
			if err != nil || string(now.Content) != string(content) || text(t, f.folder(id), file) != string(content) {
				t.Errorf("%s, %s: %v", name, file, err)
			}
			var changed *Changed
			if _, err = f.Write(id, file, []byte("\n"), v.Hash); file != "history.jsonl" {
				_, err = f.Write(id, file, v.Content, v.Hash)
			}
			if !errors.As(err, &changed) || changed.Now.Hash != now.Hash || text(t, f.folder(id), file) != string(content) {
				t.Errorf("%s, %s, over another version: %v", name, file, err)
			}
		}
	}
}

// Only the files that users edit, of agents that there are, are read and written; what is
// wrong in one is said, and it stays as it was.
func TestFilesThatAreRefused(t *testing.T) {
	f := open(t)
	id, other := colleague(t, f, "Ops", record.State{}), colleague(t, f, "Other", record.State{})
	good := text(t, f.folder(id), address.File)
	for _, name := range []string{"inbox.jsonl", "../" + other + "/state.json", ""} {
		if _, err := f.Read(id, name); !errors.Is(err, ErrNotEditable) {
			t.Errorf("%q is read: %v", name, err)
		}
		if _, err := f.Write(id, name, nil, ""); !errors.Is(err, ErrNotEditable) {
			t.Errorf("%q is written: %v", name, err)
		}
	}
	if err := os.WriteFile(filepath.Join(f.folder(id), promptFile), []byte("You are"), 0o600); err != nil {
		t.Fatal(err)
	}
	if v, err := f.Read(id, promptFile); err != nil || string(v.Content) != "You are" {
		t.Errorf("the system prompt is %q, %v", v.Content, err)
	}
	if _, err := f.Write(id, promptFile, nil, ""); !errors.Is(err, ErrNotEditable) {
		t.Errorf("the system prompt is written: %v", err)
	}
	if _, err := CheckFile("/x/MEMORY.md", nil); !errors.Is(err, ErrNotEditable) {
		t.Errorf("another file is checked: %v", err)
	}
	if _, err := f.Read("abcdefghijklmnopqrstuvwx", address.File); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("of an agent that there is not: %v", err)
	}
	for reason, tt := range map[string]struct{ name, content string }{
		"differs from the name of its folder": {address.File, text(t, f.folder(other), address.File)},
		"":                                    {address.File, "{"},
		"permissions":                         {"state.json", `{"permissions": 7}`},
	} {
		v, err := f.Read(id, tt.name)
		must(t, err)
		if _, err := f.Write(id, tt.name, []byte(tt.content), v.Hash); !errors.As(err, new(finding.Finding)) ||
			!strings.Contains(err.Error(), reason) {
			t.Errorf("%s is written: %v, want a finding with %q", tt.content, err, reason)
		}
	}
	if text(t, f.folder(id), address.File) != good {
		t.Error("a refused file is changed")
	}
	must(t, errors.Join(os.Remove(filepath.Join(f.folder(id), "state.json")), os.Mkdir(filepath.Join(f.folder(id), "state.json"), 0o700)))
	if _, err := f.Read(id, "state.json"); err == nil {
		t.Error("a folder is read as a file")
	}
	if _, err := f.Write(id, "state.json", []byte("{}"), version(nil).Hash); err == nil {
		t.Error("a file is written over a folder")
	}
}

// A descriptor must not take the address of another agent.
// A text that the history names by hash can be read, and nothing else beside it; it cannot be written.
func TestTextsOfAHistory(t *testing.T) {
	f := open(t)
	id := colleague(t, f, "Ops", record.State{})
	hash := says(t, f, id, "t1", "the answer")
	v, err := f.Read(id, "blobs/"+hash)
	if want := text(t, f.folder(id), "blobs", hash); err != nil || string(v.Content) != want || v.Hash != hash {
		t.Errorf("%d bytes with the hash %s, %v; want %d with %s", len(v.Content), v.Hash, err, len(want), hash)
	}
	if _, err := f.Write(id, "blobs/"+hash, []byte("another"), hash); !errors.Is(err, ErrNotEditable) {
		t.Errorf("written: %v", err)
	}
	for _, name := range []string{"", "..", "../state.json", strings.Repeat("0", 64), hash + "/..", strings.ToUpper(hash)} {
		if v, err := f.Read(id, "blobs/"+name); !errors.Is(err, fault.NoFile) {
			t.Errorf("blobs/%s: %q, %v; want %v", name, v.Content, err, fault.NoFile)
		}
	}
	if _, err := f.Read("abcdefghijklmnopqrstuvwx", "blobs/"+hash); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("of no agent: %v", err)
	}
}

func TestADescriptorWithTheAddressOfAnotherIsRefused(t *testing.T) {
	f := open(t)
	var ids []string
	for _, user := range []string{"1", "2"} {
		meta, err := f.Make(address.Descriptor{Type: address.User, Connector: "telegram", ChannelID: "c", UserID: user}, nil, nil)
		must(t, err)
		ids = append(ids, meta.ID)
	}
	v, err := f.Read(ids[0], address.File)
	must(t, err)
	content := strings.Replace(string(v.Content), `"1"`, `"2"`, 1)
	if _, err := f.Write(ids[0], address.File, []byte(content), v.Hash); err == nil || !strings.Contains(err.Error(), ids[1]) {
		t.Errorf("the address of another is taken: %v", err)
	}
	if _, err := f.Write(ids[0], address.File, v.Content, v.Hash); err != nil {
		t.Errorf("its own address: %v", err)
	}
}

// What is in the trash is found by all that users call it; of several the user chooses.
func TestAgentsInTheTrash(t *testing.T) {
	f := open(t)
	if list, err := f.Trash(); err != nil || list == nil || len(list) > 0 {
		t.Fatalf("an empty trash: %v, %v", list, err)
	}
	var ids, names []string
	for _, name := range []string{"Ops", "Twin", "Twin"} {
		id := colleague(t, f, name, record.State{})
		path, err := f.Index.Remove(id)
		must(t, err)
		ids, names = append(ids, id), append(names, filepath.Base(path))
		time.Sleep(2 * time.Millisecond) // the name of a folder is its time
	}
	at := time.Now().UTC().Format(trashTime)
	for _, kept := range []string{"notes", at + "-short", "yesterday-" + ids[0]} {
		must(t, os.Mkdir(filepath.Join(f.Root, "trash", kept), 0o700))
	}
	must(t, os.WriteFile(filepath.Join(f.Root, "trash", at+"-"+ids[0]), nil, 0o600))
	list, err := f.Trash()
	if err != nil || len(list) != 3 || list[0].ID != ids[2] || list[2].ID != ids[0] || list[2].Title != "Ops" ||
		list[2].Type != string(address.Permanent) || time.Since(list[0].At) > time.Minute {
		t.Fatalf("in the trash are %+v, %v", list, err)
	}
	handle := f.Index.Handle(ids[0])
	for _, ref := range []string{names[0], ids[0], handle, strings.TrimSuffix(handle, "/"), "Ops", ids[0][:address.MinPrefix]} {
		if got, err := f.inTrash(ref); err != nil || got.ID != ids[0] {
			t.Errorf("%q is %s, %v", ref, got.ID, err)
		}
	}
	for _, ref := range []string{"", "nobody", ids[0][:address.MinPrefix-1], "/"} {
		if got, err := f.Restore(ref); !errors.Is(err, ErrNoTrash) {
			t.Errorf("%q is %s, %v", ref, got, err)
		}
	}
	var several *address.Ambiguous
	if _, err := f.inTrash("Twin"); !errors.As(err, &several) || len(several.Candidates) != 2 || several.Ref != "Twin" {
		t.Errorf("one of two: %v", err)
	}
	must(t, os.RemoveAll(filepath.Join(f.Root, "trash")))
	must(t, os.WriteFile(filepath.Join(f.Root, "trash"), nil, 0o600))
	_, err = f.inTrash("Ops")
	if _, rerr := f.Restore("Ops"); rerr == nil || errors.Is(rerr, ErrNoTrash) || err == nil || errors.Is(err, ErrNoTrash) {
		t.Errorf("a trash that cannot be listed: %v, %v", err, rerr)
	}
}

// An agent comes back from the trash as it was, alive, unless another one has its place.
func TestAnAgentComesBackAlive(t *testing.T) {
	f := open(t)
	id := colleague(t, f, "Ops", record.State{Queue: "steer"})
	must(t, record.UpdateState(f.Volume, f.folder(id), func(s *record.State) {
		s.Ended = &record.Ended{At: disk.StampOf(time.Now()), Reason: "killed"}
	}))
	path, err := f.Index.Remove(id)
	must(t, err)
	back, err := f.Restore("Ops")
	if err != nil || back != id || disk.Exists(path) {
		t.Fatalf("back is %s, %v", back, err)
	}
	if s, _, _, err := record.ReadState(f.folder(id)); err != nil || s.Ended != nil || s.Queue != "steer" {
		t.Errorf("its state is %+v, %v", s, err)
	}
	// It is there, and once more in the trash.
	if _, _, err := f.Index.Rescan(); err != nil {
		t.Fatal(err)
	}
	must(t, os.CopyFS(path, os.DirFS(f.folder(id))))
	if _, err := f.Restore(id); !errors.Is(err, ErrTaken) {
		t.Errorf("beside itself: %v", err)
	}

	chat := address.Descriptor{Type: address.User, Connector: "telegram", ChannelID: "c", UserID: "1"}
	old, err := f.Make(chat, nil, nil)
	must(t, err)
	path, err = f.Index.Remove(old.ID)
	must(t, err)
	if _, err = f.Make(chat, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Restore(old.ID); !errors.Is(err, ErrTaken) || !disk.Exists(path) {
		t.Errorf("with the address of a newer one: %v", err)
	}
	must(t, os.Remove(filepath.Join(path, address.File)))
	if err := f.restorable(path, old.ID); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an agent without a descriptor can come back: %v", err)
	}
	if _, err := f.Restore(old.ID); err == nil || errors.Is(err, ErrTaken) || !disk.Exists(path) {
		t.Errorf("without a descriptor: %v", err)
	}
}

// An agent that could not be brought back, forked, imported or written is reported.
func TestEachFailedStepIsReported(t *testing.T) {
	for _, fault := range []string{"eio", "enospc"} { // the volume is lost, or the step alone
		t.Run(fault, func(t *testing.T) { eachStepFails(t, fault) })
	}
}

func eachStepFails(t *testing.T, fault string) {
	t.Helper()
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		f := open(t)
		id := colleague(t, f, "Ops", record.State{Ended: &record.Ended{Reason: "x"}})
		_, err := f.Index.Remove(id)
		must(t, err)
		return func() error { _, err := f.Restore(id); return err }
	}, "state.kept.write", "state.kept.rename")
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		f := open(t)
		id := colleague(t, f, "Ops", record.State{})
		v, err := f.Read(id, address.File)
		must(t, err)
		content := []byte(strings.Replace(string(v.Content), `"d"`, `"new"`, 1))
		return func() error { _, err := f.Write(id, address.File, content, v.Hash); return err }
	}, "descriptor.kept.write", "descriptor.kept.rename")
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		f := open(t)
		id := colleague(t, f, "Ops", record.State{})
		says(t, f, id, "t", "hello")
		return func() error { _, err := f.Fork(id, 0, ""); return err }
	}, "descriptor.kept.write", "descriptor.kept.rename", "state.kept.write", "state.kept.rename")
	crashtest.EachStepFails(t, fault, func(t *testing.T) func() error {
		f := open(t)
		id := colleague(t, f, "Ops", record.State{})
		says(t, f, id, "t", "hello")
		var b bytes.Buffer
		must(t, Export(f.Root, id, &b))
		return func() error { _, err := f.Import(&b, "other"); return err }
	}, "descriptor.kept.write", "descriptor.kept.rename", "state.kept.write", "state.kept.rename")
}

// shows writes a turn into an agent's history in which a tool showed a long output.
func shows(t *testing.T, f *Folders, id string) (blob string) {
	t.Helper()
	blob = says(t, f, id, "one", "hello")
	hist, _, err := record.Open(f.Volume, f.folder(id), time.Now, f.Log)
	must(t, err)
	for _, r := range []record.Record{&record.TurnBegin{Turn: "two"},
		&record.Assistant{Turn: "two", Finish: record.FinishToolUse,
			ToolCalls: []record.ToolCall{{ID: "c", Name: "look", Arguments: []byte("{}")}}},
		&record.ToolStart{ToolCallID: "c", Name: "look"},
		&record.ToolResult{ToolCallID: "c", Name: "look", Status: record.StatusOK, Output: record.Output{Text: "long", Blob: blob}},
		&record.Assistant{Turn: "two", Text: "seen", Finish: record.FinishEndTurn},
		&record.TurnEnd{Turn: "two", Reason: record.ReasonDone}} {
		_, err := hist.Append(r)
		must(t, err)
	}
	must(t, hist.Close())
	return blob
}

// With too few descriptors an agent is forked, exported, imported and brought back whole, or not at
// all.
func TestAgentsWithFewDescriptors(t *testing.T) {
	var text string
	whole := func(f *Folders, id, blob string) error {
		data, err := os.ReadFile(filepath.Join(f.folder(id), "blobs", blob))
		history, herr := os.ReadFile(filepath.Join(f.folder(id), "history.jsonl"))
		err = errors.Join(err, herr)
		if err == nil && (string(data) != "long output of hello" || !strings.Contains(string(history), blob)) {
			err = fmt.Errorf("the folder has %q and the history %q", data, history)
		}
		return err
	}
	for what, do := range map[string]func(f *Folders, id string) (string, error){
		"fork": func(f *Folders, id string) (string, error) {
			m, err := f.Fork(id, 0, "")
			return m.ID, err
		},
		"import": func(f *Folders, id string) (string, error) {
			m, err := f.Import(strings.NewReader(text), "other")
			return m.ID, err
		},
		"restore": func(f *Folders, id string) (string, error) { return f.Restore(id) },
		"export": func(f *Folders, id string) (string, error) {
			var b strings.Builder
			err := Export(f.Root, id, &b)
			if got := names(t, []byte(b.String())); err == nil && len(got) != len(names(t, []byte(text))) {
				err = fmt.Errorf("the archive has %d files", len(got))
			}
			return id, err
		},
	} {
		t.Run(what, func(t *testing.T) {
			crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
				f := open(t)
				id := colleague(t, f, "Ops", record.State{})
				blob := shows(t, f, id)
				var b strings.Builder
				must(t, Export(f.Root, id, &b))
				text = b.String()
				if what == "restore" {
					_, err := f.Index.Remove(id)
					must(t, err)
				}
				var made string
				op = func() (err error) {
					made, err = do(f, id)
					return err
				}
				return op, func() error { return whole(f, made, blob) }
			})
		})
	}
}

// A fork continues from a record with the rights of the other and its long outputs, and owes
// nothing: neither approvals of single requests nor an end.
func TestAForkGoesOnFromARecord(t *testing.T) {
	f := open(t)
	id := colleague(t, f, "Ops", record.State{Queue: "steer", Budget: &record.Budget{USD: 2}, Provider: record.Model{ID: "p", Model: "m"},
		Ended: &record.Ended{Reason: "killed"},
		Permissions: permission.Set{Hosts: []string{"a.org"},
			Grants: []permission.Grant{{Tag: "@web:b.org"}, {Tag: "@exec:rm", SHA256: strings.Repeat("0", 64)}}}})
	blob := says(t, f, id, "one", "hello")
	says(t, f, id, "two", "bye")
	meta, err := f.Fork(id, 0, "")
	must(t, err)
	if d := meta.Descriptor; d.Name != "fork of "+f.Index.Handle(id) || d.Description != "d" || meta.ID == id {
		t.Errorf("it is %+v", d)
	}
	s, _, found, err := record.ReadState(f.folder(meta.ID))
	must(t, err)
	if s.Queue != "steer" || s.Budget == nil || s.Budget.USD != 2 || s.Provider.Model != "m" || s.Ended != nil || len(found) > 0 ||
		s.Session.Parent != id || !slices.Equal(s.Permissions.Hosts, []string{"a.org"}) {
		t.Errorf("its state is %+v, %v", s, found)
	}
	if g := s.Permissions.Grants; len(g) != 1 || g[0].Tag != "@web:b.org" {
		t.Errorf("its grants are %+v", g)
	}
	history := text(t, f.folder(meta.ID), "history.jsonl")
	if !strings.Contains(history, "hello") || !strings.Contains(history, "bye") || !strings.Contains(history, id) {
		t.Errorf("its history is\n%s", history)
	}
	if of, _, _, _ := record.ReadState(f.folder(id)); len(of.Permissions.Grants) != 2 || of.Ended == nil {
		t.Errorf("the other lost %+v", of)
	}

	if meta, err = f.Fork(id, 4, "early"); err != nil || meta.Descriptor.Name != "early" {
		t.Fatalf("%+v, %v", meta, err)
	}
	if history := text(t, f.folder(meta.ID), "history.jsonl"); strings.Contains(history, `"bye"`) {
		t.Errorf("from an earlier record:\n%s", history)
	}
	if _, err := f.Fork(id, 999, ""); !errors.Is(err, record.ErrNoRecord) {
		t.Errorf("from a record that there is not: %v", err)
	}
	if _, err := f.Fork("abcdefghijklmnopqrstuvwx", 0, ""); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("of an agent that there is not: %v", err)
	}

	to := t.TempDir()
	must(t, f.fillFork(f.folder(id), to, record.Cut{Content: []byte("x"), Blobs: []string{strings.Repeat("0", 64), blob}}))
	if got, err := record.ReadBlob(to, blob); err != nil || got != "long output of hello" {
		t.Errorf("beside one that is missing, the long output is %q, %v", got, err)
	}
	must(t, os.WriteFile(filepath.Join(f.folder(id), "state.json"), []byte("{"), 0o600))
	meta, err = f.Fork(id, 0, "of the last good one")
	must(t, err)
	if s, _, _, err := record.ReadState(f.folder(meta.ID)); err != nil || !slices.Equal(s.Permissions.Hosts, []string{"a.org"}) {
		t.Errorf("of an agent whose state is broken: %+v, %v", s.Permissions, err)
	}
	must(t, os.RemoveAll(filepath.Join(f.folder(id), ".state.json")))
	before := len(f.Index.All())
	if _, err := f.Fork(id, 0, "of a broken one"); err == nil || len(f.Index.All()) != before {
		t.Errorf("of an agent whose permissions are not known: %v, %d agents more", err, len(f.Index.All())-before)
	}
}

// A place of a conversation is a record, a mark that is set, or one that waits to be set.
func TestPlacesThatAConversationHas(t *testing.T) {
	f := open(t)
	id := colleague(t, f, "Ops", record.State{})
	if _, err := f.Rewindable(id, "1"); !errors.Is(err, record.ErrNoRecord) {
		t.Errorf("of an empty conversation: %v", err)
	}
	says(t, f, id, "one", "hello")
	box, _, err := inbox.Open(f.Volume, f.folder(id), inbox.NewQuota(1<<20), time.Now)
	must(t, err)
	for _, it := range []inbox.Item{{Kind: message.Mark, Text: "waits"}, {Kind: message.Text, Text: "no mark"}} {
		_, err := box.Accept(t.Context(), it)
		must(t, err)
	}
	must(t, box.Close())
	for to, want := range map[string]error{"2": nil, "": nil, "waits": nil, "no mark": record.ErrNoRecord, "999": record.ErrNoRecord} {
		if _, err := f.Rewindable(id, to); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", to, err, want)
		}
	}
	if _, err := f.Rewindable("abcdefghijklmnopqrstuvwx", "2"); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("of an agent that there is not: %v", err)
	}
	must(t, errors.Join(os.Remove(filepath.Join(f.folder(id), "inbox.jsonl")), os.Mkdir(filepath.Join(f.folder(id), "inbox.jsonl"), 0o700)))
	if _, err := f.Rewindable(id, "waits"); err == nil || errors.Is(err, record.ErrNoRecord) {
		t.Errorf("with an inbox that cannot be read: %v", err)
	}
	must(t, errors.Join(os.Remove(filepath.Join(f.folder(id), "history.jsonl")),
		os.Mkdir(filepath.Join(f.folder(id), "history.jsonl"), 0o700)))
	if _, err := f.Rewindable(id, "2"); err == nil || errors.Is(err, record.ErrNoRecord) {
		t.Errorf("with a history that cannot be read: %v", err)
	}
}

// names are the entries of an archive with their contents.
func names(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	all := map[string]string{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if err != nil {
			return all
		}
		var b bytes.Buffer
		_, err = b.ReadFrom(r)
		must(t, err)
		all[h.Name] = b.String()
	}
}

// An exported agent has the files that it needs elsewhere and no other, whole lines only,
// and nothing of where it was.
func TestWhatAnArchiveHas(t *testing.T) {
	f := open(t)
	root := filepath.Dir(f.Root)
	id := colleague(t, f, "Ops", record.State{})
	blob := says(t, f, id, "one", "hello")
	for name, content := range map[string]string{"SYSTEM.md": "x", "draft.json": "{}", ".state.json": "{}", "history/x.jsonl": "{}\n",
		"history/000001.jsonl": "{}\n{\"half", "inbox.jsonl": "", "state.json": `{"permissions": {"workingDir": "` + root + `/sub"}}`} {
		path := filepath.Join(f.folder(id), name)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)))
	}
	must(t, os.Symlink("/etc/passwd", filepath.Join(f.folder(id), "sessions.jsonl")))
	must(t, os.Remove(filepath.Join(f.folder(id), "inbox.jsonl")))
	must(t, os.Symlink("/etc/passwd", filepath.Join(f.folder(id), "inbox.jsonl")))
	stateLike := `{"permissions": {"workingDir": "` + root + `/sub"}}` // in a file that is no state
	must(t, os.WriteFile(filepath.Join(f.folder(id), "blobs", strings.Repeat("0", 64)), []byte(stateLike), 0o600))
	var b bytes.Buffer
	must(t, Export(f.Root, id, &b))
	got := names(t, b.Bytes())
	var list []string
	for name := range got {
		list = append(list, strings.TrimPrefix(name, id+"/"))
	}
	slices.Sort(list)
	want := []string{"blobs/" + strings.Repeat("0", 64), "blobs/" + blob, "descriptor.json", "history.jsonl", "history/000001.jsonl",
		"state.json"}
	if got := got[id+"/"+want[0]]; got != stateLike {
		t.Errorf("a long output became %q", got)
	}
	if !bytes.HasSuffix(b.Bytes(), make([]byte, 1024)) {
		t.Error("the archive has no end")
	}
	if !slices.Equal(list, want) || got[id+"/history/000001.jsonl"] != "{}\n" || got[id+"/blobs/"+blob] != "long output of hello" {
		t.Errorf("it has %v and %q", list, got[id+"/history/000001.jsonl"])
	}
	if s := got[id+"/state.json"]; strings.Contains(s, root) || !strings.Contains(s, "sub") {
		t.Errorf("its state is %s", s)
	}
	must(t, os.WriteFile(filepath.Join(f.folder(id), "state.json"), []byte("{ broken"), 0o600))
	b.Reset()
	if err := Export(f.Root, id, &b); err != nil || names(t, b.Bytes())[id+"/state.json"] != "{ broken" {
		t.Errorf("with a broken state: %v", err)
	}
	for name, try := range map[string]func() error{
		"an agent that there is not":    func() error { return Export(f.Root, "abcdefghijklmnopqrstuvwx", &b) },
		"a workspace that there is not": func() error { return Export(filepath.Join(root, "none"), id, &b) },
		"a writer that fails":           func() error { return Export(f.Root, id, failing{}) },
		"a file that is too large": func() error {
			defer func(n int64) { limits.File = n }(limits.File)
			limits.File = int64(len(text(t, f.folder(id), "history.jsonl")))
			must(t, os.WriteFile(filepath.Join(f.folder(id), "history/000001.jsonl"), make([]byte, limits.File+1), 0o600))
			return Export(f.Root, id, &b)
		},
		"a change that fails": func() error {
			agents, err := os.OpenRoot(filepath.Join(f.Root, "agents"))
			must(t, err)
			defer agents.Close()
			return ExportFrom(agents, id, &b, func(string, []byte) ([]byte, error) { return nil, os.ErrInvalid })
		},
	} {
		if try() == nil {
			t.Errorf("%s is no error", name)
		}
	}
}

// An agent that works while it is exported has all of its history in the archive, once, and an
// item that is done only with the turn in which it was.
func TestAnAgentIsExportedWhileItWorks(t *testing.T) {
	f := open(t)
	id := colleague(t, f, "Ops", record.State{})
	dir := f.folder(id)
	put := func(rel, text string) {
		path := filepath.Join(dir, rel)
		must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)))
	}
	agents, err := os.OpenRoot(filepath.Join(f.Root, "agents"))
	must(t, err)
	defer agents.Close()

	for _, first := range []string{"history/000001.jsonl", "history.jsonl"} {
		must(t, os.RemoveAll(filepath.Join(dir, "history")))
		put("history/000001.jsonl", "{\"n\":1}\n")
		put("history.jsonl", "{\"n\":2}\n")
		rotate := func() {
			must(t, os.Rename(filepath.Join(dir, "history.jsonl"), filepath.Join(dir, "history/000002.jsonl")))
			put("history.jsonl", "{\"n\":3}\n")
		}
		var b bytes.Buffer
		must(t, ExportFrom(agents, id, &b, func(file string, data []byte) ([]byte, error) {
			if file == first && !disk.Exists(filepath.Join(dir, "history/000002.jsonl")) {
				rotate()
			}
			return data, nil
		}))
		got := names(t, b.Bytes())
		all := got[id+"/history/000001.jsonl"] + got[id+"/history/000002.jsonl"] + got[id+"/history.jsonl"]
		if !strings.HasPrefix(all, "{\"n\":1}\n{\"n\":2}\n") || strings.Count(all, "{\"n\":2}") != 1 {
			t.Errorf("rotated after %s was read: the history is %q", first, all)
		}
	}

	put("history.jsonl", "{\"n\":1}\n")
	put("inbox.jsonl", "waits\n")
	var b bytes.Buffer
	must(t, ExportFrom(agents, id, &b, func(file string, data []byte) ([]byte, error) {
		if file == "history.jsonl" { // now the turn comes, and then the item is done
			put("history.jsonl", "{\"n\":1}\nturn\n")
			put("inbox.jsonl", "waits\ndone\n")
		}
		return data, nil
	}))
	if got := names(t, b.Bytes()); got[id+"/inbox.jsonl"] != "waits\n" && !strings.Contains(got[id+"/history.jsonl"], "turn") {
		t.Errorf("the item is done without its turn: %q, %q", got[id+"/inbox.jsonl"], got[id+"/history.jsonl"])
	}

	var order []string
	for r := tar.NewReader(&b); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		order = append(order, h.Name)
	}
	if last := order[len(order)-1]; last != id+"/state.json" {
		t.Errorf("%s is the last file: an archive that is cut before it must not be whole", last)
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, os.ErrClosed }

// An imported agent is the same one where nothing has its id and its address, and else a new
// one that stands by itself; its rights come along, and it is alive.
func TestAnImportedAgentIsTheSameOrANewOne(t *testing.T) {
	from, to := open(t), open(t)
	id := colleague(t, from, "Ops", record.State{Queue: "steer", Ended: &record.Ended{Reason: "killed"},
		Permissions: permission.Set{Hosts: []string{"a.org"}}})
	blob := says(t, from, id, "one", "hello")
	must(t, os.WriteFile(filepath.Join(from.folder(id), "inbox.jsonl"), []byte("{}\n"), 0o600))
	written := strings.Replace(text(t, from.folder(id), address.File), "{", "{  ", 1) // by hand
	must(t, os.WriteFile(filepath.Join(from.folder(id), address.File), []byte(written), 0o600))
	var b bytes.Buffer
	must(t, Export(from.Root, id, &b))
	archive := b.Bytes()

	bring := func(name string) address.Meta {
		t.Helper()
		meta, err := to.Import(bytes.NewReader(archive), name)
		must(t, err)
		s, _, _, err := record.ReadState(to.folder(meta.ID))
		if err != nil || s.Queue != "steer" || s.Ended != nil || !slices.Equal(s.Permissions.Hosts, []string{"a.org"}) {
			t.Errorf("its state is %+v, %v", s, err)
		}
		if got, err := record.ReadBlob(to.folder(meta.ID), blob); err != nil || got != "long output of hello" {
			t.Errorf("its long output is %q, %v", got, err)
		}
		if text(t, to.folder(meta.ID), "history.jsonl") != text(t, from.folder(id), "history.jsonl") ||
			text(t, to.folder(meta.ID), "inbox.jsonl") != "{}\n" {
			t.Error("its history or its inbox is another")
		}
		return meta
	}
	if meta := bring(""); meta.ID != id || text(t, to.folder(id), address.File) != text(t, from.folder(id), address.File) {
		t.Errorf("the first one is %+v, want the same", meta)
	}
	if meta := bring(""); meta.ID == id || meta.Descriptor.Name != "Ops" || meta.Descriptor.Description != "d" {
		t.Errorf("the second one is %+v, want a new one", meta)
	}
	if meta := bring("other"); meta.ID == id || meta.Descriptor.Name != "other" {
		t.Errorf("the third one is %+v, want its new name", meta)
	}
	agents := filepath.Join(to.Root, "agents")
	must(t, os.Rename(agents, agents+".away"))
	if meta, err := to.Import(bytes.NewReader(archive), "lost"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no folder of agents: %+v, %v", meta, err)
	}
	must(t, os.Rename(agents+".away", agents))
	left, err := disk.Glob(filepath.Join(to.Root, "agents"), ".new-*")
	if err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	third := open(t)
	if meta, err := third.Import(bytes.NewReader(archive), "other"); err != nil || meta.ID != id || meta.Descriptor.Name != "other" ||
		!strings.Contains(text(t, third.folder(id), address.File), "other") {
		t.Errorf("the same one by another name is %+v, %v", meta, err)
	}
}

// archiveOf makes an archive of these entries.
func archiveOf(t *testing.T, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i := 0; i < len(entries); i += 2 {
		must(t, w.WriteHeader(&tar.Header{Name: entries[i], Size: int64(len(entries[i+1])), Mode: 0o600}))
		_, err := w.Write([]byte(entries[i+1]))
		must(t, err)
	}
	must(t, w.Close())
	return b.Bytes()
}

// Archives that no export wrote make nothing.
func TestArchivesOfNoAgentMakeNothing(t *testing.T) {
	const id, other = "abcdefghijklmnopqrstuvwx", "abcdefghijklmnopqrstuvwy"
	const good = `{"type":"permanent","id":"` + id + `","name":"Ops"}`
	f := open(t)
	for name, entries := range map[string][]string{
		"nothing": nil, "another file": {id + "/descriptor.json", good, id + "/state.json", "{}", id + "/SYSTEM.md", "x"},
		"of two agents": {id + "/state.json", "{}",
			other + "/descriptor.json", good},
		"no id":    {"short/descriptor.json", good, "short/state.json", "{}"},
		"no state": {id + "/descriptor.json", good}, "no descriptor": {id + "/state.json", "{}"},
		"a way out": {id + "/../../settings.yaml", "x"}, "twice": {id + "/state.json", "{}", id + "/state.json", "{}"},
	} {
		if meta, err := f.Import(bytes.NewReader(archiveOf(t, entries...)), ""); !errors.Is(err, ErrBadArchive) {
			t.Errorf("%s: %+v, %v", name, meta, err)
		}
	}
	for name, entries := range map[string][]string{
		"a broken descriptor": {id + "/descriptor.json", "{", id + "/state.json", "{}"},
		"a broken state":      {id + "/descriptor.json", good, id + "/state.json", "{"},
	} {
		if meta, err := f.Import(bytes.NewReader(archiveOf(t, entries...)), ""); !errors.As(err, new(finding.Finding)) {
			t.Errorf("%s: %+v, %v", name, meta, err)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(f.Root, "agents")); err != nil || len(f.Index.All()) > 0 ||
		slices.ContainsFunc(entries, func(e os.DirEntry) bool { return e.IsDir() }) {
		t.Errorf("made are %v, %v", entries, err)
	}
	meta, err := f.Import(bytes.NewReader(archiveOf(t, id+"/descriptor.json", good, id+"/state.json", "{}",
		id+"/history.jsonl", "a damaged line\n")), "")
	if err != nil || meta.ID != id {
		t.Errorf("with a damaged line in its history: %+v, %v", meta, err)
	}
}

// What another machine needs to go on with an agent are the files of an archive, but the list
// of sessions, which is made of the history.
func TestWhatIsReplicated(t *testing.T) {
	blob := "blobs/" + strings.Repeat("0a", 32)
	for name, want := range map[string]bool{"state.json": true, "descriptor.json": true, "history.jsonl": true, "inbox.jsonl": true,
		"history/000001.jsonl": true, blob: true, "sessions.jsonl": false, "draft.json": false, "SYSTEM.md": false,
		"history/1.jsonl": false, blob + "0": false, "x/state.json": false, "": false} {
		if Replicated(name) != want {
			t.Errorf("%q: %v, want %v", name, !want, want)
		}
	}
}

// What was unpacked and cannot be read, or is no folder, is not moved into an agent.
func TestWhatCannotBeMovedIntoAnAgent(t *testing.T) {
	f := open(t)
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "none")
	must(t, os.WriteFile(filepath.Join(from, "history.jsonl"), nil, 0o600))
	if err := f.moveInto(filepath.Join(from, "none"), t.TempDir(), true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("from a folder that is not there: %v", err)
	}
	if err := f.moveInto(from, to, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into a folder that is not there: %v", err)
	}
	if err := f.moveInto(t.TempDir(), to, true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing, into a folder that is not there: %v", err)
	}
}

// A fork whose long outputs cannot be kept is not made.
func TestAForkWithoutItsLongOutputs(t *testing.T) {
	f := open(t)
	id := colleague(t, f, "Ops", record.State{})
	cut := record.Cut{Content: []byte("x"), Blobs: []string{says(t, f, id, "one", "hello")}}
	to := t.TempDir()
	must(t, os.WriteFile(filepath.Join(to, "blobs"), nil, 0o600))
	if err := f.fillFork(f.folder(id), to, cut); err == nil || disk.Exists(filepath.Join(to, "history.jsonl")) {
		t.Errorf("it cannot be kept: %v", err)
	}
}

// An agent without an id of its own, and one whose parent is not here, are found their place.
func TestWhoAnImportedAgentIs(t *testing.T) {
	const id = "abcdefghijklmnopqrstuvwx"
	for name, tt := range map[string]struct {
		descriptor, as string
		same           bool
		want           address.Descriptor
	}{
		"of a chat": {`{"type":"user","connector":"telegram","channelId":"c","userId":"1"}`, "", true,
			address.Descriptor{Type: address.User, Connector: "telegram", UserID: "1"}},
		"of a chat, by a name": {`{"type":"user","connector":"telegram","channelId":"c","userId":"1"}`, "me", true,
			address.Descriptor{Type: address.User, Connector: "telegram", UserID: "1", Name: "me"}},
		"a child without its parent": {`{"type":"subagent","id":"` + id +
			`","name":"c","parentAgentId":"abcdefghijklmnopqrstuvwz"}`, "", false,
			address.Descriptor{Type: address.User, Connector: "terminal", UserID: "ann", Name: "c"}},
	} {
		f := open(t)
		f.Make = serial(f)
		meta, err := f.Import(bytes.NewReader(archiveOf(t, id+"/descriptor.json", tt.descriptor, id+"/state.json", "{}")), tt.as)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		d := meta.Descriptor
		if (meta.ID == id) != tt.same || d.Type != tt.want.Type || d.Connector != tt.want.Connector || d.UserID != tt.want.UserID ||
			d.Name != tt.want.Name {
			t.Errorf("%s: it is %s, %+v", name, meta.ID, d)
		}
		if tt.want.Name != "" {
			continue
		}
		meta, err = f.Import(bytes.NewReader(archiveOf(t, id+"/descriptor.json", tt.descriptor, id+"/state.json", "{}")), "")
		if err != nil || meta.ID == id || meta.Descriptor.Connector != "terminal" || meta.Descriptor.Name != "import of "+id[:8] {
			t.Errorf("%s, once more: it is %s, %+v, %v", name, meta.ID, meta.Descriptor, err)
		}
	}
}

// serial makes agents, as the engine does: those of the terminal get a channel of their own.
func serial(f *Folders) func(address.Descriptor, []byte, func(string) error) (address.Meta, error) {
	return func(d address.Descriptor, state []byte, fill func(string) error) (address.Meta, error) {
		if d.Connector == "terminal" {
			d.ChannelID = f.Index.NextSerial()
		}
		return f.Index.CreateWith(d, state, fill)
	}
}

// A workspace that was moved is told from a place that a user chose, and an import brings
// the paths of the old one along.
func TestAnAgentThatWorksElsewhere(t *testing.T) {
	f := open(t)
	root, chosen, gone := filepath.Dir(f.Root), t.TempDir(), filepath.Join(t.TempDir(), "gone")
	const id = "abcdefghijklmnopqrstuvwx"
	copied := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(copied, workspace.Home, "agents", id), 0o700))
	for dir, want := range map[string]string{"": " false", root: " false", root + "/sub": " false", chosen: chosen + " false",
		gone:   gone + " true",
		copied: copied + " true", gone + "/.daycare/cron/x/files": gone + " true"} {
		from, sure := Elsewhere(workspace.At(root), id, address.Descriptor{}, permission.Set{WorkingDir: dir})
		if got := fmt.Sprint(from, " ", sure); got != want {
			t.Errorf("%q: %s, want %s", dir, got, want)
		}
	}
	if from, sure := Elsewhere(workspace.At(root), id, address.Descriptor{WorkspaceDir: "docs/"},
		permission.Set{WorkingDir: gone + "/docs"}); from != gone || !sure {
		t.Errorf("of one that works in a part of it: %s, %v", from, sure)
	}
	meta, err := f.Import(bytes.NewReader(archiveOf(t, id+"/descriptor.json", `{"type":"permanent","id":"`+id+`","name":"Ops"}`,
		id+"/state.json", `{"permissions":{"workingDir":"`+gone+`","readDirs":["`+gone+`/a","`+chosen+`"]}}`)), "")
	must(t, err)
	s, _, _, err := record.ReadState(f.folder(meta.ID))
	if err != nil || s.Permissions.WorkingDir != root || !slices.Contains(s.Permissions.ReadDirs, root+"/a") ||
		!slices.Contains(s.Permissions.ReadDirs, chosen) {
		t.Errorf("its rights are %+v, %v", s.Permissions, err)
	}
}
