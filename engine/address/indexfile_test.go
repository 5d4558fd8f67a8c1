package address

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/watch"
)

// A village is a folder of agents whose index file was written.
type village struct {
	*testing.T
	root string
	ids  []string
}

func newVillage(t *testing.T) *village {
	t.Helper()
	v := &village{T: t, root: t.TempDir()}
	for i := range fewest + 8 {
		id := fmt.Sprintf("a%023d", i)
		v.ids = append(v.ids, id)
		put(t, v.root, id, fmt.Sprintf(`{"type":"user","connector":"telegram","userId":"u","channelId":"%d"}`, i))
		if err := os.WriteFile(filepath.Join(v.root, "agents", id, "inbox.jsonl"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	v.age()
	x := v.start()
	if n := len(x.file.fresh); n != len(v.ids) {
		t.Fatalf("a first start reads %d of %d agents", n, len(v.ids))
	}
	for _, id := range v.ids {
		info, err := beneath.StampAt(v.path(id, "inbox.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		x.Prove(id, InboxProof, info, time.Now())
	}
	x.SaveKnown()
	x.Forget(idA) // nothing is held any more
	if _, err := os.Stat(filepath.Join(v.root, IndexFile)); err != nil && (runtime.GOOS != "linux" || watch.Remote(v.root) != "") {
		t.Skip("this system has no index file: ", err)
	} else if err != nil {
		t.Fatal(err)
	}

	return v
}

func (v *village) path(id, name string) string { return filepath.Join(v.root, "agents", id, name) }

// start opens the agents as the next start does.
func (v *village) start() *Index {
	v.Helper()
	x, _ := load(v.T, v.root)
	if err := x.Close(); err != nil {
		v.Fatal(err)
	}
	return x
}

// age waits until no file changed within the last tick.
func (v *village) age() {
	for end := time.Now().Add(2 * beneath.Tick); time.Now().Before(end); time.Sleep(beneath.Tick / 4) {
	}
}

// known is what a start finds, which must be what is found without an index file.
func (v *village) known() *Index {
	v.Helper()
	x := v.start()
	plain, _, err := Load(nil, v.root, slog.New(slog.DiscardHandler))
	if err != nil {
		v.Fatal(err)
	}
	if diff := cmp.Diff(plain.All(), x.All()); diff != "" {
		v.Errorf("(-from the files +with the index file)\n%s", diff)
	}
	return x
}

// The next start reads nothing that is as it was.
func TestAStartReadsOnlyWhatIsOtherThanItWas(t *testing.T) {
	v := newVillage(t)
	x := v.known()
	if len(x.file.fresh) != 0 {
		t.Errorf("%d agents were read again", len(x.file.fresh))
	}
	for _, id := range v.ids {
		info, err := beneath.StampAt(v.path(id, "inbox.jsonl"))
		if err != nil || !x.Proved(id, InboxProof, info) || x.Proved(id, HistoryProof, info) {
			t.Errorf("the inbox of %s: %v", id, err)
		}
	}

	before, err := os.Stat(filepath.Join(v.root, IndexFile))
	if err != nil {
		t.Fatal(err)
	}
	x.SaveKnown()
	if after, err := os.Stat(filepath.Join(v.root, IndexFile)); err != nil || !os.SameFile(before, after) {
		t.Errorf("it was written again although nothing was read: %v", err)
	}
}

// Whatever is done to a file while nothing runs is seen.
func TestTheIndexFileIsNotTrustedOverTheFiles(t *testing.T) {
	edited := `{"type":"user","connector":"telegram","userId":"u","channelId":"X"}` // as long as that of agent 0 to 9
	for what, do := range map[string]func(v *village) error{
		"a new agent": func(v *village) error {
			put(v.T, v.root, idA, `{"type":"permanent","id":"`+idA+`","name":"Ops"}`)
			return nil
		},
		"one that is gone": func(v *village) error { return os.RemoveAll(filepath.Join(v.root, "agents", v.ids[3])) },
		"an edit in place": func(v *village) error { return os.WriteFile(v.path(v.ids[0], descriptorFile), []byte(edited), 0o600) },
		"an edit in place of the same size and time": func(v *village) error {
			path := v.path(v.ids[0], descriptorFile)
			info, err := os.Stat(path)
			return errors.Join(err, os.WriteFile(path, []byte(edited), 0o600), os.Chtimes(path, time.Time{}, info.ModTime()))
		},
		"another file of the same size and time": func(v *village) error {
			path := v.path(v.ids[0], descriptorFile)
			info, err := os.Stat(path)
			return errors.Join(err, os.WriteFile(path+"~", []byte(edited), 0o600), os.Chtimes(path+"~", time.Time{}, info.ModTime()),
				os.Rename(path+"~", path))
		},
		"two files that changed places": func(v *village) error {
			a, b := v.path(v.ids[0], descriptorFile), v.path(v.ids[1], descriptorFile)
			return errors.Join(os.Rename(a, a+"~"), os.Rename(b, a), os.Rename(a+"~", b))
		},
		"two folders that changed places": func(v *village) error {
			a, b := filepath.Join(v.root, "agents", v.ids[0]), filepath.Join(v.root, "agents", v.ids[1])
			return errors.Join(os.Rename(a, a+"~"), os.Rename(b, a), os.Rename(a+"~", b))
		},
		"one that is broken":  func(v *village) error { return os.WriteFile(v.path(v.ids[0], descriptorFile), []byte("{"), 0o600) },
		"one that is missing": func(v *village) error { return os.Remove(v.path(v.ids[0], descriptorFile)) },
		"one that cannot be read": func(v *village) error {
			return errors.Join(os.Remove(v.path(v.ids[0], descriptorFile)), os.Mkdir(v.path(v.ids[0], descriptorFile), 0o700))
		},
		"one taken away, and back": func(v *village) error {
			dir := filepath.Join(v.root, "agents", v.ids[0])
			err := os.Rename(dir, filepath.Join(v.root, "away"))
			if v.known(); err == nil {
				err = os.Rename(filepath.Join(v.root, "away"), dir)
			}
			return err
		},
		"no handles": func(v *village) error { return os.Remove(filepath.Join(v.root, "agents", "handles.jsonl")) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			v := newVillage(t)
			if err := do(v); err != nil {
				t.Fatal(err)
			}
			v.known()
		})
	}
}

// An inbox that changed is read, whatever its size and time are.
func TestAProofHoldsForOneFileOnly(t *testing.T) {
	v := newVillage(t)
	path := v.path(v.ids[0], "inbox.jsonl")
	info, err := os.Stat(path)
	if err == nil {
		err = errors.Join(os.Chmod(path, 0o640), os.Chtimes(path, time.Time{}, info.ModTime()))
	}
	if err != nil {
		t.Fatal(err)
	}
	now, err := beneath.StampAt(path)
	if err != nil {
		t.Fatal(err)
	}
	x := v.start()
	if x.Proved(v.ids[0], InboxProof, now) {
		t.Error("it was touched, and is trusted")
	}
	x.Prove(v.ids[0], InboxProof, now, time.Unix(0, now.Changed))
	if x.Proved(v.ids[0], InboxProof, now) {
		t.Error("what was written this instant may be written again without another stamp, and is trusted")
	}
	x.Forget(v.ids[1])
	if info, err := beneath.StampAt(v.path(v.ids[1], "inbox.jsonl")); err != nil || x.Proved(v.ids[1], InboxProof, info) {
		t.Error("something is known of an agent that was forgotten", err)
	}
}

// What is wrong with a descriptor is told at each start, and a new one is not kept.
func TestWhatIsNotSoundIsReadAtEachStart(t *testing.T) {
	v := newVillage(t)
	odd := `{"type":"user","connector":"telegram","userId":"u","channelId":"0","colour":"red"}`
	put(t, v.root, v.ids[0], odd)
	v.age()
	for range 2 {
		x, found := load(t, v.root)
		if len(found) != 1 {
			t.Errorf("told: %v", found)
		}
		x.file.fresh = map[string]bool{}
		for _, id := range v.ids { // enough to write it
			x.file.fresh[id] = true
		}
		x.SaveKnown()
	}
	put(t, v.root, v.ids[1], `{"type":"user","connector":"telegram","userId":"u","channelId":"one"}`)
	x := v.known()
	if s := x.scan.seen[v.ids[1]]; s.sound && time.Since(time.Unix(0, s.Changed)) < beneath.Tick {
		t.Error("a file that was just written is trusted")
	}
}

// A descriptor that was read within a tick of its save is read again: a second save may have left
// the same stamp.
func TestTwoSavesWithinATick(t *testing.T) {
	v := newVillage(t)
	x := v.start()
	put(t, v.root, v.ids[0], `{"type":"user","connector":"telegram","userId":"u","channelId":"other"}`)
	info, err := os.Stat(v.path(v.ids[0], descriptorFile))
	if err != nil {
		t.Fatal(err)
	}
	x.scan.seen[v.ids[0]] = sight{Stamp: beneath.StampOf(info)} // as if the first of two had looked so
	diff, _, err := x.Rescan()
	if m, _ := x.Get(v.ids[0]); err != nil || len(diff.Changed) != 1 || m.Descriptor.ChannelID != "other" {
		t.Errorf("changed: %q, the agent is of channel %s, %v", diff.Changed, m.Descriptor.ChannelID, err)
	}
}

// A file that was cut or damaged, or is of another start of the machine, another program or
// another folder, is as none.
func TestAnIndexFileThatDoesNotCount(t *testing.T) {
	v := newVillage(t)
	path := filepath.Join(v.root, IndexFile)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	read := func(data []byte) bool {
		f := newIndexFile(v.root)
		f.origin = origin(filepath.Join(v.root, "agents"))
		return f.read(data)
	}
	if !read(data) {
		t.Fatal("the file as it was written does not count")
	}
	for i := range data {
		damaged := bytes.Clone(data)
		damaged[i] ^= 0x20
		if read(data[:i]) || read(damaged) {
			t.Fatalf("cut or damaged at %d of %d it counts", i, len(data))
		}
	}
	body := data[:len(data)-crc32.Size]
	for i := range body { // as if it had been written so
		if read(binary.LittleEndian.AppendUint32(slices.Clip(body[:i]), crc32.Checksum(body[:i], disk.Castagnoli()))) {
			t.Fatalf("of %d of %d bytes it counts", i, len(body))
		}
	}
	of := func(origin string) []byte {
		x := v.start()
		x.file.origin = origin
		return encode(x)
	}
	for what, other := range map[string][]byte{"nothing": nil, "of another origin": of("elsewhere"), "a text": []byte(indexFormat)} {
		if err := os.WriteFile(path, other, 0o600); err != nil {
			t.Fatal(err)
		}
		if x := v.known(); len(x.file.fresh) != len(v.ids) {
			t.Errorf("%s: %d of %d were read", what, len(x.file.fresh), len(v.ids))
		}
	}
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	v.known().SaveKnown() // which fails, and is logged
}

func FuzzIndexFile(f *testing.F) {
	x, _, err := Load(disk.NewVolume(f.TempDir()), f.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		f.Fatal(err)
	}
	x.file.origin = "here"
	x.known.put(idA, Descriptor{Type: Permanent, ID: idA, Name: "Ops", Spawned: true}, "0/")
	f.Add(encode(x))
	f.Add([]byte(indexFormat))
	f.Fuzz(func(t *testing.T, data []byte) {
		if n := len(data) - crc32.Size; n >= 0 { // else nothing else would be looked at
			data = binary.LittleEndian.AppendUint32(slices.Clip(data[:n]), crc32.Checksum(data[:n], disk.Castagnoli()))
		}
		file := newIndexFile(t.TempDir())
		file.origin = "here"
		if !file.read(data) {
			return
		}
		for _, known := range file.agents {
			if d, ok := known.text.unpack(); ok {
				if again, ok := pack(d).unpack(); !ok || again != d {
					t.Errorf("%+v becomes %+v", d, again)
				}
			}
		}
	})
}
