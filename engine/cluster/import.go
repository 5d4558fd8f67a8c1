package cluster

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"daycare/engine/address"
	"daycare/engine/beneath"
	"daycare/engine/cuid"
	"daycare/engine/disk"
)

// A Newcomer is an agent that is brought into a cluster.
type Newcomer struct {
	address.Meta
	Ended bool
	Open  bool // it has work left
	Files func() (map[string][]byte, error)
}

// An Arrival is what became of it.
type Arrival struct {
	address.Meta        // with the handle that it has now
	Was          string // its handle before
	Kept         string // why it is not brought; "": it is
	There        bool   // the cluster has it already
}

// A Load is what an import brings.
type Load struct {
	Agents  []Newcomer // parents before their children
	Arrived func(Arrival)
}

// An Imported is what was brought beside agents: how many files of a kind, and the names of those that are not, because the
// cluster has others.
type Imported struct {
	Files, Attachments int
	Kept               []string
}

// Import brings agents into a cluster, and the attachments and what belongs to all machines from c.Root, where nothing is changed.
// What the cluster has already stays as it is there. Done again, it brings what is missing.
func Import(ctx context.Context, c Config, load Load) (done Imported, err error) {
	conn, s, err := connect(ctx, c)
	if err != nil {
		return done, err
	}
	defer conn.Close()
	all, err := readCards(ctx, s, c.Log)
	if err != nil {
		return done, err
	}
	if done.Attachments, err = importFiles(ctx, s, c); err != nil { // agents name them
		return done, err
	}
	in := importer{s, all, map[string]string{}}
	for _, one := range load.Agents {
		a, err := in.bring(ctx, one)
		if err != nil {
			return done, fmt.Errorf("import agent %s: %w", cmp.Or(one.Handle, one.ID), err)
		}
		load.Arrived(a)
	}
	if c.Shared != nil {
		done.Files, done.Kept, err = importShared(ctx, s, c)
	}

	return done, err
}

// An importer brings agents.
type importer struct {
	store   *natsStore
	all     *cards
	handles map[string]string // id -> handle, of those that were there or are
}

// bring brings one agent.
func (in importer) bring(ctx context.Context, one Newcomer) (a Arrival, err error) {
	a = Arrival{Meta: one.Meta, Was: one.Handle}
	if known, ok := in.all.known[one.ID]; ok {
		a.Handle, a.There, a.Kept = known.Handle, true, "the cluster already has it"
		in.handles[one.ID] = known.Handle
		return a, nil
	}
	if parent := one.Descriptor.ParentAgentID; parent != "" && in.handles[parent] == "" {
		known, ok := in.all.known[parent]
		if !ok {
			a.Kept = "the agent that it belongs to is not in the cluster"
			return a, nil
		}
		in.handles[parent] = known.Handle
	}
	if key := one.Descriptor.Key(); key != "" {
		id, err := in.all.Claim(key, one.ID)
		if err != nil {
			return a, err
		}
		if id != one.ID {
			a.Kept = fmt.Sprintf("agent %s has its address", cmp.Or(in.all.known[id].Handle, id))
			return a, nil
		}
	}
	if a.Handle, err = in.number(one); err != nil {
		return a, err
	}
	in.handles[one.ID] = a.Handle

	if err := in.write(ctx, one); err != nil {
		return a, err
	}
	if one.Open {
		if _, err := in.store.noteOwner(ctx, one.ID, owner{Left: true}); err != nil {
			return a, err
		}
	}

	return a, in.all.Announce(a.Meta, one.Ended)
}

// number gives an agent a handle: the one that it had, or the next that is free.
func (in importer) number(one Newcomer) (string, error) {
	parent := strings.TrimSuffix(in.handles[one.Descriptor.ParentAgentID], "/")
	after := func(serial int) string {
		if parent == "" {
			return strconv.Itoa(serial) + "/"
		}
		return parent + "/" + strconv.Itoa(serial)
	}
	had := strings.Split(strings.TrimSuffix(one.Handle, "/"), "/")
	serial, err := strconv.Atoi(had[len(had)-1])
	if err != nil {
		serial = 0
	}
	for ; ; serial++ {
		given, err := in.all.Number(after(serial), one.ID)
		if err != nil || given != "" {
			return given, err
		}
	}
}

// write begins the log of an agent with all that it has.
func (in importer) write(ctx context.Context, one Newcomer) error {
	head, err := in.store.last(ctx, one.ID)
	if err != nil {
		return err
	}
	if head.seq > 0 && !head.retired {
		return nil // an import that was cut has written it
	}
	contents, err := one.Files()
	if err != nil {
		return err
	}
	s := state{files: map[string]file{}}
	for name, data := range contents {
		s.files[name] = file{tail: data}
	}

	return links{store: in.store}.write(ctx, demand{Agent: one.ID, Last: head.seq, Above: head.n}, s, cuid.New())
}

// importFiles brings the attachments that agents were sent, and counts those that are new.
func importFiles(ctx context.Context, s *natsStore, c Config) (n int, err error) {
	dir := filepath.Join(c.Root, "files")
	list, err := disk.Glob(dir, "*.json")
	if err != nil {
		return 0, fmt.Errorf("list attachments: %w", err)
	}
	for _, path := range list {
		id := strings.TrimSuffix(filepath.Base(path), ".json")
		if !address.ValidID(id) {
			continue
		}
		reference := "file." + id + ".reference"
		if there, err := s.complete(ctx, reference); err != nil {
			return n, fmt.Errorf("look for attachment %s: %w", id, err)
		} else if there {
			continue
		}
		line, _, err := beneath.Own(path, 1<<20)
		var ref struct {
			Name string `json:"name"`
		}
		if err == nil {
			err = json.Unmarshal(line, &ref)
		}
		if err == nil && ref.Name != filepath.Base(ref.Name) {
			err = fmt.Errorf("its name is %q", ref.Name)
		}
		if err != nil {
			return n, fmt.Errorf("read attachment %s: %w", id, err)
		}
		content, _, err := beneath.Own(filepath.Join(dir, id+"__"+ref.Name), attachmentMost)
		if errors.Is(err, fs.ErrNotExist) {
			continue // someone removed it
		}
		if err == nil {
			_, err = s.handles.objects.PutBytes(ctx, "file."+id+".content", content)
		}
		if err == nil {
			_, err = s.handles.objects.PutBytes(ctx, reference, bytes.TrimSpace(line)) // as a machine keeps it
		}
		if err != nil {
			return n, fmt.Errorf("import attachment %s: %w", id, err)
		}
		n++
	}

	return n, nil
}

// attachmentMost bounds an attachment, in bytes.
const attachmentMost = 1 << 30

// importShared brings files that belong to all machines. One of which the cluster has another one stays as it is there, but for
// a ledger, which gets the lines of both.
func importShared(ctx context.Context, s *natsStore, c Config) (n int, kept []string, err error) {
	all, err := bucketOf(ctx, s, c)
	if err != nil {
		return 0, nil, err
	}
	var names []string
	for _, top := range all.Tops {
		err := filepath.WalkDir(filepath.Join(c.Root, top), func(at string, d fs.DirEntry, err error) error {
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if name := nameIn(c.Root, at); err == nil && d.Type().IsRegular() && all.covers(name) {
				names = append(names, name)
			}
			return err
		})
		if err != nil {
			return 0, nil, fmt.Errorf("list what belongs to all machines: %w", err)
		}
	}

	slices.Sort(names)
	for _, name := range names {
		data, ok, err := all.here(name)
		if err != nil {
			return n, kept, err
		}
		there, known := all.of(name)
		switch {
		case !ok:
			kept = append(kept, name)
			continue
		case known && there.SHA == sum(data):
			continue
		case known && there.SHA != "" && !all.Ledger(name):
			kept = append(kept, name)
			continue
		case known && there.SHA != "":
			theirs, err := all.content(ctx, there)
			if err != nil {
				return n, kept, err
			}
			if data = united(theirs, data, ""); sum(data) == there.SHA {
				continue
			}
		}
		if err := all.give(ctx, name, data, there, known); err != nil {
			return n, kept, err
		}
		n++
	}

	return n, kept, nil
}
