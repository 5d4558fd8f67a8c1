package term

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"daycare/cmd/daycare/machine"
	"daycare/engine/beneath"
	"daycare/engine/control"
	"daycare/engine/fault"
	"daycare/engine/workspace"
)

// dataVariable is the environment variable that is --data where neither it nor --workspace is given.
const dataVariable = "DAYCARE_DATA"

// Place is where the workspace is. With --data its own files are there, and say which workspace it is. Else it is what
// --workspace says, or the nearest folder upwards that holds .daycare or was started with --data, else the current one.
func (c *App) Place() (workspace.Place, error) {
	at, err := find(c)
	if err == nil {
		err = at.Encodable()
	}

	return at, err
}

func find(c *App) (workspace.Place, error) {
	data := c.Data
	if data == "" && c.Workspace == "" {
		data = os.Getenv(dataVariable)
	}
	if data != "" {
		return c.placeOf(data)
	}
	if c.Workspace != "" {
		dir, err := existing(c.Workspace)
		if err != nil {
			return workspace.Place{}, err
		}
		return nearest(dir, dir)
	}

	start, err := os.Getwd()
	if err != nil {
		return workspace.Place{}, fmt.Errorf("find workspace: %w", err)
	}

	return nearest(start, string(filepath.Separator))
}

// existing is the absolute path of a folder that --workspace names.
func existing(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("find workspace: %w", err)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return "", NotFound("create the folder first, or name another one with --workspace", "there is no folder %s", dir)
	case err != nil:
		return "", fmt.Errorf("find workspace: %w", err)
	case !info.IsDir():
		return "", NotFound("name the folder that contains .daycare", "%s is not a folder", dir)
	}

	return dir, nil
}

// nearest is the workspace in start or in a folder above it, up to top; without one that of start.
func nearest(start, top string) (workspace.Place, error) {
	var known []machine.Entry
	for dir := start; ; dir = filepath.Dir(dir) {
		at := workspace.At(dir)
		if info, err := os.Stat(at.Data); err == nil && info.IsDir() {
			return at, nil
		}
		if dir == start {
			known, _ = machine.List() // what cannot be read is not known
		}
		if at, err := elsewhere(known, dir); err != nil || at.Dir != "" {
			return at, err
		}
		if dir == top || dir == filepath.Dir(dir) {
			return workspace.At(start), nil
		}
	}
}

// elsewhere is the workspace in dir if this user started it with --data; the zero value if not. What the list says is
// used if the data folder says the same.
func elsewhere(known []machine.Entry, dir string) (at workspace.Place, err error) {
	for _, e := range known {
		if e.Data == "" || beneath.Real(e.Path) != beneath.Real(dir) || e.Place().Check() != nil {
			continue
		}
		if at.Dir != "" {
			return at, &Problem{Code: fault.ExitUsage, Err: fmt.Errorf("%s has several data folders: %s, %s", dir, at.Data, e.Data),
				Do: "name one of them: --data DIR"}
		}
		at = e.Place()
	}

	return at, nil
}

// placeOf is the workspace whose own files are in the folder data, or will be.
func (c *App) placeOf(data string) (at workspace.Place, err error) {
	if data, err = filepath.Abs(data); err != nil {
		return at, fmt.Errorf("find the data folder: %w", err)
	}
	at.Data = beneath.Real(data)
	if info, err := os.Stat(at.Data); err == nil && !info.IsDir() {
		return at, NotFound("name a folder with --data", "%s is not a folder", data)
	}

	home := filepath.Base(at.Data) == workspace.Home
	recorded := ""
	if !home {
		if recorded, err = workspace.Recorded(at.Data); err != nil {
			return at, err
		}
	}
	switch {
	case c.Workspace != "":
		at.Dir, err = existing(c.Workspace)
	case home:
		at.Dir = filepath.Dir(at.Data)
	case recorded != "":
		if at.Dir, err = existing(recorded); err != nil {
			return at, NotFound("if it was moved, write its new path into "+filepath.Join(at.Data, workspace.FileName),
				"%s belongs to the workspace %s, which is gone", at.Data, recorded)
		}
	case Exists(filepath.Join(at.Data, "agents")):
		return at, Misused("name it with --workspace DIR", "%s does not say which workspace its agents belong to", at.Data)
	default:
		at.Dir, err = os.Getwd()
	}
	if err != nil {
		return at, err
	}

	return suited(at, home, recorded)
}

// suited is a place whose two folders suit each other.
func suited(at workspace.Place, home bool, recorded string) (workspace.Place, error) {
	work := beneath.Real(at.Dir)
	switch {
	case home && filepath.Dir(at.Data) == work:
		return workspace.At(at.Dir), nil
	case home:
		return at, Misused("name another folder with --data", "%s belongs to the workspace %s", at.Data, filepath.Dir(at.Data))
	case at.Data == work:
		return at, Misused("leave out --data for .daycare in it, or name a folder outside of it", "%s is the workspace itself", at.Data)
	case within(at.Data, work):
		return at, Misused("name a folder that the workspace is not in", "the workspace %s is in the data folder %s", at.Dir, at.Data)
	case within(work, at.Data):
		return at, Misused("leave out --data for .daycare in it, or name a folder outside of it",
			"%s is in the workspace %s, where agents can write", at.Data, at.Dir)
	case recorded != "" && beneath.Real(recorded) == work:
		at.Dir = recorded
	case recorded != "":
		return at, at.Check()
	}

	return at, nil
}

// within reports whether path is dir, or in it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// MadePlace is Place for commands that need a workspace which was set up.
func (c *App) MadePlace() (workspace.Place, error) {
	at, err := c.Place()
	switch {
	case err != nil:
		return at, err
	case !Exists(at.Data):
		do, what := missing(at)
		return at, NotFound(do, "%s", what)
	}

	return at, at.Check()
}

// missing is what is said, and advised, in a folder without a workspace.
func missing(at workspace.Place) (do, what string) {
	if at.Elsewhere() {
		return "create one with: daycare --workspace " + at.Dir + " --data " + at.Data + " init", "there is no data folder " + at.Data
	}
	return "create one with: daycare init   (or name its folder with --workspace)", "there is no .daycare in " + at.Dir + " or above it"
}

// Reader is a client for commands that read, or edit as a user would: of the daemon
// if one runs, else of the files.
func (c *App) Reader(ctx context.Context) (*control.Client, error) {
	at, err := c.MadePlace()
	if err != nil {
		return nil, err
	}
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) {
		return c.Offline(at, c.Warn)
	}

	return client, err
}

// Daemon is a client for commands that need the daemon.
func (c *App) Daemon(ctx context.Context) (*control.Client, error) {
	at, err := c.Place()
	if err != nil {
		return nil, err
	}
	client, err := c.Dial(ctx, at)
	if errors.Is(err, control.ErrNotRunning) && !Exists(at.Data) {
		do, what := missing(at)
		return nil, fault.NotRunning.Advises(do+"\n"+fault.NotRunning.Hint).Says("%s: %s", what, fault.NotRunning.Text)
	}

	return client, err
}
