package tarball

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// build is a tar of headers as they are, each with as many zeros as its size says.
func build(t *testing.T, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		h.Mode = 0o600
		if _, err := w.Write(nil); err != nil {
			t.Fatal(err)
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := io.CopyN(w, strings.NewReader(strings.Repeat("x", int(h.Size))), h.Size); err != nil {
				t.Fatal(err)
			}
		}
	}

	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name string, size int64) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}
}

// Whatever an archive contains but plain files is refused, and nothing behind it is read.
func TestHostileArchivesAreRefused(t *testing.T) {
	limits := Limits{File: 100, Total: 150, Files: 3}
	for _, tt := range []struct {
		why     string
		headers []*tar.Header
	}{
		{"link", []*tar.Header{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}}},
		{"link", []*tar.Header{file("a", 1), {Name: "b", Typeflag: tar.TypeLink, Linkname: "a"}}},
		{"neither", []*tar.Header{{Name: "a", Typeflag: tar.TypeFifo}}},
		{"neither", []*tar.Header{{Name: "a", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}}},
		{"points outside", []*tar.Header{file("../a", 1)}},
		{"points outside", []*tar.Header{file("a/../../b", 1)}},
		{"points outside", []*tar.Header{file("/etc/passwd", 1)}},
		{"points outside", []*tar.Header{file("a//b", 1)}},
		{"points outside", []*tar.Header{file(`a\b`, 1)}},
		{"points outside", []*tar.Header{file("a\x1b[2J", 1)}},
		{"points outside", []*tar.Header{{Name: "../d/", Typeflag: tar.TypeDir}}},
		{"twice", []*tar.Header{file("a", 1), file("A", 1)}},
		{"allowed", []*tar.Header{file("a", 101)}},
		{"in total", []*tar.Header{file("a", 100), file("b", 51)}},
		{"more than 3", []*tar.Header{file("a", 1), file("b", 1), file("c", 1), file("d", 1)}},
	} {
		data := build(t, append(tt.headers, file("last", 1))...)
		var taken []string
		err := Read(bytes.NewReader(data), limits, func(e Entry, _ io.Reader) error {
			taken = append(taken, e.Name)
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), tt.why) || strings.Contains(fmt.Sprint(taken), "last") {
			t.Errorf("%q: error %v after %v, want one with %q", tt.headers[0].Name, err, taken, tt.why)
		}
	}
}

// A few bytes of an archive do not become a file of any size.
func TestAFileWithHolesIsRefused(t *testing.T) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	content := make([]byte, 512)
	copy(content, "1\n1048576\n0\n") // one piece, at the end, of no bytes
	h := &tar.Header{Name: "a", Typeflag: tar.TypeReg, Size: 512, PAXRecords: map[string]string{"ANY.sparse.major": "1",
		"ANY.sparse.minor": "0", "ANY.sparse.name": "a", "ANY.sparse.realsize": "1048576"}}
	if err := w.WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	_, err := w.Write(content)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}

	data := bytes.ReplaceAll(b.Bytes(), []byte("ANY.sparse"), []byte("GNU.sparse")) // which the writer refuses

	err = Read(bytes.NewReader(data), Limits{1 << 30, 1 << 30, 9}, func(e Entry, _ io.Reader) error {
		t.Errorf("%s was read with %d bytes out of an archive of %d", e.Name, e.Size, len(data))
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "stored with holes") {
		t.Errorf("error %v", err)
	}
}

// An archive that ends in the middle of a file is cut short, wherever that is.
func TestCutArchivesAreRefused(t *testing.T) {
	data := build(t, file("a", 700), file("b/c", 10))
	for _, n := range []int{1, 511, 600, 1100, 1600} {
		dir, err := os.OpenRoot(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		err = Read(bytes.NewReader(data[:n]), Limits{1000, 1000, 9}, func(e Entry, r io.Reader) error { return Put(dir, e, r) })
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("cut at %d: %v", n, err)
		}
		dir.Close()
	}
}

// A file comes out as it went in, but never with more rights than its owner's.
func TestFilesComeOutAsTheyWentIn(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	if err := w.Add(Entry{Name: "a/run.sh", Size: 2, Mode: 0o777}, strings.NewReader("ok")); err != nil {
		t.Fatal(err)
	}
	if err := w.Add(Entry{Name: "short", Size: 3}, strings.NewReader("ok")); err == nil {
		t.Error("a file that is shorter than it says was written")
	}

	path := t.TempDir()
	dir, err := os.OpenRoot(path)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	put := func(e Entry, r io.Reader) error { return Put(dir, e, r) }
	_ = Read(&b, Limits{100, 100, 1}, put) // the second file is over the limit
	info, err := os.Stat(filepath.Join(path, "a", "run.sh"))
	if err != nil || info.Size() != 2 || info.Mode().Perm()&^0o755 != 0 || info.Mode().Perm()&0o700 != 0o700 {
		t.Errorf("it is %v, %v", info, err)
	}
}
