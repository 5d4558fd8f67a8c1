package files

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"daycare/tools"
)

// maxEntries is how many names one listing shows.
const maxEntries = 500

type lsArgs struct {
	Path string `json:"path"`
}

func ls(ctx context.Context, r *reach, a lsArgs) (tools.Result, error) {
	p, err := r.locate(a.Path, false)
	if err != nil {
		return tools.Result{}, err
	}
	defer p.close()

	switch {
	case p.info == nil:
		return tools.Result{}, fmt.Errorf("no such folder: %s", r.shown(p.abs))
	case !p.info.IsDir():
		return tools.Result{Text: entryLine(p, filepath.Base(p.abs), p.info) + "\n"}, nil
	}

	if err := p.into(); err != nil {
		return tools.Result{}, err
	}
	entries, err := fs.ReadDir(p.dir.FS(), ".")
	if err != nil {
		return tools.Result{}, fmt.Errorf("list %s: %s", r.shown(p.abs), plain(err))
	}

	var b strings.Builder
	shown, total := 0, 0
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return tools.Result{}, err
		}
		info, err := p.dir.Lstat(e.Name())
		if err != nil || !p.own && r.forbidden(filepath.Join(p.real, e.Name()), info) {
			continue // gone meanwhile, or not for agents
		}
		if total++; shown < maxEntries {
			b.WriteString(entryLine(p, e.Name(), info) + "\n")
			shown++
		}
	}

	switch {
	case total == 0:
		return tools.Result{Text: fmt.Sprintf("[%s is empty]", r.shown(p.abs))}, nil
	case shown < total:
		fmt.Fprintf(&b, "[%d of %d entries; use glob for the rest]\n", shown, total)
	}

	return tools.Result{Text: b.String()}, nil
}

// into opens the folder at the place.
func (p *place) into() error {
	err := p.descend(p.name, p.real, p.info)
	p.name = "."

	return err
}

func entryLine(p *place, name string, info fs.FileInfo) string {
	name = printable(name)
	switch mode := info.Mode(); {
	case mode.IsDir():
		return name + "/"
	case mode&fs.ModeSymlink != 0:
		target, err := p.dir.Readlink(info.Name())
		if err != nil {
			target = "?"
		}
		return name + " -> " + printable(target)
	case !mode.IsRegular():
		return name + "  [" + mode.Type().String() + "]"
	}

	return name + "  " + size(info.Size())
}

// printable keeps a file name on its line.
func printable(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)
}
