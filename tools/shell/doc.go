// Package shell runs commands for agents: the tool exec, and process for commands that
// continue in the background.
//
// A command runs in a sandbox (package sandbox) that enforces the agent's permissions,
// without network and with a scrubbed environment. Where no sandbox works, each call
// needs an approval.
//
// A command ends when its time is up, its turn is stopped, or its shell ends; processes
// that it left running are ended, too (guarantee G15). To keep one running, start it as a
// background process; a command that runs for longer than a minute becomes one. Background
// processes end with the runtime at the latest.
package shell
