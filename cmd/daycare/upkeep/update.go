package upkeep

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/term"
	"daycare/cmd/daycare/version"
	"daycare/engine/fault"
	"daycare/engine/release"
	"daycare/engine/tarball"
)

// What an update reads, in bytes.
const (
	maxSums    = 1 << 20
	maxArchive = 512 << 20
)

// Update replaces the program by that of a release.
func Update(c *term.App) *cobra.Command {
	u := updating{app: c, ours: version.Number}
	var key string
	cmd := &cobra.Command{
		Use:   "update",
		Short: "Update this program from a signed release",
		Long: "Update this program from a release: a folder or URL with SHA256SUMS, its\n" +
			"signature SHA256SUMS.minisig and the archives. daycare checks the signature, the checksum and the\n" +
			"version, and that the new program runs here, before it changes anything. It keeps the old program as\n" +
			"daycare.old next to the new one. daycare never updates on its own.",
		Example: "  daycare update --dry-run\n" +
			"  daycare update --from https://example.org/releases/latest --key release.pub",
		Args: term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if u.from = cmp.Or(u.from, version.ReleaseURL); u.from == "" {
				return &term.Problem{Code: fault.ExitUsage,
					Err: errors.New("this program does not know where its releases are"),
					Do:  "give a folder or URL with --from"}
			}
			if u.program, err = ownProgram(); err != nil {
				return err
			}
			if err := u.useKey(cmp.Or(key, version.ReleaseKey)); err != nil {
				return err
			}

			return u.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&u.from, "from", "",
		"`URL` (https) or folder of the release, or its archive (default: the official one, if this build has it)")
	flags.StringVar(&key, "key", "",
		"minisign public `KEY`, or its file (default: the official one, if this build has it)")
	flags.BoolVar(&u.unsigned, "unsigned", false,
		"accept a local release without a signature, such as your own build")
	flags.BoolVar(&u.dry, "dry-run", false, "check everything without changing anything")
	flags.BoolVar(&u.yes, "yes", false, "do not ask")
	flags.BoolVar(&u.downgrade, "allow-downgrade", false, "allow an older version")

	return cmd
}

// An updating is one run of the command.
type updating struct {
	app     *term.App
	ours    string // version of this program
	program string // its path
	from    string
	key     *publicKey // nil: none

	unsigned, dry, yes, downgrade bool
}

// ownProgram is the path of this program, without links.
func ownProgram() (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}

	return self, term.Wrap(err, "find own program")
}

// useKey takes a key, or a file that has one.
func (u *updating) useKey(key string) error {
	if key == "" {
		return nil
	}
	if data, err := os.ReadFile(key); err == nil {
		key = string(data)
	}

	k, err := parseKey(key)
	u.key = &k

	return term.Wrap(err, "--key")
}

// A result of an update, in --json.
type result struct {
	From    string `json:"from"` // version
	To      string `json:"to"`
	Program string `json:"program"`
	Updated bool   `json:"updated"`
	Old     string `json:"old,omitempty"` // where the old program is
}

func (u *updating) run(ctx context.Context) error {
	src, err := newSource(u.from)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	sums, err := u.sums(ctx, src)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}

	name, theirs, err := choose(sums, src.only)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	r := result{From: u.ours, To: theirs, Program: u.program}
	switch order := release.Compare(theirs, u.ours); {
	case order == 0:
		return u.report(r, "daycare "+theirs+" is already installed")
	case order < 0 && !u.downgrade:
		return &term.Problem{Code: fault.ExitFailure,
			Err: fmt.Errorf("update: the release is daycare %s, older than this program (%s)", theirs, u.ours),
			Do:  "to install it anyway: --allow-downgrade"}
	}

	fresh, err := u.prepare(ctx, src, name, sums[name], theirs)
	if err != nil {
		return fmt.Errorf("update: %w", err)
	}
	defer os.Remove(fresh)
	plan := fmt.Sprintf("%s: daycare %s -> %s; the old program is kept as %s.old",
		u.program, u.ours, theirs, filepath.Base(u.program))
	if u.dry {
		return u.report(r, plan+" (not done: --dry-run)")
	}
	if !u.yes {
		u.app.Note("%s", plan)
		if !u.app.Asks() {
			return &term.Problem{Code: fault.ExitUsage, Err: errors.New("update: cannot ask for confirmation without a terminal"),
				Do: "confirm with --yes"}
		}
		if !u.app.Agrees("Replace it?") {
			return u.report(r, "no changes")
		}
	}
	if r.Old, err = swap(fresh, u.program); err != nil {
		return fmt.Errorf("update: %w", err)
	}

	r.Updated = true
	return u.report(r, "updated "+plan)
}

func (u *updating) report(r result, text string) error {
	if u.app.JSON {
		return u.app.PrintJSON(r)
	}
	u.app.Print("%s\n", text)
	if at, err := u.app.Place(); r.Updated && err == nil && u.app.NobodyRuns(at) != nil {
		u.app.Note("the daemon still runs daycare %s; restart it with: daycare restart", r.From)
	}

	return nil
}

// sums reads the checksums of a release by the names of files, and checks their signature.
func (u *updating) sums(ctx context.Context, src source) (map[string]string, error) {
	if u.key == nil && (!u.unsigned || src.web) {
		return nil, &term.Problem{Code: fault.ExitUsage,
			Err: errors.New("no key to check the signature of the release"),
			Do:  "give one with --key; a local release that you built yourself needs --unsigned instead"}
	}

	text, err := src.fetch(ctx, "SHA256SUMS", maxSums)
	if err != nil {
		return nil, err
	}
	if u.key != nil {
		signature, err := src.fetch(ctx, "SHA256SUMS.minisig", maxSums)
		if err == nil {
			err = term.Wrap(u.key.verify(text, signature), "the signature of SHA256SUMS is invalid")
		}
		if err != nil {
			return nil, err
		}
	}

	sums := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if sum, name, ok := strings.Cut(strings.TrimSpace(line), "  "); ok {
			sums[strings.TrimPrefix(name, "*")] = strings.ToLower(sum)
		}
	}

	return sums, nil
}

// choose finds the newest archive for this machine, or the one that is meant, and its version.
func choose(sums map[string]string, only string) (name, newest string, err error) {
	suffix := "-" + goruntime.GOOS + "-" + goruntime.GOARCH + ".tar.gz"
	for candidate := range sums {
		v := strings.TrimSuffix(strings.TrimPrefix(candidate, "daycare-"), suffix)
		fits := strings.HasPrefix(candidate, "daycare-") && strings.HasSuffix(candidate, suffix) && release.Valid(v)
		if fits && (only == "" || only == candidate) && (name == "" || release.Compare(v, newest) > 0) {
			name, newest = candidate, v
		}
	}

	if name == "" {
		return "", "", fmt.Errorf("SHA256SUMS does not list %s", cmp.Or(only, "daycare-VERSION"+suffix))
	}

	return name, newest, nil
}

// prepare puts the new program beside the old one, under another name, and tries it.
func (u *updating) prepare(ctx context.Context, src source, name, sum, theirs string) (fresh string, err error) {
	archive, err := src.fetch(ctx, name, maxArchive)
	if err != nil {
		return "", err
	}
	if got := sha256.Sum256(archive); hex.EncodeToString(got[:]) != sum {
		return "", fmt.Errorf("%s was damaged or changed: its SHA-256 is %x, but SHA256SUMS has %s", name, got, sum)
	}

	sweep(filepath.Dir(u.program))
	f, err := os.CreateTemp(filepath.Dir(u.program), freshPrefix)
	if errors.Is(err, os.ErrPermission) {
		return "", &term.Problem{Code: fault.ExitFailure, Err: err,
			Do: "run this command as the owner of " + filepath.Dir(u.program)}
	}
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()

	err = extract(archive, strings.TrimSuffix(name, ".tar.gz")+"/daycare", f)
	if err == nil {
		err = errors.Join(f.Chmod(0o755), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", err
	}

	return f.Name(), tryOut(ctx, f.Name(), theirs)
}

// freshPrefix begins the names of new programs that are not in their place yet.
const freshPrefix = ".daycare-new-"

// sweep removes what updates that were killed have left: new programs, and other names of old ones. An update that still runs
// is not as old as a day.
func sweep(dir string) {
	entries, _ := os.ReadDir(dir) // as far as it can be listed
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		info, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), freshPrefix) || !info.Mode().IsRegular() {
			continue
		}
		fresh, kept := strings.CutSuffix(path, ".old") // it is as old as the program, whose new one came just before in the list
		if _, err := os.Lstat(fresh); kept && err != nil || !kept && time.Since(info.ModTime()) > 24*time.Hour {
			_ = os.Remove(path) // the next update tries again
		}
	}
}

// extract writes one file of an archive.
func extract(archive []byte, name string, to io.Writer) error {
	zip, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return err
	}
	found := false
	limits := tarball.Limits{File: maxArchive, Total: 2 * maxArchive, Files: 10000}
	err = tarball.Read(zip, limits, func(e tarball.Entry, content io.Reader) error {
		if e.Name != name {
			return nil
		}
		found = true
		_, err := io.Copy(to, content)

		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("the archive contains no %s", name)
	}

	return err
}

// tryOut runs a program to see that it is daycare of that version, and works here.
func tryOut(ctx context.Context, program, want string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, "version", "--json").Output()
	if err != nil {
		return fmt.Errorf("the new program does not run here: %w", err)
	}

	var is struct{ Version string }
	if err := json.Unmarshal(out, &is); err != nil || is.Version != want {
		return fmt.Errorf("the new program reports version %q instead of %s", is.Version, want)
	}

	return nil
}

// swap puts a program in the place of another one, which is kept as NAME.old. Whenever it is interrupted, there is a
// program, and NAME.old is this one or the one before it.
func swap(fresh, program string) (old string, err error) {
	old = program + ".old"
	kept := fresh + ".old" // a name that no other update uses
	defer os.Remove(kept)  // which stays if NAME.old is another name of the program already
	if err := os.Link(program, kept); err != nil {
		return "", fmt.Errorf("keep the old program: %w", err)
	}
	if err := place(kept, old); err != nil {
		return "", fmt.Errorf("keep the old program: %w", err)
	}

	return old, place(fresh, program)
}
