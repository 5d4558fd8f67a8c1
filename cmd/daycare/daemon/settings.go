package daemon

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"daycare/cmd/daycare/models"
	"daycare/cmd/daycare/plugins"
	"daycare/engine/address"
	"daycare/engine/apitoken"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/event"
	"daycare/engine/finding"
	"daycare/engine/record"
	"daycare/engine/watch"
)

// A reloader applies what is changed while the daemon runs.
type reloader struct{ *Daemon }

// reload reads the settings again. What is good counts at once: models and limits
// from each agent's next turn, connectors when those before have ended. With invalid
// settings the last valid ones stay active.
func (r reloader) reload(ctx context.Context) []finding.Finding {
	r.reloading.Lock()
	defer r.reloading.Unlock()
	before := r.settings.Current()
	found := r.settings.Reload()
	now := r.settings.Current()
	r.tokens.Refresh()
	r.hideSecrets()
	r.mcp.Configure(workbench{r.Daemon}.mcpServers())
	path := filepath.Join(r.at.Data, config.Name)
	list := filepath.Join(r.at.Data, models.FileName)
	if now != before || models.StampOf(list) != r.models.Load().Stamp {
		chain, err := models.New(ctx, now, r.at, r.keyOf, r.provider)
		if err == nil {
			err = chain.CheckAll()
		}
		if err != nil && chain != nil && len(chain.Misrouted()) > 0 {
			found = append(found, chain.Misrouted()...)
		} else if err != nil {
			found = append(found, finding.Finding{ID: "settings-providers", Severity: finding.Error, File: path, Reason: err.Error()})
		} else {
			r.models.Store(chain)
		}
		r.asks.SetExpiry(now.Permissions.Expiry)
		r.system.OwnersChanged()
		budgets{r.Daemon}.roomAgain()
		r.clocks.Changed() // the time zone and the heartbeat's pause may be others
		found = append(found, r.connect()...)
		found = append(found, needRestart(path, before, now)...)
	}
	e := event.Event{Type: event.ConfigReloaded, Body: event.File{File: path, Text: "settings reloaded"}}
	if err := finding.Join(found); err != nil {
		body := event.File{File: path, Text: err.Error()}
		if first := found[slices.IndexFunc(found, isError)]; first.File == path {
			body.Line, body.Column = first.Line, first.Column
		}
		e = event.Event{Type: event.ConfigInvalid, Body: body}
	}
	r.events.Emit(e)
	r.readSettings(found)
	return found
}

func isError(f finding.Finding) bool { return f.Severity == finding.Error }

// needRestart names the sections that were changed and take effect after a restart.
func needRestart(path string, before, now *config.Config) (found []finding.Finding) {
	for _, name := range config.NeedRestart(before, now) {
		found = append(found, finding.Finding{ID: "settings-need-restart", Severity: finding.Warning, File: path,
			Reason: name + " takes effect after a restart", Remedy: "daycare stop, then daycare start"})
	}

	return found
}

// rereads are the pauses after which broken or emptied settings are read again before they
// count.
var rereads = [...]time.Duration{200 * time.Millisecond, 500 * time.Millisecond, time.Second}

// pausing waits, and reports whether ctx still lasts.
func pausing(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// textSeparator is between the files in settingsText; no file that is accepted has it.
const textSeparator = "\x00"

// settingsText is what the files of the settings hold.
func (r reloader) settingsText() string {
	settings, _ := beneath.Whole(filepath.Join(r.at.Data, config.Name))
	auth, _ := beneath.Whole(filepath.Join(r.at.Data, config.AuthName))
	project := config.ReadProject(r.at.Data)
	return strings.Join([]string{string(settings), string(auth), string(project.Content), string(project.Trusted)}, textSeparator)
}

// lost ends the daemon whose folder is not at its place any more.
func (r reloader) lost() error {
	return r.vol.Fail(fmt.Errorf("%s was moved, removed or replaced while daycare was running", r.at.Data))
}

// watchPlace ends the daemon when its folder, or one above it, is moved: everything that
// it would write has another path from then on.
func (r reloader) watchPlace(ctx context.Context) error {
	for ctx.Err() == nil {
		real, err := filepath.EvalSymlinks(r.at.Data)
		if err == nil {
			var dirs []string
			for dir := real; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
				dirs = append(dirs, dir)
			}
			err = watch.Moved(ctx, dirs, r.lock.Lost)
		}
		if r.lock.Lost() {
			return r.lost()
		}
		if err != nil && ctx.Err() == nil {
			r.log.Warn("cannot detect a move of the workspace", "err", err)
			<-ctx.Done()
		}
	}

	return nil
}

// watchSettings reads the settings again when their file changes, and ends the daemon
// when the folder in which it keeps everything is not there any more.
func (r reloader) watchSettings(ctx context.Context) error {
	hints := make(chan struct{}, 1)
	hints <- struct{}{} // look once the files are watched: they may have been saved while daycare started
	watched := []string{config.Name, config.AuthName, apitoken.Name, filepath.Base(r.at.Lock()),
		config.ProjectName, config.TrustedName}
	hear := func(h watch.Hint) {
		if !h.Overflow && !slices.ContainsFunc(h.Names, func(name string) bool { return slices.Contains(watched, name) }) {
			return
		}
		select {
		case hints <- struct{}{}:
		default:
		}
	}
	r.watcher.Add(r.at.Data, watch.Options{}, hear)
	defer r.watcher.Remove(r.at.Data)
	r.watcher.Add(r.at.Dir, watch.Options{Ignore: func(name string) bool { return name != config.ProjectName }}, hear)
	defer r.watcher.Remove(r.at.Dir)
	last := r.readAtStart
	for {
		select {
		case <-hints:
			if r.lock.Lost() {
				return r.lost()
			}
			r.tokens.Refresh() // first: what was revoked ends at once
			if r.settingsText() == last {
				continue // a hint may mean nothing: after an overflow, or by time where nothing can be watched
			}
			for _, pause := range rereads {
				if r.saved(last) || !pausing(ctx, pause) {
					break
				}
			}
			last = r.settingsText()
			r.reload(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// saved reports whether the files of the settings, which were last before, look as if the program that
// saves them is done: an editor may write in pieces, and many empty or remove a file first, which without
// a pause would end every connector.
func (r reloader) saved(last string) bool {
	before := strings.Split(last, textSeparator)
	for i, text := range strings.Split(r.settingsText(), textSeparator) {
		if text == "" && i < len(before) && before[i] != "" {
			return false
		}
	}
	_, _, err := config.Load(r.at.Data, os.LookupEnv, plugins.ConnectorChecks...)

	return err == nil
}

// choice is the model of agents of a type: their own choice, else that of the settings.
func (r *conf) choice(t address.Type, own record.Model) record.Model {
	if own.ID == "" && own.Model == "" {
		routed := r.models.Load().Route(string(t))
		own.ID, own.Model = routed.ID, routed.Model
	}

	return own
}

// answers names the model of an agent, and how many tokens of context there is room for: its
// window, or what the settings allow at most.
func (r *conf) answers(t address.Type, own record.Model) (model string, window int) {
	chain, choice := r.models.Load(), r.choice(t, own)
	window = r.settings.Current().Agents.EmergencyContextLimit
	if w := chain.Window(choice); w > 0 {
		window = min(window, w)
	}

	return chain.Answers(choice), window
}

// budgetOf is how many US dollars an agent may cost, 0 for any number: what its own state says, and
// for one at the head of a family what the settings say, whichever is less.
func (r *conf) budgetOf(d address.Descriptor, own *record.Budget) (usd float64) {
	if own != nil {
		usd = own.USD
	}
	if each := r.settings.Current().Budget.PerAgent.USD; d.ParentAgentID == "" && each > 0 && (usd == 0 || each < usd) {
		usd = each
	}

	return usd
}

// hideSecrets makes what the settings know as secret unprintable, from now on.
func (r *conf) hideSecrets() {
	var values []string
	for _, s := range r.settings.Current().Secrets() {
		values = append(values, s.Reveal())
	}
	r.secrets.Set(values)
}

// keyOf is the key of a provider as the active settings have it: a new one
// applies from the next request on.
func (r *conf) keyOf(p config.Provider) func() string {
	return func() string {
		for _, now := range r.settings.Current().Providers {
			if now.ID == p.ID {
				return now.APIKey.Reveal()
			}
		}

		return p.APIKey.Reveal()
	}
}
