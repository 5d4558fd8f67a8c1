// Package hooks is about programs of the owner that run at moments of an agent's work: what
// they read, what their answers mean, and which of them run.
//
// The protocol is that of Claude Code's hooks, so that programs written for those work here:
// JSON on standard input, an exit code and perhaps JSON on standard output. docs/hooks.md
// says what each answer does at each moment. How a program is run (its sandbox, its process
// group) is the Runner's business; cmd/daycare/daemon has the one of a workspace.
//
// The hooks of one moment run one after the other, in the order of the settings, each with
// the input as the one before it left it. The first that denies or stops ends the row. Of
// the others, ask wins over allow.
package hooks
