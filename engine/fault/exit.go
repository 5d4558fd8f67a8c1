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
	{ExitOK, "", "it is done"},
	{ExitFailure, "failed", "it failed; the message says why, and what to do"},
	{ExitUsage, "usage", "the command line is wrong, or names more than one thing"},
	{ExitNotFound, "not_found", "there is no such agent, item, file or name"},
	{ExitNotRunning, "not_running", "the daemon is needed and does not run"},
	{ExitDenied, "denied", "denied, or an approval is needed first"},
	{ExitDisk, "disk_failed",
		"durable storage failed: what was accepted is safe, and nothing more is accepted until daycare is started again"},
	{ExitTimeout, "timeout", "it took longer than allowed; what was sent goes on"},
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
