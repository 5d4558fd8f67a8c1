// Package fault has the list of all failures that leave daycare: each once, with its code and
// HTTP status in the API, the exit code of a command that ends with it, and what to do about it.
//
// Packages return the values of the list under names of their own (inbox.ErrFull is
// fault.InboxFull), so errors.Is finds a failure wherever it is: in the engine, behind the API
// (control.Client maps a code back to its value), in a command. An error with details is a type
// that unwraps to its fault, or has a method Fault where the advice depends on the details.
//
// faults.go is the list, exit.go are the exit codes. docs/api.md, docs/commands.md and
// docs/troubleshooting.md repeat them, and tests compare. The package imports nothing of daycare.
package fault
