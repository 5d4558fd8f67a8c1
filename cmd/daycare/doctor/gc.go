package doctor

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/follow"
	"daycare/cmd/daycare/logfile"
	"daycare/cmd/daycare/term"
	"daycare/engine/changes"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/lazyregexp"
	"daycare/engine/workspace"
)

// CollectCommand lists what nothing needs any more and, if told to, deletes it: daycare gc.
func CollectCommand(c *term.App) *cobra.Command {
	var sure bool
	var older string
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Show files that are no longer needed, and delete them with --yes",
		Long: "Show files that are no longer needed: removed agents and tasks in the trash, long outputs\n" +
			"that no history refers to, old versions of files that agents overwrote, copies of dry runs whose agent is\n" +
			"gone, partial lines and temporary files left by crashes; and, if `retention` in the settings sets a limit,\n" +
			"closed parts of histories and rotated logs. daycare deletes nothing without --yes or your confirmation on\n" +
			"a terminal. Deleted calls no longer appear in daycare cost.",
		Example: "  daycare gc\n  daycare gc --older 7d --yes",
		Args:    term.Words(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			at, err := c.MadePlace()
			if err != nil {
				return err
			}
			conf, err := c.Config()
			if err != nil {
				return err
			}

			ages := conf.Retention
			if older != "" {
				age, err := term.Length(older)
				if err != nil || age < 0 {
					return term.Usage(cmd, "--older %q is not a duration such as 30d", older)
				}
				ages = sooner(ages, age)
			}

			g := collector{at: at, log: logfile.Path(at.Data, conf), ages: ages, now: time.Now(),
				held: disk.Held(at.Lock())}
			if err := g.look(); err != nil {
				return fmt.Errorf("find files to delete: %w", err)
			}

			return collect(c, &g, sure)
		},
	}
	cmd.Flags().BoolVar(&sure, "yes", false, "delete without asking")
	cmd.Flags().StringVar(&older, "older", "", "only files older than this, instead of the limits in the settings")

	return cmd
}

// garbage is one thing that nothing needs.
type garbage struct {
	Path  string    `json:"path"`
	Why   string    `json:"why"`
	Bytes int64     `json:"bytes"`
	At    time.Time `json:"at"` // of its newest change

	remove func(path string) error
}

// A collector looks for garbage. With a daemon running it leaves alone what may be
// in the making.
type collector struct {
	at    workspace.Place
	log   string // path of the newest log; "": none
	ages  config.Retention
	now   time.Time
	held  bool
	found []garbage

	copied map[string]time.Time // copies of dry runs, and when each was made
}

// sooner is a retention in which what may go goes after one age. What is kept for
// ever stays.
func sooner(r config.Retention, age time.Duration) config.Retention {
	for _, kind := range []*time.Duration{&r.Trash, &r.Blobs, &r.History, &r.Logs, &r.Undo} {
		if *kind > 0 {
			*kind = max(age, 1) // 0 would be never
		}
	}

	return r
}

func (g *collector) look() error {
	for _, k := range kinds {
		if k.gc == nil {
			continue
		}
		paths, err := k.ended(g)
		if err != nil {
			return err
		}

		for _, path := range paths {
			g.add(path, k.gc.why, k.gc.age(g.ages), k.gc.making)
		}
	}

	if err := g.copies(); err != nil {
		return err
	}
	err := filepath.WalkDir(g.at.Data, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // doctor reports it
		case e.IsDir() && (e.Name() == "trash" || e.Name() == "skills"):
			return fs.SkipDir
		case !e.Type().IsRegular():
			return nil
		}

		if left, ok := remnantOf(e.Name()); ok {
			g.add(path, left.why, g.ages.Blobs, left.making)
		}

		return nil
	})
	slices.SortFunc(g.found, func(a, b garbage) int { return cmp.Compare(b.Bytes, a.Bytes) })

	return err
}

// trashTime begins the names of what is in the trash.
const trashTime = "20060102T150405.000Z"

// add takes a file or folder in if it is older than age; 0 is never. making says that a
// running daemon may be at it.
func (g *collector) add(path, why string, age time.Duration, making bool) {
	if age == 0 {
		return
	}
	one := garbage{Path: path, Why: why, remove: os.RemoveAll}
	err := filepath.WalkDir(path, func(_ string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if !e.IsDir() {
			one.Bytes += info.Size()
		}
		if info.ModTime().After(one.At) {
			one.At = info.ModTime()
		}

		return nil
	})
	if at, err := time.Parse(trashTime, strings.SplitN(filepath.Base(path), "-", 2)[0]); err == nil {
		one.At = at // when it was moved here; what is in it may be much older
	}

	if at, ok := g.copied[path]; ok {
		one.At, one.remove = at, changes.Discard
	}
	young := one.At.After(g.now.Add(-age)) || making && g.held && time.Since(one.At) < oldTemp
	if err == nil && !young {
		g.found = append(g.found, one)
	}
}

// blobName is how long outputs are named: the hash of what is in them.
var blobName = lazyregexp.New(`[0-9a-f]{64}`)

// An end is when gc may delete the files of a kind.
type end struct {
	why    string
	age    func(config.Retention) time.Duration       // 0: never
	list   func(*collector) (paths []string, _ error) // nil: all of the kind
	making bool                                       // a running daemon may be at a young one
}

func trashAge(r config.Retention) time.Duration   { return r.Trash }
func blobAge(r config.Retention) time.Duration    { return r.Blobs }
func historyAge(r config.Retention) time.Duration { return r.History }
func logAge(r config.Retention) time.Duration     { return r.Logs }
func undoAge(r config.Retention) time.Duration    { return r.Undo }

// ended lists the files of a kind that may go once they are old enough.
func (k kind) ended(g *collector) ([]string, error) {
	if k.gc.list != nil {
		return k.gc.list(g)
	}
	return disk.Glob(g.at.Data, k.pattern)
}

// inTrash lists what was removed, each as it was removed.
func inTrash(g *collector) ([]string, error) { return disk.Glob(g.at.Data, "trash/*") }

// unnamedBlobs lists long outputs that no line of their agent's history names.
func unnamedBlobs(g *collector) (paths []string, _ error) {
	dirs, err := disk.Glob(g.at.Data, "agents/*/blobs")
	if err != nil {
		return nil, err
	}

	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return nil, err
		}
		named, err := blobsOf(filepath.Dir(dir))
		if err != nil {
			return nil, err
		}

		for _, e := range entries {
			if blobName.MatchString(e.Name()) && !named[e.Name()] {
				paths = append(paths, filepath.Join(dir, e.Name()))
			}
		}
	}

	return paths, nil
}

// oldUndo lists what files held before and after writes that are too old to be taken back. What cannot be read
// stays whole.
func oldUndo(g *collector) (paths []string, _ error) {
	dirs, err := disk.Glob(g.at.Data, "agents/*/undo")
	if err != nil || g.ages.Undo == 0 {
		return nil, err
	}
	for _, dir := range dirs {
		store := changes.Store{Dir: dir}
		if g.held && g.fresh(store.List()) || changes.Pending(dir) {
			continue // a write that begins now may need what an old one left
		}
		written, err := store.Written()
		if err != nil {
			continue // doctor reports it
		}
		needed := changes.Needed(written, g.now.Add(-g.ages.Undo))
		blobs, err := disk.Glob(dir, "blobs/*")
		if err != nil {
			return nil, err
		}
		for _, path := range blobs {
			if name := filepath.Base(path); blobName.MatchString(name) && !needed[name] {
				paths = append(paths, path)
			}
		}
	}

	return paths, nil
}

// fresh reports whether a file changed so shortly before that a running daemon may be at it.
func (g *collector) fresh(path string) bool {
	info, err := os.Stat(path)
	return err == nil && g.now.Sub(info.ModTime()) < oldTemp
}

// copies adds the copies of dry runs that nobody can apply any more.
func (g *collector) copies() error {
	shelf, err := changes.List(g.at)
	if err != nil {
		return err
	}
	g.copied = map[string]time.Time{}
	for _, one := range shelf.Copies {
		if !term.Exists(filepath.Join(g.at.Data, "agents", one.Agent)) {
			g.copied[one.Dir] = one.At.Time
			g.add(one.Dir, "the copy of a dry run whose agent is gone", g.ages.Trash, false)
		}
	}
	for _, half := range shelf.Halves {
		if info, err := os.Stat(half); err == nil {
			g.copied[half] = info.ModTime()
			g.add(half, "a copy that a crash left unfinished", g.ages.Blobs, true)
		}
	}

	return nil
}

// olderLogs lists older files of the log, which the settings may have put elsewhere.
func olderLogs(g *collector) (paths []string, _ error) {
	for n := 1; g.log != "" && n < logfile.Kept; n++ {
		if path := logfile.Numbered(g.log, n); term.Exists(path) {
			paths = append(paths, path)
		}
	}

	return paths, nil
}

// blobsOf are the hashes in the histories of an agent's folder.
func blobsOf(dir string) (map[string]bool, error) {
	named := map[string]bool{}
	paths, err := disk.Glob(dir, "history/*.jsonl")
	if err != nil {
		return nil, err
	}

	for _, path := range append(paths, filepath.Join(dir, "history.jsonl")) {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}

		err = follow.Lines(f, func(line []byte) error {
			if bytes.Contains(line, []byte("blob")) {
				for _, hash := range blobName.FindAll(line, -1) {
					named[string(hash)] = true
				}
			}

			return nil
		})
		f.Close()
		if err != nil {
			return nil, err
		}
	}

	return named, nil
}

// collect shows what was found and deletes it if that is wanted.
func collect(c *term.App, g *collector, sure bool) error {
	total := int64(0)
	for _, one := range g.found {
		total += one.Bytes
	}
	if !c.JSON {
		if len(g.found) == 0 {
			c.Note("nothing to delete")
			return nil
		}
		var t term.Table
		t.Row("SIZE", "AGE", "WHAT", "WHY")

		for _, one := range g.found {
			t.Row(term.Size(one.Bytes), term.Span(time.Since(one.At)),
				g.at.Shown(one.Path), one.Why)
		}
		if err := t.Write(c.Out, c.OutStyle()); err != nil {
			return err
		}

		c.Note("%s in all", term.Size(total))
	}
	if !sure && !c.JSON && c.Asks() {
		sure = c.Agrees("Delete these files?")
	}
	if sure {
		for _, one := range g.found {
			if err := one.remove(one.Path); err != nil {
				return fmt.Errorf("delete %s: %w", one.Path, err)
			}
		}
	}
	if c.JSON {
		return c.PrintJSON(struct {
			Deleted bool      `json:"deleted"`
			Bytes   int64     `json:"bytes"`
			Found   []garbage `json:"found"`
		}{sure, total, append([]garbage{}, g.found...)})
	}
	if !sure {
		c.Note("nothing was deleted; delete with: daycare gc --yes")
		return nil
	}

	c.Print("deleted %s\n", term.Size(total))
	return nil
}
