package lab

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"daycare/cmd/daycare/follow"
	"daycare/cmd/daycare/term"
)

// quiet is how long nothing has to change before the tests run again: editors save in steps.
const quiet = 200 * time.Millisecond

// watch runs the tests, and again after each change, until the user ends it.
func (s *suite) watch(ctx context.Context) error {
	for {
		folders := follow.Watch(ctx)
		if err := s.watched(folders); err != nil {
			folders.Close()
			return err
		}
		r, err := s.run(ctx)
		switch {
		case ctx.Err() != nil:
			folders.Close()
			return context.Cause(ctx)
		case err != nil:
			s.app.Report(err) // it is corrected in a moment
		default:
			if err := s.publish(r); err != nil {
				s.app.Report(err)
			}
		}

		if !s.app.JSON {
			s.app.Note("waiting for a change; Ctrl-C ends it")
		}
		err = settled(ctx, folders)
		folders.Close()
		if err != nil {
			return err
		}
	}
}

// settled waits for a change, and until the changes have ended.
func settled(ctx context.Context, folders *follow.Folders) error {
	if _, err := folders.Next(ctx); err != nil {
		return err
	}
	for {
		inner, cancel := context.WithTimeout(ctx, quiet)
		_, err := folders.Next(inner)
		cancel()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil
		}
	}
}

// watched adds the folders that a run depends on: those of the tests and their cassettes, of
// prompts, skills and settings.
func (s *suite) watched(folders *follow.Folders) error {
	home := s.at.Data
	seen := map[string]bool{}
	add := func(dir string) {
		if !seen[dir] && term.Exists(dir) {
			seen[dir] = true
			folders.Add(dir)
		}
	}
	add(s.at.Dir)
	add(home)
	for _, dir := range []string{"tests", "subagents", "skills"} {
		add(filepath.Join(home, dir))
	}

	files, err := s.files()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, file := range files {
		add(filepath.Dir(file))
		add(filepath.Join(filepath.Dir(file), "cassettes"))
	}

	return nil
}
