// Package commands has the commands that look at a workspace and change it through the
// control API: agents, their inboxes, permissions and histories, scheduled tasks, skills,
// tools, what was spent, and the daemon itself.
//
// One file holds one command or one group. A command parses its arguments, asks the daemon
// (or, if it only reads and none runs, the files) and prints the answer: term.Read and
// term.Act do what they have in common. It decides nothing that another user interface would
// have to decide again.
package commands
