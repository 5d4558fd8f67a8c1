package cluster

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"daycare/cmd/daycare/peers"
	"daycare/cmd/daycare/term"
	"daycare/engine/address"
	"daycare/engine/cluster"
	"daycare/engine/disk"
	"daycare/engine/folders"
	"daycare/engine/inbox"
	"daycare/engine/record"
	"daycare/engine/workspace"
)

// importFor bounds how long an import takes.
const importFor = 3 * time.Hour

func importCommand(c *term.App) *cobra.Command {
	var join []string
	cmd := &cobra.Command{
		Use:   "import FOLDER",
		Short: "Import the agents of a workspace into the cluster",
		Long: "Import the agents of the workspace FOLDER into the cluster, with their attachments, tasks, memory and\n" +
			"everything else that the machines share. An agent keeps its id, and its handle if that is free. What the\n" +
			"cluster already has stays as it is and is listed. FOLDER does not change, either; do not start a daycare\n" +
			"there again. Settings, secrets and the agents' files in the workspace are not imported. Run it again to\n" +
			"import what is missing.",
		Example: "  daycare cluster import /srv/alone",
		Args:    term.Words(0, "FOLDER"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return bring(cmd.Context(), c, args[0], join)
		},
	}
	cmd.Flags().StringSliceVar(&join, "join", nil, "the `URL`s of the cluster's servers (default: those of this workspace)")

	return cmd
}

// An arrival is an agent in the answer with --json.
type arrival struct {
	ID     string `json:"id"`
	Handle string `json:"handle"` // in the cluster
	Was    string `json:"was"`    // in the workspace
	Name   string `json:"name,omitempty"`
	Kept   string `json:"kept,omitempty"` // why it was not brought

	there bool // the cluster has it already
}

// imported is the answer with --json.
type imported struct {
	Agents      []arrival `json:"agents"`
	Files       int       `json:"files"`
	Attachments int       `json:"attachments"`
	Kept        []string  `json:"kept"` // files of which the cluster has others
}

func bring(ctx context.Context, c *term.App, folder string, join []string) error {
	from := workspace.At(folder)
	home := from.Data
	if !disk.Exists(filepath.Join(home, "agents")) {
		return term.NotFound("name the folder that holds the .daycare of a workspace", "%s has no agents", home)
	}
	if disk.Held(from.Lock()) {
		return fmt.Errorf("a daemon works in %s\nend it first, with: daycare --workspace %s stop", folder, folder)
	}
	if servers, err := peers.Membership(home); err != nil || len(servers) > 0 {
		return errors.Join(err, fmt.Errorf("%s belongs to a cluster, and its agents are there\n"+
			"start it, or export that cluster first", folder))
	}
	here, err := named(c)
	if err != nil {
		return err
	}
	conf, err := reach(c, home, join)
	if err != nil {
		return err
	}
	load, err := newcomers(home)
	if err != nil {
		return err
	}

	answer := imported{Agents: []arrival{}, Kept: []string{}}
	load.Arrived = func(a cluster.Arrival) {
		one := arrival{a.ID, a.Handle, a.Was, a.Name, a.Kept, a.There}
		answer.Agents = append(answer.Agents, one)
		if !c.JSON {
			one.print(c)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, importFor)
	defer cancel()
	done, err := cluster.Import(ctx, conf, load)
	if err != nil {
		return term.Wrap(err, "import %s", folder)
	}
	answer.Files, answer.Attachments, answer.Kept = done.Files, done.Attachments, append(answer.Kept, done.Kept...)
	if c.JSON {
		return c.PrintJSON(answer)
	}
	answer.print(c)
	if slices.ContainsFunc(answer.Agents, func(a arrival) bool { return a.Kept != "" && !a.there }) {
		c.Note("to import such an agent as a new one:\n"+
			"daycare --workspace %s agents export HANDLE | daycare %s agents import -", folder, here)
	}

	return nil
}

// named is the flag that names the workspace of this machine.
func named(c *term.App) (string, error) {
	at, err := c.Place()
	if err != nil {
		return "", err
	}
	if at.Elsewhere() {
		return "--data " + at.Data, nil
	}

	return "--workspace " + at.Dir, nil
}

// print says what became of an agent.
func (a arrival) print(c *term.App) {
	switch {
	case a.Kept != "":
		c.Print("%s (%s) not imported: %s\n", a.Was, a.Name, a.Kept)
	case a.Was != a.Handle:
		c.Print("%s (%s) imported as %s\n", a.Was, a.Name, a.Handle)
	default:
		c.Print("%s (%s) brought\n", a.Was, a.Name)
	}
}

// print says what became of the rest.
func (i imported) print(c *term.App) {
	c.Print("%s of all machines and %s imported\n", term.Plural(i.Files, "file", "files"),
		term.Plural(i.Attachments, "attachment", "attachments"))
	for _, name := range i.Kept {
		c.Print("%s not imported: the cluster has a different one\n", name)
	}
}

// newcomers are the agents of a workspace.
func newcomers(home string) (load cluster.Load, err error) {
	index, _, err := address.Look(home, slog.New(slog.DiscardHandler))
	if err != nil {
		return load, fmt.Errorf("read agents: %w", err)
	}
	defer func() { err = errors.Join(err, index.Close()) }()
	for _, m := range index.All() { // by handle, so parents come first
		dir := filepath.Join(home, "agents", m.ID)
		state, _, _, err := record.ReadState(dir)
		if err != nil {
			return load, fmt.Errorf("read agent %s: %w", m.Handle, err)
		}
		read, herr := record.Settled(dir)
		empty, ierr := inbox.Settled(dir)
		if err := errors.Join(herr, ierr); err != nil {
			return load, fmt.Errorf("read agent %s: %w", m.Handle, err)
		}
		load.Agents = append(load.Agents, cluster.Newcomer{Meta: m, Ended: state.Ended != nil, Open: !read || !empty,
			Files: func() (map[string][]byte, error) { return contents(home, m.ID) }})
	}

	return load, nil
}

// contents are the files of an agent's folder, as an export has them: with nothing in them that is of this machine alone.
func contents(home, id string) (map[string][]byte, error) {
	var archive bytes.Buffer
	if err := folders.Export(home, id, &archive); err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for r := tar.NewReader(&archive); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read agent %s: %w", id, err)
		}
		name := strings.TrimPrefix(h.Name, id+"/")
		if !folders.Replicated(name) {
			continue
		}
		if files[name], err = io.ReadAll(r); err != nil {
			return nil, fmt.Errorf("read agent %s: %w", id, err)
		}
	}
}
