package address

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"

	"daycare/engine/crash/crashtest"
	"daycare/engine/disk"
	"daycare/engine/finding"
)

func TestAFolderThatCannotBeFinishedLeavesNothing(t *testing.T) {
	root := t.TempDir()
	x, _ := load(t, root)
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}

	restore := func() error { return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before) }
	defer restore()

	// The descriptors run out when both files of the agent are there.
	runOut := func(string) error {
		none := before
		none.Cur = 3
		return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none)
	}
	_, err := x.CreateWith(chat("1"), []byte("{}\n"), runOut)
	if err := restore(); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, syscall.EMFILE) {
		t.Errorf("created without descriptors: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(root, "agents", newPrefix+"*")); len(left) > 0 || err != nil {
		t.Errorf("left: %v, %v", left, err)
	}

	create(t, x, chat("1"))
}

// With too few descriptors agents are loaded, made and removed whole, or not at all.
func TestAgentsWithFewDescriptors(t *testing.T) {
	loaded := func(t *testing.T, root string, want int) error {
		x, found, err := Load(nil, root, slog.New(slog.DiscardHandler))
		if err == nil && (len(x.All()) != want || len(found) > 0) {
			err = fmt.Errorf("there are %d agents, %v", len(x.All()), found)
		}
		return err
	}
	begin := func(t *testing.T) (root string, x *Index) {
		root = t.TempDir()
		x, _ = load(t, root)
		for _, name := range []string{"1", "2"} {
			create(t, x, chat(name))
		}
		return root, x
	}
	for what, do := range map[string]func(x *Index, root string) (want int, err error){
		"load": func(_ *Index, root string) (int, error) {
			x, found, err := Load(disk.NewVolume(root), root, slog.New(slog.DiscardHandler))
			if err == nil {
				err = errors.Join(finding.Join(found), x.Close())
			}
			if err == nil && len(x.All()) != 2 {
				err = fmt.Errorf("%d agents and no error", len(x.All()))
			}
			return 2, err
		},
		"create": func(x *Index, _ string) (int, error) {
			_, err := x.Create(chat("3"), []byte("{}\n"))
			return 3, err
		},
		"remove": func(x *Index, _ string) (int, error) {
			_, err := x.Remove(x.IDs()[0])
			return 1, err
		},
	} {
		t.Run(what, func(t *testing.T) {
			crashtest.FewDescriptors(t, func(t *testing.T) (op, holds func() error) {
				root, x := begin(t)
				want := 0
				op = func() (err error) {
					want, err = do(x, root)
					return err
				}
				return op, func() error { return loaded(t, root, want) }
			})
		})
	}
}
