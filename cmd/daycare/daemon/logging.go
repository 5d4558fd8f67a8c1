package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"

	"daycare/cmd/daycare/logfile"
	"daycare/cmd/daycare/tracing"
	"daycare/cmd/daycare/version"
	"daycare/engine/config"
	"daycare/engine/disk"
)

// openLog makes the log of the settings: JSON lines in a file, and on the terminal
// what a user should see at once. No secret that the settings know of gets into
// either.
func (r *Daemon) openLog() error {
	c := r.settings.Current()
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil {
		return fmt.Errorf("log level %q: %w", c.Log.Level, err)
	}

	hide := r.secrets.Attr
	handlers := []slog.Handler{terminalHandler(os.Stderr, c.Log.Format, r.heard(level), hide)}
	if path := logfile.Path(r.at.Data, c); path != "" {
		f, err := logfile.Open(path, logfile.Bytes, logfile.Kept)
		if err != nil {
			return err
		}
		r.logFile = f
		handlers = append(handlers, slog.NewJSONHandler(f, &slog.HandlerOptions{Level: level, ReplaceAttr: stamped(hide)}))
	}

	r.log = slog.New(slog.NewMultiHandler(handlers...))
	r.log.Info("daycare started", "version", version.Number, "pid", os.Getpid(), "workspace", r.at.Dir)
	return nil
}

// newTracer makes what sends traces; nil, and a note, where that cannot be.
func newTracer(ctx context.Context, r *Daemon, c *config.Config) *tracing.Tracer {
	headers, err := headersOf(c, c.Tracing.Headers)
	var t *tracing.Tracer
	if err == nil {
		o := tracing.Options{Endpoint: c.Tracing.Endpoint, Headers: map[string]string{}, Version: version.Number,
			Events: r.events, Log: r.log}
		for name := range headers {
			o.Headers[name] = headers.Get(name)
		}
		o.Name = func(agent string) string {
			meta, _ := r.index.Get(agent)
			return meta.Name
		}
		t, err = tracing.New(ctx, o)
	}
	if err != nil {
		r.log.Warn("nothing is traced", "err", err)
		r.notes = append(r.notes, err.Error())
		return nil
	}

	return t
}

// heard is how loud something must be to be shown on the terminal: the banner says
// what runs and routine is in the file, unless the settings ask for another level
// than the usual.
func (r *logging) heard(set slog.Level) slog.Level {
	if set == slog.LevelInfo {
		return r.loud
	}
	return set
}

// stamped writes the time of a line as all files have times, in UTC.
func stamped(hide func([]string, slog.Attr) slog.Attr) func([]string, slog.Attr) slog.Attr {
	return func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey && a.Value.Kind() == slog.KindTime {
			return slog.String(a.Key, a.Value.Time().UTC().Format(disk.StampLayout))
		}
		return hide(groups, a)
	}
}

// terminalHandler writes for a user.
func terminalHandler(w io.Writer, format string, level slog.Level, hide func([]string, slog.Attr) slog.Attr) slog.Handler {
	if format == "json" {
		return slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: hide})
	}
	return tint.NewTextHandler(w, &tint.Options{Level: level, TimeFormat: time.TimeOnly, ReplaceAttr: hide, NoColor: !colours(w)})
}

func colours(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" {
		return false
	}
	info, err := f.Stat()

	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
