package fault

// Exit codes. Scripts rely on them; they are part of the contract.
const (
	ExitOK          = 0
	ExitFailure     = 1
	ExitUsage       = 2
	ExitNotFound    = 3
	ExitNotRunning  = 4
	ExitDenied      = 5 // denied, or an approval is needed
	ExitDisk        = 75
	ExitTimeout     = 124
	ExitInterrupted = 130
)

// An Exit is an exit code, what an error with it is called in JSON if the API has no code for
// the error, and its meaning.
type Exit struct {
	Code        int
	Name, Means string
}

// Exits are all exit codes.
var Exits = []Exit{
	{ExitOK, "", "success"},
	{ExitFailure, "failed", "failure; the message says why and what to do"},
	{ExitUsage, "usage", "wrong usage, or a name that matches more than one thing"},
	{ExitNotFound, "not_found", "no such agent, item, file or name"},
	{ExitNotRunning, "not_running", "the command needs the daemon, which is not running"},
	{ExitDenied, "denied", "denied, or waiting for approval"},
	{ExitDisk, "disk_failed",
		"durable storage failed: accepted messages are safe, and no more are accepted until daycare is restarted"},
	{ExitTimeout, "timeout", "timeout; work on what was sent continues"},
	{ExitInterrupted, "interrupted", "interrupted"},
}

// ExitName returns what an error with an exit code is called in JSON.
func ExitName(code int) string {
	for _, e := range Exits {
		if e.Code == code {
			return e.Name
		}
	}

	return Internal
}
