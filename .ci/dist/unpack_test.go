package dist

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"
	"testing"
)

// unpack reads the files of a tar.gz. Links, devices, owners and times that differ between
// machines are errors.
func unpack(t *testing.T, archive []byte) map[string][]byte {
	t.Helper()
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		t.Fatal(err)
	}
	files, r := map[string][]byte{}, tar.NewReader(zip)
	for {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}

		switch {
		case h.Uid != 0 || h.Gid != 0:
			t.Errorf("%s belongs to %d:%d", h.Name, h.Uid, h.Gid)
		case h.Typeflag == tar.TypeDir:
		case h.Typeflag != tar.TypeReg:
			t.Errorf("%s is neither a file nor a folder", h.Name)
		default:
			if files[h.Name], err = io.ReadAll(r); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// unar reads the members of an ar archive, which a deb is.
func unar(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	data, ok := bytes.CutPrefix(data, []byte("!<arch>\n"))
	if !ok {
		t.Fatal("not an ar archive")
	}
	members := map[string][]byte{}
	for len(data) >= 60 {
		name := strings.TrimRight(string(data[:16]), " /")
		size, err := strconv.Atoi(strings.TrimSpace(string(data[48:58])))
		if err != nil || 60+size > len(data) {
			t.Fatalf("ar member %s: %v", name, err)
		}
		members[name] = data[60 : 60+size]
		data = data[min(60+size+size%2, len(data)):]
	}

	return members
}

// An rpm is a package: a lead, a header with signatures, a header, and a cpio archive.
type rpm struct {
	name, version, arch string
	files               map[string][]byte
}

// Tags of a header, from https://rpm-software-management.github.io/rpm/manual/tags.html.
const (
	tagName    = 1000
	tagVersion = 1001
	tagArch    = 1022
)

func unrpm(t *testing.T, data []byte) rpm {
	t.Helper()
	const lead = 96
	_, used := rpmHeader(t, data[lead:])
	data = data[lead+(used+7)/8*8:] // the signatures are padded
	texts, used := rpmHeader(t, data)
	zip, err := gzip.NewReader(bytes.NewReader(data[used:]))
	if err != nil {
		t.Fatal(err)
	}

	payload, err := io.ReadAll(zip)
	if err != nil {
		t.Fatal(err)
	}
	return rpm{texts[tagName], texts[tagVersion], texts[tagArch], uncpio(t, payload)}
}

// rpmHeader reads the texts of a header by their tags, and how long it is.
func rpmHeader(t *testing.T, data []byte) (texts map[uint32]string, used int) {
	t.Helper()
	if !bytes.HasPrefix(data, []byte{0x8e, 0xad, 0xe8}) {
		t.Fatal("not the header of an rpm")
	}
	number := func(at int) uint32 { return binary.BigEndian.Uint32(data[at:]) }
	entries, size := int(number(8)), int(number(12))
	store := data[16+16*entries:]
	texts = map[uint32]string{}
	for i := range entries {
		at := 16 + 16*i
		const text = 6
		if tag, kind, offset := number(at), number(at+4), number(at+8); kind == text {
			texts[tag], _, _ = strings.Cut(string(store[offset:size]), "\x00")
		}
	}

	return texts, 16 + 16*entries + size
}

// uncpio reads the files of a cpio archive in the format "newc".
func uncpio(t *testing.T, data []byte) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	for at := 0; at+110 <= len(data); {
		field := func(n int) int {
			v, err := strconv.ParseInt(string(data[at+6+8*n:at+14+8*n]), 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			return int(v)
		}
		mode, size, length := field(1), field(6), field(11)
		name := string(data[at+110 : at+110+length-1])
		if name == "TRAILER!!!" {
			break
		}

		content := (at + 110 + length + 3) / 4 * 4
		switch mode & 0o170000 {
		case 0o100000:
			files[path.Join("/", name)] = data[content : content+size]
		case 0o040000:
		default:
			t.Errorf("%s is neither a file nor a folder", name)
		}

		at = (content + size + 3) / 4 * 4
	}

	return files
}
