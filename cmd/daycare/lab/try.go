package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"daycare/agents/providers"
	"daycare/agents/providers/cassette"
	"daycare/agents/trial"
	"daycare/cmd/daycare/daemon"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/disk"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// How a run ended.
const (
	passed = "passed"
	failed = "failed"
	broken = "error" // it could not be made
)

// A result is one run of a test.
type result struct {
	Test     string          `json:"test"`
	File     string          `json:"file"`
	Model    string          `json:"model"`
	N        int             `json:"n"`   // from 1, of --times
	How      string          `json:"how"` // live, recorded, replayed, scripted
	Status   string          `json:"status"`
	Failures []trial.Failure `json:"failures,omitempty"`
	Error    string          `json:"error,omitempty"` // why it could not be made
	Answer   string          `json:"answer"`
	trial.Usage
	MS   int64  `json:"ms"`
	Kept string `json:"kept,omitempty"` // where its workspace is, with --keep
}

// try makes one run, and takes away what it made.
func (l *laboratory) try(ctx context.Context, t trying) (r result) {
	began := time.Now()
	r = result{Test: t.test.Name, File: l.suite.shown(t.test.File), Model: t.model(), N: t.n, How: t.how}
	defer func() {
		r.MS = time.Since(began).Milliseconds()
		switch {
		case r.Error != "":
			r.Status = broken
		case len(r.Failures) > 0:
			r.Status = failed
		default:
			r.Status = passed
		}
	}()
	if t.trouble != nil {
		r.Error = t.trouble.Error()
		return r
	}

	w, err := newThrowaway(l.suite.at, t)
	if err == nil {
		err = l.inside(ctx, t, w, &r)
	}
	if err != nil {
		r.Error = err.Error()
	}
	if l.suite.options.keep && (err != nil || len(r.Failures) > 0) {
		r.Kept = w.dir
		return r
	}
	if err := w.remove(); err != nil && r.Error == "" {
		r.Error = err.Error()
	}

	return r
}

// inside runs the test in a workspace that is there.
func (l *laboratory) inside(ctx context.Context, t trying, w throwaway, r *result) (err error) {
	p, tape, err := l.ask(t, blurOf(t.test, w))
	if err != nil {
		return err
	}
	maker := func(workspace.Place, config.Provider, func() string) (providers.Provider, error) { return p, nil }
	client, stop, err := daemon.InsideWith(ctx, daemon.Options{Place: w.at(), Provider: maker})
	if err != nil {
		return fmt.Errorf("start the engine of the test: %w", err)
	}
	defer func() { err = errors.Join(err, stop()) }()

	within, cancel := context.WithTimeoutCause(ctx, t.test.Timeout, errTime)
	defer cancel()
	s := &session{client: client, test: t.test, where: w, judge: &judge{caller: providers.Caller{Chain: []providers.Provider{p}},
		price: l.chain.Price}, seen: map[string]bool{}, due: map[string]string{}}
	if err = s.begin(within, t.subject); err == nil {
		err = s.talk(within)
	}
	r.Answer, r.Usage, r.Failures = s.run.Answer, s.run.Usage, s.failed
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errTime):
		_, _ = client.Stop(ctx, s.agent, "") // the engine ends in a moment
		late := trial.Failure{Expected: fmt.Sprintf("the test ends within %s", t.test.Timeout), Got: s.standing()}
		r.Failures = append([]trial.Failure{late}, r.Failures...)
		return nil
	case err != nil:
		return err
	}

	return l.concluded(t, tape, s.run.Reason, r)
}

// errTime is the cause of the end of a test that takes too long.
var errTime = errors.New("the test takes too long")

// blurOf is what of a run is not the same in the next.
func blurOf(t trial.Test, w throwaway) cassette.Blur {
	home := daemon.CommandHomes(w.at().Data)
	b := cassette.Blur{Names: []cassette.Name{{Text: home, As: "$HOMES"}, {Text: w.dir, As: "$WORKSPACE"},
		{Text: filepath.Base(w.dir), As: "$NAME"}}}
	for _, pattern := range t.Ignore {
		b.Ignore = append(b.Ignore, regexp.MustCompile(pattern)) // which was checked
	}

	return b
}

// concluded ends a run with a cassette: it is kept, or compared with what was asked. reason is that
// of the end of the newest turn: where a model failed there is nothing to keep.
func (l *laboratory) concluded(t trying, tape *cassette.Tape, reason string, r *result) error {
	switch {
	case tape == nil, t.how == recorded && reason == record.ReasonError:
		return nil
	case t.how == recorded:
		vol := disk.NewVolume(filepath.Dir(t.tape))
		err := vol.MkdirAll(filepath.Dir(t.tape))
		if err == nil {
			err = vol.WriteFile("lab.cassette", t.tape, tape.Bytes())
		}
		if err != nil {
			return fmt.Errorf("keep cassette: %w", err)
		}
		return nil
	}

	again := "record it again: daycare test --record " + l.suite.shown(t.test.File)
	if missed := tape.Missed(); len(missed) > 0 {
		m := missed[0] // what comes after it follows from it
		r.Failures = []trial.Failure{{Expected: "the requests on the cassette",
			Got: fmt.Sprintf("%s\n%s%s", m.Error(), m.Differs, again)}}
		return nil
	}
	if n := tape.Unused(); n > 0 && len(r.Failures) == 0 {
		r.Failures = []trial.Failure{{Expected: "the requests on the cassette",
			Got: fmt.Sprintf("%d of %d recorded calls were not made\n%s", n, tape.Len(), again)}}
	}

	return nil
}

// readFile reads a file of the workspace for an expectation.
func (w throwaway) readFile(path string) ([]byte, error) {
	if strings.HasPrefix(filepath.ToSlash(path), workspace.Home+"/") {
		data, _, err := beneath.Own(filepath.Join(w.dir, path), maxCopied)
		return data, err
	}
	data, err := beneath.ReadFile(w.dir, path, maxCopied)
	if errors.Is(err, beneath.ErrTooLarge) {
		err = nil
	}
	if errors.Is(err, os.ErrNotExist) {
		err = os.ErrNotExist
	}

	return data, err
}
