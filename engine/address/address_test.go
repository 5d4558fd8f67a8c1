package address

import (
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nrednav/cuid2"

	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/message"
)

var update = flag.Bool("update", false, "write the golden files anew")

const (
	idA = "tz4a98xxat96iws9zmbrgj3a"
	idB = "bz4a98xxat96iws9zmbrgj3b"
	idC = "tz4a00xxat96iws9zmbrgj3c"
)

func load(t testing.TB, root string) (*Index, []finding.Finding) {
	t.Helper()
	x, found, err := Load(disk.NewVolume(root), root, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	t.Cleanup(func() { x.Close() })
	return x, found
}

func create(t testing.TB, x *Index, d Descriptor) Meta {
	t.Helper()
	m, err := x.Create(d, []byte("{}\n"))
	if err != nil {
		t.Fatalf("create: %v", err)
	}
	return m
}

func chat(channel string) Descriptor {
	return Descriptor{Type: User, Connector: "telegram", ChannelID: channel, UserID: "u"}
}

// put makes an agent's folder by hand.
func put(t testing.TB, root, id, descriptor string) {
	t.Helper()
	dir := filepath.Join(root, "agents", id)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, descriptorFile), []byte(descriptor), 0o600); err != nil {
		t.Fatal(err)
	}
}

func handlesOf(x *Index) map[string]string {
	all := map[string]string{}
	for _, m := range x.All() {
		all[m.ID] = m.Handle
	}
	return all
}

func places(found []finding.Finding) []string {
	var all []string
	for _, f := range found {
		all = append(all, fmt.Sprintf("%s %d:%d", f.ID, f.Line, f.Column))
	}
	return all
}

func TestGoldenDescriptors(t *testing.T) {
	for name, d := range map[string]Descriptor{
		"user":      {Type: User, Connector: "telegram", UserID: "5550001", ChannelID: "5550001", Name: "Ada & co"},
		"cron":      {Type: Cron, ID: idA},
		"heartbeat": {Type: Heartbeat},
		"subagent":  {Type: Subagent, ID: idA, ParentAgentID: idB, Name: "log-reader", Definition: "CodeSearch", CallID: "c1"},
		"permanent": {Type: Permanent, ID: idA, Name: "Ops", Description: "keeps things running", SystemPrompt: "You are <ops>.", WorkspaceDir: "ops"},
	} {
		path := filepath.Join("testdata", name+".golden.json")
		got, err := Encode(d)
		if err != nil {
			t.Fatal(err)
		}
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
			t.Errorf("%s (-file +now):\n%s", name, diff)
		}
		if back, found := Decode(path, want); back != d || len(found) > 0 {
			t.Errorf("%s read back: %+v, %v", name, back, found)
		}
	}
}

func TestDecodeFindings(t *testing.T) {
	tests := []struct {
		name, json string
		want       []string
	}{
		{"fine", `{"type":"heartbeat"}`, nil},
		{"syntax", "{\n \"type\": user}", []string{"descriptor-syntax 2:10"}},
		{"cut", `{"type": "us`, []string{"descriptor-syntax 1:12"}},
		{"empty", ``, []string{"descriptor-syntax 1:1"}},
		{"list", `[]`, []string{"descriptor-syntax 1:1"}},
		{"two", `{"type":"heartbeat"} {}`, []string{"descriptor-syntax 1:22"}},
		{"type", "{\n  \"type\": \"robot\"}", []string{"descriptor-invalid 2:11"}},
		{"no type", `{}`, []string{"descriptor-invalid 1:1"}},
		{"missing", `{"type":"user","connector":"telegram"}`, []string{"descriptor-invalid 1:1"}},
		{"missing two", `{"type":"user"}`, []string{"descriptor-invalid 1:1", "descriptor-invalid 1:1"}},
		{"wrong type", "{\"type\":\"user\",\n \"connector\": \"t\",\n \"channelId\": 7}", []string{"descriptor-wrong-type 3:15"}},
		{"unknown", "{\"type\":\"heartbeat\",\n \"colour\": {\"a\":[1]}}", []string{"descriptor-unknown-key 2:12"}},
		{"bad id", `{"type":"cron","id":"../x"}`, []string{"descriptor-invalid 1:21"}},
		{"bad parent", `{"type":"subagent","name":"n","id":"` + idA + `","parentAgentId":"P"}`, []string{"descriptor-invalid 1:79"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, found := Decode("d", []byte(tt.json))
			if diff := cmp.Diff(tt.want, places(found)); diff != "" {
				t.Errorf("(-want +got):\n%s\n%v", diff, found)
			}
		})
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"user","connector":"t","channelId":"c"}`))
	f.Add([]byte(`{"type":"cron","id":7,"x":{}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, found := Decode("d", data)
		if finding.Join(found) != nil {
			return
		}
		again, err := Encode(d)
		if err != nil {
			t.Fatalf("valid, but cannot be written: %v", err)
		}
		if back, found := Decode("d", again); back != d || len(found) > 0 {
			t.Errorf("%+v became %+v, %v", d, back, found)
		}
	})
}

func TestCreateAndLoadAgain(t *testing.T) {
	root := t.TempDir()
	x, found := load(t, root)
	if len(found) > 0 || len(x.All()) > 0 {
		t.Fatalf("empty: %v", found)
	}
	first := create(t, x, chat("1"))
	again := create(t, x, chat("1"))
	if first != again || first.Handle != "0/" || first.Name != "telegram:1" || !ValidID(first.ID) {
		t.Errorf("first %+v, again %+v", first, again)
	}
	other := chat("1")
	other.UserID, other.Name = "v", "Ada"
	named := create(t, x, other)
	if named.Handle != "1/" || named.Name != "Ada" {
		t.Errorf("named %+v", named)
	}
	child := create(t, x, Descriptor{Type: Subagent, ParentAgentID: named.ID, Name: "reader"})
	grandchild := create(t, x, Descriptor{Type: Subagent, ID: idA, ParentAgentID: child.ID, Name: "deep"})
	if child.Handle != "1/0" || grandchild.Handle != "1/0/0" || child.Descriptor.ID != child.ID {
		t.Errorf("child %+v, grandchild %+v", child, grandchild)
	}
	cron := create(t, x, Descriptor{Type: Cron, ID: idB})
	beat := create(t, x, Descriptor{Type: Heartbeat})
	if cron.ID != idB || beat != create(t, x, Descriptor{Type: Heartbeat}) {
		t.Errorf("cron %+v, heartbeat %+v", cron, beat)
	}
	if state, err := os.ReadFile(filepath.Join(root, "agents", first.ID, "state.json")); string(state) != "{}\n" || err != nil {
		t.Errorf("state %q, %v", state, err)
	}

	back, found := load(t, root)
	if diff := cmp.Diff(x.All(), back.All()); diff != "" || len(found) > 0 {
		t.Errorf("loaded again (%v):\n%s", found, diff)
	}
	if id, ok := back.Lookup(chat("1")); id != first.ID || !ok {
		t.Errorf("lookup: %s, %v", id, ok)
	}
	if _, ok := back.Lookup(Descriptor{Type: Permanent}); ok {
		t.Error("a type without an address was looked up")
	}
	if got := back.NextSerial(); got != "4" {
		t.Errorf("next serial %s", got)
	}
	for _, bad := range []Descriptor{{Type: User}, {Type: "x"}, {Type: Cron}, {Type: Cron, ID: "../x"}} {
		if m, err := back.Create(bad, nil); err == nil {
			t.Errorf("%+v became %+v", bad, m)
		}
	}
}

func TestAllInNaturalOrder(t *testing.T) {
	x, _ := load(t, t.TempDir())
	var parents []Meta
	for i := range 12 {
		parents = append(parents, create(t, x, chat(fmt.Sprint(i))))
	}
	for _, p := range []int{2, 10, 2} {
		create(t, x, Descriptor{Type: Subagent, ParentAgentID: parents[p].ID, Name: "n"})
	}
	var got []string
	for _, m := range x.All() {
		got = append(got, m.Handle)
	}
	if want := "0/ 1/ 2/ 2/0 2/1 3/ 4/ 5/ 6/ 7/ 8/ 9/ 10/ 10/0 11/"; strings.Join(got, " ") != want {
		t.Errorf("%v", got)
	}
}

func TestResolve(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	a := create(t, x, Descriptor{Type: Permanent, ID: idA, Name: "Ops"})
	create(t, x, Descriptor{Type: Permanent, ID: idB, Name: "twin"})
	create(t, x, Descriptor{Type: Permanent, ID: idC, Name: "twin"})
	create(t, x, Descriptor{Type: Subagent, ParentAgentID: a.ID, Name: "1"})
	for ref, want := range map[string]string{idA: idA, "0": idA, "0/": idA, "1/": idB, "Ops": idA, "bz4a": idB, "tz4a98": idA} {
		if got, err := x.Resolve(ref); got != want || err != nil {
			t.Errorf("%q: %s, %v; want %s", ref, got, err, want)
		}
	}
	if got, err := x.Resolve("0/0"); err != nil || got == idA {
		t.Errorf("child: %s, %v", got, err)
	}
	for _, ref := range []string{"", "/", "tz4", "ops", "9", "0/7", "-1", "telegram:1"} {
		if got, err := x.Resolve(ref); !errors.Is(err, message.ErrUnknownAgent) {
			t.Errorf("%q: %s, %v", ref, got, err)
		}
	}
	for ref, want := range map[string][]string{"twin": {"1/ " + idB, "2/ " + idC}, "tz4a": {"0/ " + idA, "2/ " + idC}} {
		_, err := x.Resolve(ref)
		var ambiguous *Ambiguous
		if !errors.As(err, &ambiguous) {
			t.Fatalf("%q: %v", ref, err)
		}
		if diff := cmp.Diff(&Ambiguous{ref, want}, ambiguous); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFirstMessagesAtOnceMakeOneAgent(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	var mu sync.Mutex
	made := map[string]map[string]bool{}
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			d := chat(fmt.Sprint(i % 5))
			if i%6 == 5 {
				d = Descriptor{Type: Subagent, ID: idA, ParentAgentID: idB, Name: "n"}
			}
			m, err := x.Create(d, []byte("{}"))
			if err != nil {
				t.Error(err)
			}
			x.All()
			if _, _, err := x.Rescan(); err != nil {
				t.Error(err)
			}
			if _, ok := x.Get(m.ID); !ok {
				t.Errorf("agent %s is not in the index", m.ID)
			}
			mu.Lock()
			defer mu.Unlock()
			k := d.key()
			if made[k] == nil {
				made[k] = map[string]bool{}
			}
			made[k][m.ID] = true
		})
	}
	wg.Wait()
	for k, agents := range made {
		if len(agents) != 1 {
			t.Errorf("%q has %d agents", k, len(agents))
		}
	}
	again, found := load(t, root)
	if diff := cmp.Diff(x.All(), again.All()); diff != "" || len(found) > 0 {
		t.Errorf("loaded again: %v\n%s", found, diff)
	}
	seen := map[string]bool{}
	for _, h := range handlesOf(x) {
		if seen[h] {
			t.Errorf("handle %s twice", h)
		}
		seen[h] = true
	}
}

func TestRemovedSerialsAreNotUsedAgain(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	create(t, x, chat("0"))
	gone := create(t, x, chat("1"))
	trash, err := x.Remove(gone.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := x.Get(gone.ID); ok || !disk.Exists(filepath.Join(trash, descriptorFile)) || filepath.Dir(trash) != filepath.Join(root, "trash") {
		t.Errorf("removed to %s", trash)
	}
	if _, err := x.Remove(gone.ID); !errors.Is(err, message.ErrUnknownAgent) {
		t.Errorf("removed twice: %v", err)
	}
	again, _ := load(t, root)
	if m := create(t, again, chat("1")); m.Handle != "2/" || m.ID == gone.ID {
		t.Errorf("made again as %+v", m)
	}
	// What comes back from the trash is the same agent; its address is taken now.
	if err := os.Rename(trash, filepath.Join(root, "agents", gone.ID)); err != nil {
		t.Fatal(err)
	}
	_, found, err := again.Rescan()
	if err != nil || len(found) != 1 || found[0].ID != "descriptor-duplicate" {
		t.Errorf("found %v, %v", found, err)
	}
	put(t, root, gone.ID, `{"type":"user","connector":"telegram","channelId":"7"}`)
	diff, _, err := again.Rescan()
	if m, _ := again.Get(gone.ID); m.Handle != "1/" || err != nil || len(diff.Added) != 1 {
		t.Errorf("back from the trash: %+v, %+v, %v", m, diff, err)
	}
}

func TestRescan(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	m := create(t, x, chat("0"))
	step := func(want Diff, ids ...string) {
		t.Helper()
		diff, found, err := x.Rescan()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, diff); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
		var got []string
		for _, f := range found {
			got = append(got, f.ID)
		}
		if d := cmp.Diff(ids, got); d != "" {
			t.Errorf("findings:\n%s", d)
		}
	}
	step(Diff{})
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"Ops"}`)
	put(t, root, "not-an-id", `{}`)
	step(Diff{Added: []string{idA}})
	put(t, root, idA, `{"type":"permanent","id":"`+idA+`","name":"Operations"}`)
	step(Diff{Changed: []string{idA}})
	put(t, root, idA, `{"type":"permanent","id"`)
	step(Diff{}, "descriptor-syntax")
	step(Diff{}) // told once
	if got, _ := x.Get(idA); got.Name != "Operations" || got.Handle != "1/" {
		t.Errorf("the last good version is not in force: %+v", got)
	}
	put(t, root, idB, `{"type":"cron","id":"`+idC+`"}`)
	put(t, root, idC, `{"type":"user","connector":"telegram","channelId":"0","userId":"u"}`)
	if err := os.MkdirAll(filepath.Join(root, "agents", cuid2.Generate()), 0o700); err != nil {
		t.Fatal(err)
	}
	_, found, err := x.Rescan()
	seen := map[string]int{}
	for _, f := range found {
		seen[f.ID]++
	}
	if diff := cmp.Diff(map[string]int{"descriptor-id": 1, "descriptor-duplicate": 1, "descriptor-missing": 1}, seen); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := os.RemoveAll(filepath.Join(root, "agents", m.ID)); err != nil {
		t.Fatal(err)
	}
	step(Diff{Removed: []string{m.ID}})
	step(Diff{Added: []string{idC}}) // its address is free now
}

func TestParentsGetTheirHandlesFirst(t *testing.T) {
	root := t.TempDir()
	put(t, root, idB, `{"type":"subagent","id":"`+idB+`","name":"child","parentAgentId":"`+idC+`"}`)
	put(t, root, idA, `{"type":"subagent","id":"`+idA+`","name":"grandchild","parentAgentId":"`+idB+`"}`)
	put(t, root, idC, `{"type":"permanent","id":"`+idC+`","name":"p"}`)
	if err := os.Chtimes(filepath.Join(root, "agents", idA, descriptorFile), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	x, _ := load(t, root)
	if diff := cmp.Diff(map[string]string{idC: "0/", idB: "0/0", idA: "0/0/0"}, handlesOf(x)); diff != "" {
		t.Error(diff)
	}
}

func TestCrashLeftovers(t *testing.T) {
	root := t.TempDir()
	put(t, root, newPrefix+idA, `{"type":"cr`)
	lines := `{"handle":"0/","id":"` + idA + `","at":"2026-11-20T17:22:00.000Z"}` + "\n" + `{"handle":"1/","id":"bz`
	if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, found, err := Load(nil, root, slog.New(slog.DiscardHandler))
	if err != nil || len(reader.All()) != 0 || len(found) != 1 {
		t.Errorf("looking only: %v, %v", found, err)
	}
	if _, err := reader.Create(chat("0"), nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("create: %v", err)
	}
	if !disk.Exists(filepath.Join(root, "agents", newPrefix+idA)) {
		t.Error("looking only removed something")
	}
	x, found := load(t, root)
	if disk.Exists(filepath.Join(root, "agents", newPrefix+idA)) || len(found) > 0 {
		t.Errorf("leftover still there; %v", found)
	}
	// The agent whose making was cut gets the handle that it was given then.
	if m := create(t, x, chat("0")); m.Handle != "1/" {
		t.Errorf("another agent: %+v", m)
	}
	if m := create(t, x, Descriptor{Type: Cron, ID: idA}); m.Handle != "0/" {
		t.Errorf("the agent itself: %+v", m)
	}
}

func TestHandlesEditedByHand(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "agents", "handles.jsonl")
	x, _ := load(t, root)
	a, b := create(t, x, chat("0")), create(t, x, chat("1"))
	edit := func(change func(string) string) {
		t.Helper()
		data, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path+"~", []byte(change(string(data))), 0o600)
		}
		if err == nil {
			err = os.Rename(path+"~", path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	edit(func(s string) string { return `{"handle":"2/","id":"` + idC + `"}` + "\n" }) // two lines taken out, one put in
	if m := create(t, x, chat("2")); m.Handle != "3/" {
		t.Errorf("after an edit: %+v", m)
	}
	edit(func(s string) string {
		return s + "no JSON\n" + `{"handle":"0/","id":"` + idB + `"}` + "\n" + `{"handle":"7","id":"` + idA + `"}`
	})
	if m := create(t, x, chat("3")); m.Handle != "8/" {
		t.Errorf("after another edit: %+v", m)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	create(t, x, chat("4"))
	again, found := load(t, root)
	want := map[string]string{a.ID: "0/", b.ID: "1/"}
	got := handlesOf(again)
	for id, h := range want {
		if got[id] != h {
			t.Errorf("%s has %s, want %s (%v)", id, got[id], h, found)
		}
	}
	if diff := cmp.Diff(handlesOf(x), got); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkLoad10000(b *testing.B) {
	root := b.TempDir()
	var handles []byte
	for i := range 10_000 {
		id := cuid2.Generate()
		put(b, root, id, fmt.Sprintf(`{ "type": "user", "connector": "telegram", "userId": "%d", "channelId": "%d" }`, i, i))
		handles = fmt.Appendf(handles, `{"handle":"%d/","id":"%s","at":"2026-11-20T17:22:00.000Z"}`+"\n", i, id)
	}
	if err := os.WriteFile(filepath.Join(root, "agents", "handles.jsonl"), handles, 0o600); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		x, found := load(b, root)
		if len(found) > 0 || len(x.All()) != 10_000 {
			b.Fatal(found)
		}
		x.Close()
	}
}

func BenchmarkCreate(b *testing.B) {
	x, _ := load(b, b.TempDir())
	for i := 0; b.Loop(); i++ {
		create(b, x, chat(fmt.Sprint(i)))
	}
}
