// Package dist tests what .ci/release makes: DAYCARE_RELEASE is the folder of a release that
// .ci/dist/rehearse made; without it the tests make one for this platform.
package dist

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	workspace string // of this run of the tests
	release   = sync.OnceValues(func() (string, error) {
		if dir := os.Getenv("DAYCARE_RELEASE"); dir != "" {
			return dir, nil
		}
		dir := filepath.Join(workspace, "release")
		out, err := exec.Command("./rehearse", dir, runtime.GOOS+"/"+runtime.GOARCH).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("rehearse: %w\n%s", err, out)
		}

		return dir, err
	})
)

func TestMain(m *testing.M) {
	var err error
	if workspace, err = os.MkdirTemp("", "daycare-dist-"); err != nil {
		panic(err)
	}
	if err := os.Chmod(workspace, 0o755); err != nil { // programs of other users read it
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(workspace)
	os.Exit(code)
}

// released lists the files of a release with these names, at least one.
func released(t *testing.T, pattern string) []string {
	t.Helper()
	dir, err := release()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s has no %s: %v", dir, pattern, err)
	}

	return paths
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// sums are what SHA256SUMS says.
func sums(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(string(read(t, released(t, "SHA256SUMS")[0]))) {
		sum, name, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("SHA256SUMS has a line %q", line)
		}
		all[name] = sum
	}

	return all
}

func TestEveryFileHasItsChecksum(t *testing.T) {
	known, seen := sums(t), 0
	for _, path := range released(t, "*") {
		name := filepath.Base(path)
		if strings.HasPrefix(name, "SHA256SUMS") {
			continue
		}
		seen++
		if sum := sha256.Sum256(read(t, path)); known[name] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s has the SHA-256 %x, SHA256SUMS says %q", name, sum, known[name])
		}
	}

	if seen != len(known) {
		t.Errorf("there are %d files, and SHA256SUMS names %d", seen, len(known))
	}
	t.Logf("%d files", seen)
}

// What is in every archive, below its folder.
var contents = []string{"daycare", "man/daycare.1", "man/daycare-chat.1", "completion/daycare.bash", "completion/daycare.zsh",
	"completion/daycare.fish", "LICENSE", "README.md", "CHANGELOG.md", "docs/README.md", "docs/install.md", "settings.example.yaml"}

func TestArchives(t *testing.T) {
	for _, path := range released(t, "*.tar.gz") {
		folder := strings.TrimSuffix(filepath.Base(path), ".tar.gz") + "/"
		files := unpack(t, read(t, path))
		for _, name := range contents {
			if len(files[folder+name]) == 0 {
				t.Errorf("%s has no %s", folder, name)
			}
		}

		for name := range files {
			if !strings.HasPrefix(name, folder) || !filepath.IsLocal(name) {
				t.Errorf("%s has the name %s", folder, name)
			}
		}
		t.Logf("%-32s %d files, %d bytes of program", folder, len(files), len(files[folder+"daycare"]))
	}
}

// What packages install, beside manual pages.
var installed = []string{"/usr/bin/daycare", "/usr/share/man/man1/daycare.1.gz", "/usr/share/man/man1/daycare-chat.1.gz",
	"/usr/share/bash-completion/completions/daycare", "/usr/share/fish/vendor_completions.d/daycare.fish",
	"/usr/share/doc/daycare/README.md", "/usr/share/doc/daycare/docs/README.md", "/usr/share/doc/daycare/docs/connectors/README.md",
	"/usr/share/doc/daycare/settings.example.yaml"}

func TestDebPackages(t *testing.T) {
	onLinux(t)
	for _, path := range released(t, "*.deb") {
		members := unar(t, read(t, path))
		control := string(unpack(t, members["control.tar.gz"])["./control"])
		for field, want := range map[string]string{"Package": "daycare", "Version": versionOf(path) + "-1",
			"Architecture": archOf(path)} {
			if !strings.Contains(control, field+": "+want+"\n") {
				t.Errorf("%s: its control file does not say %s: %s:\n%s", path, field, want, control)
			}
		}

		files := map[string][]byte{}
		for name, content := range unpack(t, members["data.tar.gz"]) {
			files[strings.TrimPrefix(name, ".")] = content
		}
		has(t, path, files, "/usr/share/zsh/vendor-completions/_daycare", "/usr/share/doc/daycare/copyright")
		sameProgram(t, path, files["/usr/bin/daycare"])
		if out, err := exec.Command("dpkg-deb", "--info", path).CombinedOutput(); err == nil {
			t.Logf("dpkg-deb --info %s:\n%s", filepath.Base(path), out)
		} else {
			t.Logf("not read by dpkg-deb: %v %s", err, out)
		}
	}
}

func TestRPMPackages(t *testing.T) {
	onLinux(t)
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
	for _, path := range released(t, "*.rpm") {
		p := unrpm(t, read(t, path))
		if p.name != "daycare" || p.version != versionOf(path) || p.arch != arch[archOf(path)] {
			t.Errorf("%s says that it is %s %s for %s", path, p.name, p.version, p.arch)
		}
		has(t, path, p.files, "/usr/share/zsh/site-functions/_daycare", "/usr/share/licenses/daycare/LICENSE")
		sameProgram(t, path, p.files["/usr/bin/daycare"])
	}
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" && os.Getenv("DAYCARE_RELEASE") == "" {
		t.Skip("packages are made for Linux")
	}
}

// has looks for what a package installs. Nothing of it is outside of /usr.
func has(t *testing.T, path string, files map[string][]byte, more ...string) {
	t.Helper()
	for _, name := range append(more, installed...) {
		if len(files[name]) == 0 {
			t.Errorf("%s has no %s", path, name)
		}
	}

	pages, manuals := 0, 0
	var others []string
	for name := range files {
		switch {
		case !strings.HasPrefix(name, "/usr/") || strings.Contains(name, ".."):
			t.Errorf("%s installs %s", path, name)
		case strings.HasPrefix(name, "/usr/share/doc/daycare/docs/"):
			pages++
		case strings.HasPrefix(name, "/usr/share/man/"):
			manuals++
		default:
			others = append(others, name)
		}
	}

	slices.Sort(others)
	t.Logf("%s: %d manual pages, %d files of documentation, and\n%s", filepath.Base(path), manuals, pages,
		strings.Join(others, "\n"))
}

// sameProgram compares the program of a package with that of the archive beside it.
func sameProgram(t *testing.T, path string, program []byte) {
	t.Helper()
	name := strings.TrimSuffix(path, filepath.Ext(path))
	if !bytes.Equal(program, unpack(t, read(t, name+".tar.gz"))[filepath.Base(name)+"/daycare"]) {
		t.Errorf("%s has another program than its archive", path)
	}
}

var named = regexp.MustCompile(`daycare-(.+)-([a-z]+)-([a-z0-9]+)\.(tar\.gz|deb|rpm|cdx\.json)$`)

func versionOf(path string) string { return named.FindStringSubmatch(path)[1] }
func archOf(path string) string    { return named.FindStringSubmatch(path)[3] }

// The bill of materials names what go.mod requires and the program links.
func TestBillOfMaterials(t *testing.T) {
	for _, path := range released(t, "*.cdx.json") {
		var bill struct {
			BomFormat, SpecVersion string
			Metadata               struct {
				Component struct{ Name, Version string }
			}
			Components []struct {
				Name, Version, PURL string
				Hashes              []struct{ Alg, Content string }
			}
		}
		if err := json.Unmarshal(read(t, path), &bill); err != nil {
			t.Fatal(err)
		}
		if bill.BomFormat != "CycloneDX" || bill.Metadata.Component.Version != versionOf(path) {
			t.Errorf("%s is about %+v", path, bill.Metadata)
		}

		hashed, names := 0, map[string]string{}
		for _, c := range bill.Components {
			names[c.Name] = c.Version
			if len(c.Hashes) == 1 && len(c.Hashes[0].Content) == 64 {
				hashed++
			}
		}

		if names["std"] == "" || names["github.com/spf13/cobra"] == "" || hashed != len(names)-1 {
			t.Errorf("%s: %d components, %d with a hash", path, len(names), hashed)
		}
		t.Logf("%-32s %d modules", filepath.Base(path), hashed)
	}
}

// The formula names each archive for macOS and Linux with its checksum, and is Ruby.
func TestFormula(t *testing.T) {
	path := released(t, "daycare.rb")[0]
	text := string(read(t, path))
	archives := 0
	for name, sum := range sums(t) {
		if !strings.HasSuffix(name, ".tar.gz") || strings.Contains(name, "-freebsd-") {
			continue
		}
		archives++
		if !strings.Contains(text, "url \"https://example.org/daycare/"+name+"\"\n      sha256 \""+sum+"\"") {
			t.Errorf("the formula lacks %s with its checksum", name)
		}
	}

	if got := strings.Count(text, "\n      url "); got != archives || archives == 0 {
		t.Errorf("the formula names %d archives, and there are %d", got, archives)
	}
	if ruby, err := exec.LookPath("ruby"); err != nil {
		opened := len(regexp.MustCompile(`(?m)^class |^ +def |\bdo$`).FindAllString(text, -1))
		if closed := len(regexp.MustCompile(`(?m)^ *end$`).FindAllString(text, -1)); opened != closed {
			t.Errorf("%d blocks are opened and %d closed", opened, closed)
		}
		t.Log("ruby is not here: the syntax was checked by its blocks")
	} else if out, err := exec.Command(ruby, "-c", path).CombinedOutput(); err != nil {
		t.Errorf("ruby -c: %v\n%s", err, out)
	}
}
