package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"daycare/engine/changes"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/workspace"
	"daycare/tools"
)

// Options say what is out of reach whatever an agent was granted.
type Options struct {
	// Data is the absolute path of .daycare. Nothing in it can be reached but,
	// read-only, skills/, the agent's own blobs/ and attachments in files/.
	Data string
	// Attached reports whether an attachment, by its name in files/, belongs to the
	// conversation of an agent. nil: none does.
	Attached func(agent, name string) bool
	// Home is where ~ leads, and holds secrets and start files of shells beside the homes
	// that the system knows; "" asks the system.
	Home string
	// Denied are further absolute paths.
	Denied []string
	// Folders are the granted folders as they were when they were given; nil: as they
	// are now, of the workspace that holds Data.
	Folders *permission.Folders
	// TaskDir is the files folder of the agent's own scheduled task, which it may
	// read and write, "" if it has none. nil: no agent has one.
	TaskDir func(agent string) string
	// Accept is called with a path that runs something later and that a permission to write names,
	// before it is written. nil: not called.
	Accept func(path string)
	// Written is called before a tool writes or removes a file, with what it held and is going to hold;
	// an error keeps the tool from it. nil: not called.
	Written func(agent string, w changes.Written, before, after []byte) error
	// Keep stores a picture that was read, so that what the model is shown later
	// is what was read now. nil: the result names the file itself.
	Keep func(name, mimeType string, data []byte) (message.File, error)
}

// New makes the tools: read, ls, glob, grep, write, edit, apply_patch.
func New(o Options) []tools.Tool {
	b := newBase(o)
	return []tools.Tool{
		reading[readArgs]{tool[readArgs]{readSpec, b, read}, func(a readArgs) string { return a.Path }},
		reading[lsArgs]{tool[lsArgs]{lsSpec, b, ls}, func(a lsArgs) string { return a.Path }},
		reading[globArgs]{tool[globArgs]{globSpec, b, glob}, func(a globArgs) string { start, _ := a.start(); return start }},
		reading[grepArgs]{tool[grepArgs]{grepSpec, b, grep}, func(a grepArgs) string { return a.Path }},
		asking[writeArgs]{tool[writeArgs]{writeSpec, b, write}, func(a writeArgs) []string { return []string{a.Path} }},
		asking[editArgs]{tool[editArgs]{editSpec, b, edit}, func(a editArgs) []string { return []string{a.Path} }},
		asking[patchArgs]{tool[patchArgs]{patchSpec, b, applyPatch}, patched},
	}
}

type base struct {
	Options
	workspace string // "": not known
	seen      seen
	asked     tools.Asked[[]string] // paths, without symbolic links
}

func newBase(o Options) *base {
	if o.Home == "" {
		o.Home, _ = os.UserHomeDir() // none: there is nothing of it to deny
	}
	b := &base{Options: o}
	if o.Data != "" {
		b.workspace = workspace.OfData(o.Data).Dir
	}
	if o.Folders == nil {
		b.Folders = permission.NewFolders(b.workspace)
	}

	return b
}

// tool is one of the tools: A are its arguments, run does it.
type tool[A any] struct {
	spec tools.Spec
	base *base
	run  func(ctx context.Context, r *reach, args A) (tools.Result, error)
}

func (t tool[A]) Spec() tools.Spec { return t.spec }

// Run decodes the arguments, runs the tool and puts what went wrong into words.
func (t tool[A]) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if err := ctx.Err(); err != nil {
		return canceled(), nil
	}
	var args A
	if err := json.Unmarshal(whole(call.Arguments), &args); err != nil {
		return tools.Errorf("%s: the arguments do not fit: %v", t.spec.Name, err), nil
	}

	r := t.base.reach(call)
	r.approved = t.base.asked.Take(call.ID)
	res, err := t.run(ctx, r, args)
	var no *refusal
	switch {
	case err == nil:
		return res, nil
	case errors.As(err, &no):
		return tools.Result{Text: no.Error(), Status: tools.Denied}, nil
	case ctx.Err() != nil:
		return canceled(), nil
	}

	return tools.Errorf("%s", plain(err)), nil
}

func canceled() tools.Result { return tools.Result{Text: "Cancelled", Status: tools.Canceled} }

// whole lets arguments pass that are missing altogether.
func whole(args json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(args)) == 0 {
		return json.RawMessage("{}")
	}
	return args
}

// plain is an error in the words of the file system, without its own path names,
// which are relative to some folder on the way.
func plain(err error) string {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err.Error()
	case errors.As(err, &link):
		return link.Err.Error()
	}

	return err.Error()
}

// number is an integer as models write it: 10, 10.0 or "10".
type number int

func (n *number) UnmarshalJSON(data []byte) error {
	var f json.Number
	_ = json.Unmarshal(data, &f) // it stays empty for what is no number
	v, err := f.Float64()
	if err != nil || v > 1<<31 || v < -(1<<31) {
		return fmt.Errorf("%s is not a usable number", data)
	}

	*n = number(v)

	return nil
}

// A refusal says what an agent must not do, and how to request permission for it.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

func refuse(format string, args ...any) error { return &refusal{fmt.Sprintf(format, args...)} }

// missing is the refusal of a path out of every permitted folder (behaviour 7.4).
func missing(a permission.Access, shown string) error {
	return refuse("%s is outside the folders you may use; ask with request_permission for %s", shown, a.Tag())
}
