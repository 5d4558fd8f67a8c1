// Package sandbox runs a command so that it can touch what an agent was granted
// and nothing else, whatever the command is. tools/shell uses it for exec.
//
// # Levels
//
//	bwrap     Linux, bubblewrap: a view of the file system in which only the grants
//	          exist, own process ids, no network; Landlock and a system call
//	          filter inside.
//	landlock  Linux without bubblewrap: the helper makes the same view by itself
//	          where the system lets it make user namespaces. Where not, Landlock and
//	          a system call filter alone: paths that were not granted cannot be
//	          opened, no sockets can be made.
//	seatbelt  macOS, sandbox-exec with a profile of the grants.
//	none      nothing holds the command but its process group.
//
// Package probe tries them in this order. A level counts only if a program run in it
// failed at every one of a dozen ways out, so a kernel or container
// that allows less than its version promises is noticed before it matters.
//
// # The helper
//
// On Linux the daycare binary runs itself again as a helper (so does any other that imports this package): as supervisor,
// the parent of the command, which ends everything below it when the command ends,
// when told to, and when the daemon dies; and inside the sandbox, to
// restrict itself and then become the command. Restrictions of Landlock and
// seccomp cannot be taken back, so they are never applied to the daemon.
//
//	daemon ─ supervisor ─ bwrap or view ─ restrict → command
//	                                    └ relay (with View.Proxy: from loopback to the socket)
//
// The helper is the binary that runs (/proc/self/exe), never what is at its path by
// then: a command that could replace that would else run its own code outside. What
// the helper is to do (task) comes in a file without a name: command lines can be read
// by every user of the machine, and the environment of a call can hold keys.
package sandbox
