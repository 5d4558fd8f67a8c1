package inspect

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"daycare/cmd/daycare/doctor"
	"daycare/cmd/daycare/plugins"
	"daycare/engine/beneath"
	"daycare/engine/config"
	"daycare/engine/control"
	"daycare/engine/disk"
	"daycare/engine/fault"
	"daycare/engine/finding"
)

// shared are the files that people edit and that belong to no agent, by their patterns in
// .daycare. Agents write in none of their folders.
var shared = []string{"settings.yaml", "SOUL.md", "USER.md", "AGENTS.md", "cron/*/TASK.md", "cron/*/MEMORY.md", "heartbeat/*.md",
	"subagents/*.md", "skills/*/SKILL.md", "commands/*.md"}

// maxShared bounds such a file, in bytes.
const maxShared = 1 << 20

// SharedFiles lists the files that are there.
func (n Inspector) SharedFiles(context.Context) (list []control.SharedFile, err error) {
	for _, pattern := range shared {
		paths, err := disk.Glob(n.Data, pattern)
		if err != nil {
			return nil, fmt.Errorf("list files: %w", err)
		}
		for _, at := range paths {
			rel, err := filepath.Rel(n.Data, at)
			_, info, oerr := beneath.Own(at, maxShared)
			if err == nil && oerr == nil {
				list = append(list, control.SharedFile{Name: filepath.ToSlash(rel), Schema: doctor.SchemaNameOf(at), Bytes: info.Size(),
					ChangedAt: info.ModTime().UTC()})
			}
		}
	}

	return list, nil
}

// ReadShared reads one; one that is missing is empty.
func (n Inspector) ReadShared(_ context.Context, name string) (content []byte, hash string, err error) {
	full, err := n.place(name)
	if err != nil {
		return nil, "", err
	}
	content, err = read(full)
	if err != nil {
		return nil, "", err
	}
	if name == config.Name {
		err = n.noSecrets(content)
	}

	return content, hashOf(content), err
}

// WriteShared publishes a text, as if an editor had saved it.
func (n Inspector) WriteShared(ctx context.Context, name string, content []byte, hash string) (string, error) {
	full, err := n.place(name)
	if err != nil {
		return "", err
	}
	found, err := doctor.CheckText(n.Data, name, content)
	if err != nil {
		return "", asInvalid("name", err)
	}
	if finding.Join(found) != nil {
		return "", &control.Unfit{Findings: found}
	}

	before, err := read(full)
	if err != nil {
		return "", err
	}
	if hashOf(before) != hash {
		return "", n.changed(name, before)
	}
	vol := disk.NewVolume(n.Data)
	base := before
	if len(before) == 0 && !disk.Exists(full) {
		base = nil
		err = vol.MkdirAll(filepath.Dir(full))
	}
	if err == nil {
		_, err = vol.Exchange("shared", full, content, base)
	}
	if errors.Is(err, disk.ErrChanged) {
		now, rerr := read(full)
		if rerr != nil {
			return "", rerr
		}
		return "", n.changed(name, now)
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", name, err)
	}

	return hashOf(content), nil
}

// place is the path of a file on the list.
func (n Inspector) place(name string) (string, error) {
	fits := func(pattern string) bool {
		ok, err := path.Match(pattern, name)
		return ok && err == nil
	}
	hidden := strings.HasPrefix(name, ".") || strings.Contains(name, "/.")
	if hidden || !filepath.IsLocal(filepath.FromSlash(name)) || !slices.ContainsFunc(shared, fits) {
		return "", fault.NotEditable.Says("%q cannot be edited here; editable files: %s", name, strings.Join(shared, ", "))
	}

	return filepath.Join(n.Data, filepath.FromSlash(name)), nil
}

// changed is the conflict with what the file has now, unless that has a secret.
func (n Inspector) changed(name string, now []byte) error {
	if name == config.Name {
		if err := n.noSecrets(now); err != nil {
			return err
		}
	}

	return &control.Conflict{Content: string(now), Hash: hashOf(now)}
}

// noSecrets refuses settings in which a key or a token stands: the API never shows one.
func (n Inspector) noSecrets(text []byte) error {
	hint := "move keys and tokens to auth.json with: daycare auth set ID   (or edit with: daycare config edit)"
	conf, _, err := config.LoadText(n.Data, text, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return &control.Invalid{Field: "name", Reason: "settings.yaml has errors, so daycare cannot recognise keys and tokens in it",
			Hint: "correct it with: daycare config edit"}
	}
	clean, err := conf.Scrub(text)
	if err != nil || !bytes.Equal(clean, text) {
		return &control.Invalid{Field: "name", Reason: "settings.yaml contains a key or a token, which is not shown", Hint: hint}
	}

	return nil
}

func read(full string) ([]byte, error) {
	content, _, err := beneath.Own(full, maxShared)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", filepath.Base(full), err)
	}

	return content, nil
}

func hashOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}
