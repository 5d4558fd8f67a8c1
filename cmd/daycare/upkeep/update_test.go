package upkeep

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/blake2b"

	"daycare/cmd/daycare/term"
	"daycare/engine/tarball"
)

// A maker signs releases.
type maker struct {
	id      string
	private ed25519.PrivateKey
}

func newMaker(t *testing.T, id string) maker {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return maker{id, private}
}

// public is the key as minisign writes it.
func (m maker) public() string {
	raw := append([]byte("Ed"+m.id), m.private.Public().(ed25519.PublicKey)...)
	return "untrusted comment: minisign public key\n" + base64.StdEncoding.EncodeToString(raw) + "\n"
}

// sign is a signature as minisign writes it; kind is ED (of the hash) or Ed.
func (m maker) sign(kind string, content []byte) []byte {
	if kind == "ED" {
		sum := blake2b.Sum512(content)
		content = sum[:]
	}
	sig := ed25519.Sign(m.private, content)
	const comment = "timestamp:1\tfile:SHA256SUMS"
	global := ed25519.Sign(m.private, append(bytes.Clone(sig), comment...))
	encode := base64.StdEncoding.EncodeToString

	return []byte("untrusted comment: x\n" + encode(append([]byte(kind+m.id), sig...)) + "\ntrusted comment: " + comment + "\n" +
		encode(global) + "\n")
}

// publish makes the folder of a release. says is the version that its program tells.
func (m maker) publish(t *testing.T, version, says string) (dir, archive string) {
	t.Helper()
	dir = t.TempDir()
	name := "daycare-" + version + "-" + goruntime.GOOS + "-" + goruntime.GOARCH
	program := "#!/bin/sh\necho '{\"version\":\"" + says + "\"}'\n"
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tarball.NewWriter(zip)
	err := w.Add(tarball.Entry{Name: name + "/daycare", Mode: 0o755, Size: int64(len(program))}, strings.NewReader(program))
	if err = errors.Join(err, w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}

	sums := fmt.Appendf(nil, "%x  %s.tar.gz\n%064d  daycare-9.9.9-plan9-mips.tar.gz\n", sha256.Sum256(b.Bytes()), name, 0)
	archive = filepath.Join(dir, name+".tar.gz")
	put(t, archive, b.Bytes())
	put(t, filepath.Join(dir, "SHA256SUMS"), sums)
	put(t, filepath.Join(dir, "SHA256SUMS.minisig"), m.sign("ED", sums))
	return dir, archive
}

func put(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// run updates a program of version 1.0.0, and returns what is in its folder then.
func run(t *testing.T, change func(u *updating)) (files map[string]string, said string, err error) {
	t.Helper()
	dir := t.TempDir()
	program := filepath.Join(dir, "daycare")
	put(t, program, []byte("old program"))
	var out bytes.Buffer
	app := &term.App{Streams: term.Streams{Out: &out, Err: &out, In: strings.NewReader("")}, Workspace: dir}
	u := updating{app: app, ours: "1.0.0", program: program, yes: true}
	change(&u)
	err = u.run(t.Context())
	files = map[string]string{}
	entries, rerr := os.ReadDir(dir)
	if rerr != nil {
		t.Fatal(rerr)
	}

	for _, e := range entries {
		data, rerr := os.ReadFile(filepath.Join(dir, e.Name()))
		if rerr != nil {
			t.Fatal(rerr)
		}
		files[e.Name()] = string(data)
	}

	return files, out.String(), err
}

func TestUpdateFromFolderAndURL(t *testing.T) {
	m := newMaker(t, "12345678")
	dir, archive := m.publish(t, "1.1.0", "1.1.0")
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer server.Close()

	for _, from := range []string{dir, archive, server.URL + "/", server.URL + "/" + filepath.Base(archive)} {
		files, said, err := run(t, func(u *updating) {
			u.from = from
			if err := u.useKey(m.public()); err != nil {
				t.Fatal(err)
			}
		})
		if err != nil || !strings.Contains(files["daycare"], "1.1.0") || files["daycare.old"] != "old program" || len(files) != 2 {
			t.Errorf("from %s: %q, %v", from, files, err)
		}
		if !strings.Contains(said, "updated ") || !strings.Contains(said, "1.0.0 -> 1.1.0") {
			t.Errorf("it says %q", said)
		}
	}
}

// An update that ends before the new program is in its place leaves the old ones, and the next one works.
func TestUpdateThatIsInterrupted(t *testing.T) {
	dir := t.TempDir()
	program, fresh := filepath.Join(dir, "daycare"), filepath.Join(dir, ".daycare-new-1")
	put(t, program+".old", []byte("first"))
	put(t, fresh, []byte("third"))
	if _, err := swap(fresh, program); err == nil {
		t.Error("a program that is not there was kept")
	}
	if old, err := os.ReadFile(program + ".old"); string(old) != "first" {
		t.Errorf("the program before is %q (%v), want it to stay", old, err)
	}

	put(t, program, []byte("second"))
	if err := os.Remove(fresh); err != nil {
		t.Fatal(err)
	}
	if _, err := swap(fresh, program); err == nil {
		t.Error("a program that is not there is in the place of the old one")
	}
	for range 2 { // the program is kept already
		put(t, fresh, []byte("third"))
		if _, err := swap(fresh, program); err != nil {
			t.Fatal(err)
		}
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		hidden, _ := filepath.Glob(filepath.Join(dir, ".*"))
		old, rerr := os.ReadFile(program + ".old")
		if string(old) != "second" || len(left) != 2 || len(hidden) > 0 || err != nil || rerr != nil {
			t.Errorf("%q and %q; the old program is %q", left, hidden, old)
		}
		if err := errors.Join(os.Remove(program), os.Link(program+".old", program)); err != nil {
			t.Fatal(err)
		}
	}
}

// An update removes what earlier ones that were killed have left, and nothing of one that may still run.
func TestUpdateRemovesWhatKilledOnesLeft(t *testing.T) {
	m := newMaker(t, "12345678")
	dir, _ := m.publish(t, "1.1.0", "1.1.0")
	files, _, err := run(t, func(u *updating) {
		u.from = dir
		if err := u.useKey(m.public()); err != nil {
			t.Fatal(err)
		}
		for name, age := range map[string]time.Duration{".daycare-new-1": 48 * time.Hour, ".daycare-new-1.old": 48 * time.Hour,
			".daycare-new-2": time.Hour, ".daycare-new-2.old": 48 * time.Hour, ".daycare-notes": 48 * time.Hour} {
			path := filepath.Join(filepath.Dir(u.program), name)
			put(t, path, []byte("left"))
			if err := os.Chtimes(path, time.Time{}, time.Now().Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	})
	left := slices.Sorted(maps.Keys(files))
	want := []string{".daycare-new-2", ".daycare-new-2.old", ".daycare-notes", "daycare", "daycare.old"}
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("left are %q, %v", left, err)
	}
}

// Whatever is wrong with a release, the reason is said, and the program stays as it is.
func TestBadReleasesChangeNothing(t *testing.T) {
	m, other := newMaker(t, "12345678"), newMaker(t, "12345678")
	stranger := newMaker(t, "ABCDEFGH")
	with := func(k maker, change func(dir, archive string)) func(u *updating) {
		return func(u *updating) {
			dir, archive := m.publish(t, "1.1.0", "1.1.0")
			change(dir, archive)
			u.from = dir
			if err := u.useKey(k.public()); err != nil {
				t.Fatal(err)
			}
		}
	}
	nothing := func(string, string) {}
	of := func(version, says string) func(u *updating) {
		return func(u *updating) {
			with(m, nothing)(u)
			u.from, _ = m.publish(t, version, says)
		}
	}
	for why, change := range map[string]func(u *updating){
		"damaged or changed": with(m, func(_, archive string) { put(t, archive, []byte("changed")) }),
		"does not match the file": with(m, func(dir, _ string) {
			put(t, filepath.Join(dir, "SHA256SUMS"), []byte("0  daycare-1.1.0-linux-amd64.tar.gz\n"))
		}),
		"does not match the file ": with(other, nothing),
		"made with key":            with(stranger, nothing),
		"not a minisign signature": with(m, func(dir, _ string) {
			put(t, filepath.Join(dir, "SHA256SUMS.minisig"), []byte("x"))
		}),
		"read SHA256SUMS.minisig":            with(m, func(dir, _ string) { os.Remove(filepath.Join(dir, "SHA256SUMS.minisig")) }),
		"no key to check":                    func(u *updating) { with(m, nothing)(u); u.key = nil },
		"no key to check ":                   func(u *updating) { u.from, u.unsigned = "https://example.org/x", true },
		"over https only":                    func(u *updating) { with(m, nothing)(u); u.from = "http://example.org/x" },
		"over https only ":                   func(u *updating) { with(m, nothing)(u); u.from = "ftp://127.0.0.1/x" },
		"older than this program":            of("0.9.0", "0.9.0"),
		"reports version \"1.2.0\"":          of("1.1.0", "1.2.0"),
		"does not list daycare-1.7.0.tar.gz": func(u *updating) { with(m, nothing)(u); u.from += "/daycare-1.7.0.tar.gz" },
	} {
		files, said, err := run(t, change)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(why)) {
			t.Errorf("%q: %v (%s)", why, err, said)
		}
		if len(files) != 1 || files["daycare"] != "old program" {
			t.Errorf("%q: there is now %q", why, files)
		}
	}
}

func TestUpdatesThatAreNotDone(t *testing.T) {
	m := newMaker(t, "12345678")
	for name, tt := range map[string]struct {
		version string
		change  func(u *updating)
		said    string
		done    bool
	}{
		"a dry run":        {"1.1.0", func(u *updating) { u.dry = true }, "not done: --dry-run", false},
		"what one has":     {"1.0.0", func(*updating) {}, "is already installed", false},
		"a downgrade":      {"0.9.0", func(u *updating) { u.downgrade = true }, "1.0.0 -> 0.9.0", true},
		"unsigned, local":  {"1.1.0", func(u *updating) { u.key, u.unsigned = nil, true }, "updated", true},
		"the older format": {"1.1.0", func(u *updating) { resign(t, m, u.from) }, "updated", true},
	} {
		files, said, err := run(t, func(u *updating) {
			u.from, _ = m.publish(t, tt.version, tt.version)
			if err := u.useKey(m.public()); err != nil {
				t.Fatal(err)
			}
			tt.change(u)
		})
		if err != nil || !strings.Contains(said, tt.said) || (files["daycare"] != "old program") != tt.done {
			t.Errorf("%s: %q, %q, %v", name, said, files, err)
		}
	}

	_, _, err := run(t, func(u *updating) { u.from, _ = m.publish(t, "1.1.0", "1.1.0"); u.unsigned, u.yes = true, false })
	if err == nil || !strings.Contains(err.Error(), "cannot ask for confirmation") {
		t.Errorf("without a terminal: %v", err)
	}
}

// resign signs a release in the older format of minisign.
func resign(t *testing.T, m maker, dir string) {
	t.Helper()
	sums, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "SHA256SUMS.minisig"), m.sign("Ed", sums))
}

// An archive with links or names that lead elsewhere does not get as far as being unpacked.
func TestHostileReleaseArchive(t *testing.T) {
	for _, h := range []*tar.Header{
		{Name: "x/daycare", Typeflag: tar.TypeSymlink, Linkname: "/bin/sh"}, {Name: "../daycare", Typeflag: tar.TypeReg},
	} {
		var b, out bytes.Buffer
		zip := gzip.NewWriter(&b)
		w := tar.NewWriter(zip)
		if err := errors.Join(w.WriteHeader(h), w.Close(), zip.Close()); err != nil {
			t.Fatal(err)
		}
		if err := extract(b.Bytes(), "x/daycare", &out); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, %q", h.Name, err, out.String())
		}
	}
}
