package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"daycare/cmd/daycare/daemon"
	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/plugins"
	"daycare/cmd/daycare/term"
	"daycare/connectors/chat"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/finding"
	"daycare/engine/record"
	"daycare/engine/watch"
)

// checkLock looks whether who holds the workspace answers, and for what a daemon that
// is gone left behind.
func checkLock(d *doctor) error {
	path, socket := d.at.Lock(), filepath.Join(d.at.Data, control.SocketName)
	if _, err := disk.ReadHolder(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "lock-unreadable", Severity: finding.Info, File: path, Line: 1,
			Reason: "it does not name a process", Remedy: "The next start, or doctor --fix, rewrites it."}, fix: nothing})
	}

	client, err := control.Dial(d.at.Data)
	if err == nil {
		client.Close()
	}

	_, missing := os.Lstat(socket)
	switch {
	case d.held && err != nil:
		holder, _ := disk.ReadHolder(path)
		d.report(finding.Error, "daemon-deaf", path, 0,
			fmt.Sprintf("process %d has the lock but does not answer on the socket: %v", holder.PID, err),
			"It may still be starting. Otherwise stop it with daycare stop and start it again; everything acknowledged is safe.")
	case !d.held && missing == nil:
		d.ailments = append(d.ailments, ailment{Finding: finding.Finding{ID: "socket-stale", Severity: finding.Info, File: socket,
			Reason: "no daemon is running to answer on it", Remedy: "The next start, or doctor --fix, removes it."}, fix: remove(socket)})
	}

	return nil
}

// checkWatches looks whether changes of files can be noticed.
func checkWatches(d *doctor) error {
	w := watch.New(slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	began := make(chan struct{}, 1)
	w.Add(d.at.Data, watch.Options{Debounce: -1}, func(watch.Hint) {
		select {
		case began <- struct{}{}:
		default:
		}
	})

	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	select {
	case <-began:
	case <-ctx.Done():
	}

	degraded := w.Degraded()
	cancel()
	<-ended
	for _, reason := range degraded {
		d.report(finding.Warning, "watch-impossible", d.at.Data, 0,
			"the system does not report file changes here: "+strings.TrimPrefix(reason, d.at.Data+": "),
			"Edits take effect within 10 s. To speed that up, move the workspace to a local disk, or raise the limit.")
	}

	const limits = "/proc/sys/fs/inotify/max_user_watches"
	if most, err := readNumber(limits); err == nil && most < len(d.index.All())+100 {
		d.report(finding.Warning, "watch-limit", limits, 0,
			fmt.Sprintf("the limit is %d watched folders, but there are %d agents", most, len(d.index.All())),
			"Raise the limit: sudo sysctl fs.inotify.max_user_watches=524288")
	}

	return nil
}

func readNumber(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}

	return strconv.Atoi(strings.TrimSpace(string(data)))
}

// Bounds of free space, in bytes.
const (
	littleSpace = 256 << 20
	noSpace     = 32 << 20
)

// checkSpace looks at the disk.
func checkSpace(d *doctor) error {
	free, _, err := disk.Space(d.at.Data)
	if err != nil {
		return err
	}
	switch {
	case free < noSpace:
		d.report(finding.Error, "disk-full", d.at.Data, 0, term.Size(free)+" free: soon daycare accepts no new messages",
			"Free some space on this disk; daycare gc shows what can be deleted.")
	case free < littleSpace:
		d.report(finding.Warning, "disk-low", d.at.Data, 0, term.Size(free)+" free",
			"Free some space on this disk; daycare gc shows what can be deleted.")
	}

	return nil
}

// checkNames looks whether the file system makes names durable.
func checkNames(d *doctor) error {
	ok, err := disk.SyncsFolders(d.at.Data)
	if err == nil && !ok {
		d.report(finding.Info, "folders-not-synced", d.at.Data, 0, daemon.FoldersNotSynced,
			"Keep the workspace on a local disk if it has to survive a power cut.")
	}

	return err
}

// built is a day that had passed when this program was made.
var built = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)

// checkClock looks whether the clock can be right.
func checkClock(d *doctor) error {
	if d.now.Before(built) {
		d.report(finding.Error, "clock-wrong", d.at.Data, 0,
			"the clock says "+d.now.Format(time.RFC3339)+", which is before this program was built", "Set the clock.")
	}

	for _, m := range d.index.All() {
		dir := filepath.Join(d.at.Data, "agents", m.ID)
		at, err := record.LastAt(dir)
		if err == nil && at.After(d.now.Add(24*time.Hour)) {
			d.report(finding.Warning, "clock-behind", filepath.Join(dir, "history.jsonl"), lineCount(filepath.Join(dir, "history.jsonl")),
				"its newest record is from "+at.Local().Format(time.DateTime)+", but the clock says "+d.now.Format(time.DateTime),
				"Set the clock of this machine.")
		}
	}

	return nil
}

// lineCount is how many lines a file has.
func lineCount(path string) int {
	data, err := beneath.Whole(path)
	if err != nil {
		return 0
	}

	return bytes.Count(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'}) + 1
}

// checkServices looks at the models: whether there is one, its key, its name.
func checkServices(d *doctor) error {
	path := filepath.Join(d.at.Data, config.Name)
	providers := d.conf.Choose(context.Background(), config.Ollama)
	list := filepath.Join(d.at.Data, models.FileName)
	if _, err := models.ReadFetched(list); err != nil {
		d.report(finding.Error, "models-list", list, 0, "the file is ignored: "+err.Error(),
			"Fetch it again with daycare models refresh, or go back with daycare models refresh --reset.")
	}

	known := models.Catalogue(d.conf, list)
	if len(d.conf.Providers) == 0 && providers[0].Type == "scripted" {
		d.report(finding.Info, "provider-none", path, 0, providers[0].Why+"; daycare uses the offline model, which has few abilities",
			"Set a key, such as ANTHROPIC_API_KEY, or add a service to the settings (providers).")
	}

	for _, p := range providers {
		line, _ := strconv.Atoi(strings.TrimPrefix(p.Why, config.Name+":"))
		if p.Type != "scripted" && p.BaseURL == "" && p.APIKey.IsZero() && len(p.Headers) == 0 {
			d.report(finding.Error, "provider-no-key", path, line, "provider "+p.ID+" has no key", "Set one with: daycare auth set "+p.ID)
		}
		if err := models.Check(known, p, p.Model); err != nil {
			reason, remedy, _ := strings.Cut(err.Error(), "\n")
			d.report(finding.Error, "provider-model", path, line, "provider "+p.ID+": "+reason, remedy)
		}
		if _, err := plugins.NewProvider(d.at, p, p.APIKey.Reveal); err != nil {
			d.report(finding.Error, "provider-settings", path, line, err.Error(), "")
		}
	}

	checkRoutes(d)
	return nil
}

// checkRoutes looks whether the routes of the settings lead to a model.
func checkRoutes(d *doctor) {
	if len(d.conf.Routing.Routes()) == 0 {
		return
	}
	key := func(p config.Provider) func() string { return p.APIKey.Reveal }
	chain, err := models.New(context.Background(), d.conf, d.at, key, nil)
	if err != nil {
		return // it belongs to a provider, which was reported
	}

	for _, f := range chain.Misrouted() {
		d.report(f.Severity, "provider-route", f.File, f.Line, f.Reason, f.Remedy)
	}
}

// checkReceivers looks whether connectors can be made of their settings.
func checkReceivers(d *doctor) error {
	for _, s := range d.conf.Connectors {
		_, err := plugins.NewConnector(plugins.NewVault(func() *config.Config { return d.conf }), s, chat.Host{},
			slog.New(slog.DiscardHandler))
		if err != nil && len(wrongSettings(s)) == 0 { // else it was reported with its place
			reason, remedy, _ := strings.Cut(err.Error(), "\n")
			d.report(finding.Error, "connector-broken", filepath.Join(d.at.Data, config.Name), s.Raw.Line,
				"connector "+s.ID+" does not start: "+reason, remedy)
		}
		if len(s.Allow) > 1 && len(s.Owners) == 0 {
			d.report(finding.Warning, "connector-owners", filepath.Join(d.at.Data, config.Name), s.Raw.Line,
				fmt.Sprintf("connector %s allows %d users and names no owners: only %s, the first in allow, "+
					"can answer approvals", s.ID, len(s.Allow), s.Allow[0]),
				"List in owners the ids of the users who answer for all agents.")
		}
		if len(s.Allow) == 0 && s.Type != "webhook" && s.Type != "openai" {
			d.report(finding.Warning, "connector-nobody", filepath.Join(d.at.Data, config.Name), s.Raw.Line,
				"connector "+s.ID+" accepts no messages: allow is empty", "List the ids of allowed users in allow.")
		}
	}

	return nil
}
