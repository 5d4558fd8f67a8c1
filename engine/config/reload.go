package config

import (
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"

	"daycare/engine/finding"
)

// A Reloader holds the configuration in force: the last good one.
type Reloader struct {
	root  string
	env   Env
	kinds []ConnectorKind

	mu      sync.Mutex // one Reload at a time, so that the newest wins
	current atomic.Pointer[Config]
}

// NewReloader loads for the first time. Without a good configuration there is
// nothing to keep: the error says why.
func NewReloader(root string, env Env, kinds ...ConnectorKind) (*Reloader, []finding.Finding, error) {
	r := &Reloader{root: root, env: env, kinds: kinds}
	c, found, err := Load(root, env, kinds...)
	if err != nil {
		return nil, found, err
	}
	r.current.Store(c)

	return r, found, nil
}

// NewDefaults holds the defaults, for whoever only looks at a workspace whose
// settings are broken.
func NewDefaults(root string, env Env, kinds ...ConnectorKind) *Reloader {
	r := &Reloader{root: root, env: env, kinds: kinds}
	r.current.Store(Default())
	return r
}

// Current is the configuration in force. Read it once per piece of work.
func (r *Reloader) Current() *Config { return r.current.Load() }

// Reload reads the files again. With a finding of severity Error the last good
// configuration stays in force.
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

// NeedRestart names the sections that differ and take effect after a restart, in the
// order of the file.
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
