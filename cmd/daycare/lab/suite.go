package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"daycare/agents/trial"
	"daycare/cmd/daycare/term"
	"daycare/engine/beneath"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
	"daycare/engine/workspace"
)

// A suite is the tests of one command line.
type suite struct {
	app     *term.App
	options testOptions
	at      workspace.Place // of the workspace whose agents are tested
	paths   []string

	printing sync.Mutex
}

func newSuite(_ context.Context, c *term.App, o testOptions, paths []string) (*suite, error) {
	at, err := c.MadePlace()
	if err != nil {
		return nil, err
	}
	for i, path := range paths {
		if paths[i], err = filepath.Abs(path); err != nil {
			return nil, err
		}
		if !term.Exists(path) {
			return nil, term.NotFound("", "there is no file or folder %s", path)
		}
	}

	return &suite{app: c, options: o, at: at, paths: paths}, nil
}

// files lists the files with tests, sorted.
func (s *suite) files() (all []string, err error) {
	home := s.at.Data
	places := s.paths
	if len(places) == 0 {
		places = []string{filepath.Join(home, "tests"), filepath.Join(home, "agents")}
	}

	for _, place := range places {
		if strings.HasSuffix(place, trial.Suffix) {
			all = append(all, place)
			continue
		}
		for _, pattern := range []string{"*" + trial.Suffix, "*/*" + trial.Suffix} {
			found, err := disk.Glob(place, pattern)
			if err != nil {
				return nil, fmt.Errorf("look for tests: %w", err)
			}
			all = append(all, found...)
		}
	}

	slices.Sort(all)
	return slices.Compact(all), nil
}

// maxTest bounds what is read of a file with a test; trial says how long it may be.
const maxTest = 16 << 20

// tests reads all tests. A mistake in one of them is the error: it would be a test that does
// not test what it says.
func (s *suite) tests() ([]trial.Test, error) {
	files, err := s.files()
	if err != nil {
		return nil, err
	}
	only := regexp.MustCompile(s.options.only) // which was checked
	var all []trial.Test
	var found []finding.Finding
	for _, file := range files {
		data, _, err := beneath.Own(file, maxTest)
		if err != nil {
			return nil, fmt.Errorf("read test: %w", err)
		}
		t, wrong := trial.Parse(s.shown(file), data)
		t.File = file
		found = append(found, wrong...)
		if only.MatchString(t.Name) {
			all = append(all, t)
		}
	}

	switch err := finding.Join(found); {
	case err != nil:
		return nil, &term.Problem{Code: fault.ExitUsage, Err: err}
	case len(files) == 0:
		return nil, term.NotFound("write one, such as .daycare/tests/first"+trial.Suffix+": see docs/lab.md", "there are no tests")
	case len(all) == 0:
		return nil, term.NotFound("", "no test name matches %q", s.options.only)
	}

	return all, nil
}

// shown is a path as the user would type it.
func (s *suite) shown(path string) string {
	if dir, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}

	return path
}

// run runs every test with every model, as often as wanted.
func (s *suite) run(ctx context.Context) (report, error) {
	tests, err := s.tests()
	if err != nil {
		return report{}, err
	}
	l, err := newLaboratory(ctx, s)
	if err != nil {
		return report{}, err
	}

	var plan []trying
	for _, t := range tests {
		cases, err := l.cases(ctx, t)
		if err != nil {
			return report{}, err
		}
		plan = append(plan, cases...)
	}

	results := make([]result, len(plan))
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(s.options.parallel)
	for i, p := range plan {
		group.Go(func() error {
			results[i] = l.try(inner, p)
			if inner.Err() != nil {
				return context.Cause(inner)
			}
			s.tell(results[i])
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return report{}, err
	}

	return newReport(results), nil
}

// errNoCassette: a test would have to ask a model that costs money.
var errNoCassette = errors.New("there is no cassette")
