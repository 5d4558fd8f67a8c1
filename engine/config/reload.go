package config

import (
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"

	"daycare/engine/finding"
)

// A Reloader holds the active configuration: the last valid one.
type Reloader struct {
	root  string
	env   Env
	kinds []ConnectorKind

	mu      sync.Mutex // one Reload at a time, so that the newest wins
	current atomic.Pointer[Config]
}

// NewReloader loads the configuration for the first time. If it is not valid there is nothing to
// keep, and the error says why.
func NewReloader(root string, env Env, kinds ...ConnectorKind) (*Reloader, []finding.Finding, error) {
	r := &Reloader{root: root, env: env, kinds: kinds}
	c, found, err := Load(root, env, kinds...)
	if err != nil {
		return nil, found, err
	}
	r.current.Store(c)

	return r, found, nil
}

// NewDefaults returns a Reloader with the defaults, for callers that only look at a workspace whose
// settings are broken.
func NewDefaults(root string, env Env, kinds ...ConnectorKind) *Reloader {
	r := &Reloader{root: root, env: env, kinds: kinds}
	r.current.Store(Default())
	return r
}

// Current returns the active configuration. Read it once per piece of work.
func (r *Reloader) Current() *Config { return r.current.Load() }

// Reload reads the files again. With a finding of severity Error the last valid configuration stays
// active.
func (r *Reloader) Reload() []finding.Finding {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, found, err := Load(r.root, r.env, r.kinds...)
	if err == nil {
		r.current.Store(c)
		return found
	}
	if finding.Join(found) == nil {
		found = append(found, finding.Finding{ID: "settings-unreadable", Severity: finding.Error,
			File: filepath.Join(r.root, Name), Reason: err.Error()})
	}

	return found
}

// NeedRestart returns the names of the sections that differ and take effect only after a restart,
// in the order of the file.
func NeedRestart(before, now *Config) (sections []string) {
	a, b := reflect.ValueOf(*before), reflect.ValueOf(*now)
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if f.Tag.Get("apply") == "restart" && !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			sections = append(sections, f.Tag.Get("json"))
		}
	}

	return sections
}
