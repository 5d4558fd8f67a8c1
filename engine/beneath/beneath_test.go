package beneath

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

const secret = "TOP-SECRET"

// bad are what may be in the place of a file that is read, and what is said of it.
func bad(t *testing.T, outside string) map[string]struct {
	make func(path string) error
	want error
} {
	return map[string]struct {
		make func(path string) error
		want error
	}{
		"link out":         {func(p string) error { return os.Symlink(outside, p) }, ErrLink},
		"link inside":      {func(p string) error { return os.Symlink("good", p) }, ErrLink},
		"link to nothing":  {func(p string) error { return os.Symlink("none", p) }, ErrLink},
		"link to a device": {func(p string) error { return os.Symlink("/dev/zero", p) }, ErrLink},
		"pipe":             {func(p string) error { return syscall.Mkfifo(p, 0o600) }, ErrKind},
		"socket": {func(p string) error {
			l, err := net.Listen("unix", p)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		}, ErrKind},
		"folder":    {func(p string) error { return os.Mkdir(p, 0o700) }, ErrKind},
		"hard link": {func(p string) error { return os.Link(outside, p) }, ErrNames},
		"nothing":   {func(string) error { return nil }, fs.ErrNotExist},
		"large":     {func(p string) error { return os.WriteFile(p, make([]byte, 101), 0o600) }, ErrTooLarge},
		"device": {func(p string) error {
			if os.Getuid() != 0 {
				return os.Symlink("/dev/zero", p)
			}
			return syscall.Mknod(p, syscall.S_IFCHR|0o666, 1<<8|5)
		}, nil},
	}
}

func TestOnlyPlainFilesAreRead(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "secret")
	put(t, outside, secret)
	for name, tt := range bad(t, outside) {
		t.Run(name, func(t *testing.T) {
			root, err := os.MkdirTemp(top, "")
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(root, "good"), "text")
			if err := tt.make(filepath.Join(root, "f")); err != nil {
				t.Fatal(err)
			}

			began := time.Now()
			data, err := ReadFile(root, "f", 100)
			if err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%q, %v; want %v", data, err, tt.want)
			}
			if took := time.Since(began); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
		})
	}
}

func TestLinksOnTheWayAreNotFollowed(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "root")
	for _, path := range []string{"root/a/b/f", "out/b/f", "out/f"} {
		put(t, filepath.Join(top, path), path)
	}

	for link, to := range map[string]string{"l": "../out", "in": "a", "a/m": "../../out"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}

	for path, want := range map[string]string{"a/b/f": "root/a/b/f", "a/../a/b/f": "root/a/b/f", "l/f": "",
		"in/b/f": "", "a/m/f": "", "../out/f": "", "/etc/passwd": "", "": "", "..": "", "a/b/f/x": ""} {
		if data, err := ReadFile(root, path, 100); string(data) != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", path, data, err)
		}
	}

	if sub, err := Dir(root, "a/b"); err != nil {
		t.Error(err)
	} else {
		sub.Close()
	}
	if _, err := Root(filepath.Join(root, "a/b/f")); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file as root: %v", err)
	}
}

// Someone puts links, pipes and other folders in the place of the file and of its folder, as
// fast as they can. DAYCARE_LONG=1 makes it a minute.
func TestReadWhileSwapped(t *testing.T) {
	runFor := 500 * time.Millisecond
	if os.Getenv("DAYCARE_LONG") != "" {
		runFor = time.Minute
	}
	top := t.TempDir()
	root, out := filepath.Join(top, "root"), filepath.Join(top, "out")
	put(t, out+"/f", secret)
	put(t, root+"/d/f", "harmless")
	if err := errors.Join(os.Symlink(out, root+"/l"), os.Symlink(out+"/f", root+"/fl"), syscall.Mkfifo(root+"/p", 0o600)); err != nil {
		t.Fatal(err)
	}

	var stop atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		for !stop.Load() {
			for _, pair := range [][2]string{{"d", "l"}, {"d/f", "fl"}, {"d/f", "p"}} {
				a, b := filepath.Join(root, pair[0]), filepath.Join(root, pair[1])
				os.Rename(a, a+"2")
				os.Rename(b, a)
				os.Rename(a, b)
				os.Rename(a+"2", a)
			}
		}
	})
	defer wg.Wait()
	defer stop.Store(true)
	tries, read, wins := 0, 0, 0
	for end := time.Now().Add(runFor); time.Now().Before(end); tries++ {
		data, err := ReadFile(root, "d/f", 100)
		if string(data) == secret {
			wins++
		}
		if err == nil {
			read++
		}
	}

	t.Logf("%d tries: %d read, %d wins", tries, read, wins)
	if wins > 0 {
		t.Errorf("%d wins in %d tries", wins, tries)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// In .daycare a link is its owner's; anything but a file is an error at once.
func TestOwnFilesNeverBlock(t *testing.T) {
	top := t.TempDir()
	outside := filepath.Join(top, "outside")
	put(t, outside, "theirs")
	for name, tt := range bad(t, outside) {
		t.Run(name, func(t *testing.T) {
			root, err := os.MkdirTemp(top, "")
			if err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(root, "good"), "theirs")
			path := filepath.Join(root, "f")
			if err := tt.make(path); err != nil {
				t.Fatal(err)
			}

			data, _, err := Own(path, 100)
			if good := name == "link out" || name == "link inside" || name == "hard link"; good != (err == nil) ||
				good && string(data) != "theirs" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}

// What is missing of daycare's own is told apart from what cannot be read.
func TestOwnThatIsMissing(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := Own(filepath.Join(dir, "none"), 10); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, _, err := Own(dir, 10); !errors.Is(err, ErrKind) {
		t.Error(err)
	}
}
