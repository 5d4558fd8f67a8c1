package fault

import (
	"context"
	"io/fs"
	"net/http"
)

// What the request has wrong.
var (
	Malformed = &Fault{Code: "malformed", Status: http.StatusBadRequest, Exit: ExitFailure, Text: "the request cannot be read",
		About: "not JSON, an unknown member, a query parameter that cannot be used (`field` says which)"}
	Unauthorized = &Fault{Code: "unauthorized", Status: http.StatusUnauthorized, Exit: ExitFailure,
		Text:  "the token is missing, wrong, expired or revoked",
		Hint:  "send it as Authorization: Bearer TOKEN; make one with: daycare auth token create NAME",
		About: "no token, or one that is wrong, expired or revoked"}
	Forbidden = &Fault{Code: "forbidden", Status: http.StatusForbidden, Exit: ExitFailure,
		Text:  "requests from other web pages are refused",
		About: "another server's name in `Host`, another page's `Origin`"}
	Scope = &Fault{Code: "scope", Status: http.StatusForbidden, Exit: ExitFailure, Text: "the token does not have the scope",
		About: "the token may not do this (`scope` says what it would need)"}
	OtherVersion = &Fault{Exit: ExitFailure, Text: "the daemon has another version", Hint: "restart it: daycare restart"}
	NoRoute      = &Fault{Code: "no_route", Status: http.StatusNotFound, Exit: ExitFailure, Text: "no such route",
		About: "also for a method that the path does not have"}
	Invalid = &Fault{Code: "invalid", Status: http.StatusUnprocessableEntity, Exit: ExitUsage, Text: "a field cannot be used",
		About: "a value that cannot be used (`field` says which)"}
	InvalidConfig = &Fault{Code: "invalid_config", Status: http.StatusUnprocessableEntity, Exit: ExitFailure,
		Text: "the settings have mistakes", Hint: "the last good settings stay in force",
		About: "mistakes in the settings (`findings`: file, line, column, reason, remedy)"}
	InvalidFile = &Fault{Code: "invalid_file", Status: http.StatusUnprocessableEntity, Exit: ExitFailure,
		Text: "the file has mistakes", Hint: "nothing was changed",
		About: "mistakes in the file that was sent (`findings`)"}
	TooLarge = &Fault{Code: "too_large", Status: http.StatusRequestEntityTooLarge, Exit: ExitFailure, Text: "message is too large",
		Hint: "put the text into a file and send its path", Route: "send long texts as a file",
		About: "a text over 1 MiB, a body over its limit"}
	FileTooLarge = &Fault{Code: "file_too_large", Status: http.StatusRequestEntityTooLarge, Exit: ExitFailure,
		Text:  "file is too large",
		Hint:  "say where the file is instead of sending it: the agent can read it there",
		Route: "put it into the workspace and name its path in the text",
		About: "files over 20 MiB together"}
)

// What does not exist.
var (
	UnknownAgent = &Fault{Code: "unknown_agent", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such agent",
		Hint: "list agents with: daycare agents ls", Route: "GET /v1/agents lists them"}
	UnknownItem = &Fault{Code: "unknown_item", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such item waits",
		Hint:  "list what waits with: daycare inbox ls",
		Route: "it may be done already; GET /v1/agents/{id}/inbox lists what waits"}
	NoAsk = &Fault{Code: "unknown_permission", Status: http.StatusNotFound, Exit: ExitNotFound,
		Text: "no such permission request",
		Hint: "list what waits for an answer with: daycare permissions ls", Route: "GET /v1/permissions lists what waits for an answer"}
	NoFile = &Fault{Code: "unknown_file", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such file",
		Hint: "send the path of the file instead", Route: "send the file's path or its content instead",
		About: "no attachment has that id"}
	NoRecord = &Fault{Code: "unknown_record", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such record",
		Hint:  "see the records, each with its seq, with: daycare agents tail ID",
		Route: "GET /v1/agents/{id}/history shows them, each with its seq",
		About: "the history has no such record or mark"}
	NoTrash = &Fault{Code: "not_in_trash", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "not in the trash",
		Hint: "list what is there with: daycare agents trash", Route: "GET /v1/trash lists what is"}
	NoHandFile = &Fault{Code: "unknown_file_name", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "not a file that is edited",
		Hint: "descriptor.json, state.json and history.jsonl are edited"}
	NoTask = &Fault{Code: "unknown_task", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such task",
		Hint: "list them with: daycare cron ls   or: daycare heartbeat ls", Route: "GET /v1/cron and /v1/heartbeats list them",
		About: "no task, or no heartbeat item"}
	NoCommand = &Fault{Code: "unknown_command", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such command",
		Hint: "list them with: daycare commands ls", Route: "GET /v1/commands lists them",
		About: "no command of that name in `.daycare/commands` or `.claude/commands`"}
	NoSecret = &Fault{Exit: ExitNotFound, Text: "no such secret", Hint: "list them with: daycare auth ls"}
)

// What the state of things does not allow.
var (
	Ambiguous = &Fault{Code: "ambiguous", Status: http.StatusConflict, Exit: ExitUsage, Text: "that fits several agents",
		Hint: "say which one by handle or id", About: "a name or prefix of several agents (`ref`, `candidates`)"}
	Decided = &Fault{Code: "decided", Status: http.StatusConflict, Exit: ExitDenied, Text: "already answered",
		Hint: "see what waits with: daycare permissions ls", Route: "the first answer counts",
		About: "the request was answered before (`decided`: who answered, what, when)"}
	Conflict = &Fault{Code: "file_changed", Status: http.StatusConflict, Exit: ExitFailure, Text: "the file was changed meanwhile",
		Hint: "make the change again in the content that is sent along", About: "`conflict`: the content as it is, and its hash"}
	Taken = &Fault{Code: "taken", Status: http.StatusConflict, Exit: ExitFailure, Text: "there is such an agent already",
		Hint: "see who has it with: daycare agents ls", Route: "remove or rename the other one first"}
	ItemTaken = &Fault{Code: "item_taken", Status: http.StatusConflict, Exit: ExitFailure, Text: "item is already being worked on",
		Hint: "stop the turn that works on it with: daycare agents stop ID", Route: "POST /v1/agents/{id}/stop cancels the turn"}
	Busy = &Fault{Code: "busy", Status: http.StatusConflict, Exit: ExitFailure, Text: "the agent has work that is not finished",
		Hint: "wait until it is idle, or say --force", Route: "wait until it is idle, or use force"}
	TaskBusy = &Fault{Code: "task_busy", Status: http.StatusConflict, Exit: ExitFailure, Text: "it is running already",
		Hint: "it is at work already; see: daycare cron runs NAME", Route: "wait until the run has ended",
		About: "a run of the task or heartbeat is under way"}
	AgentLimit = &Fault{Code: "agent_limit", Status: http.StatusConflict, Exit: ExitFailure, Text: "too many agents",
		Hint:  "end one with daycare agents kill or rm, or raise the setting that is named",
		Route: "end or remove one, or raise the setting that the message names",
		About: "as many agents as a setting allows, such as `agents.maxSpawned`; nothing was made"}
	Protected = &Fault{Code: "protected", Status: http.StatusConflict, Exit: ExitFailure, Text: "this agent cannot be killed",
		Hint: "use daycare agents reset or daycare agents rm instead", Route: "reset or remove it instead"}
	InboxFull = &Fault{Code: "inbox_full", Status: http.StatusTooManyRequests, Exit: ExitFailure, Text: "inbox is full",
		Hint: "let the agent work off its inbox, then try again", Route: "nothing was accepted; offer it again later",
		About: "nothing was accepted; `Retry-After` says when to try again"}
)

// What daycare or its machine cannot do now.
var (
	DiskFull = &Fault{Code: "disk_full", Status: http.StatusServiceUnavailable, Exit: ExitFailure,
		Text: "no space left on the disk of the workspace",
		Hint: "make room on the disk that holds .daycare, then try again"}
	DiskFailed = &Fault{Code: "disk_failed", Status: http.StatusServiceUnavailable, Exit: ExitDisk, Text: "durable storage failed",
		Hint:  "check the disk that holds .daycare, then start daycare again; what was acknowledged is safe",
		Route: "check the disk, then start daycare again; what was acknowledged is safe"}
	Cut = &Fault{Code: "cut", Status: http.StatusServiceUnavailable, Exit: ExitNotRunning,
		Text:  "the connection ended before the turn did",
		Hint:  "start it again, and it goes on: daycare start --background",
		Route: "post it again with the same dedupe key to get the rest",
		About: "a stream ended before its turn did; what was accepted is safe"}
	NotRunning = &Fault{Code: "not_running", Status: http.StatusServiceUnavailable, Exit: ExitNotRunning,
		Text: "the daemon is not running",
		Hint: "start it with: daycare start --background", Route: "start it with: daycare start",
		About: "the operation needs the daemon"}
	ShuttingDown = &Fault{Code: "shutting_down", Status: http.StatusServiceUnavailable, Exit: ExitFailure, Text: "inbox is closed",
		Hint: "offer it again when daycare is back", About: "the daemon is about to end; nothing was accepted"}
	Timeout = &Fault{Code: "timeout", Status: http.StatusServiceUnavailable, Exit: ExitTimeout, err: context.DeadlineExceeded,
		Text: "it took longer than allowed"}
	Canceled = &Fault{Code: "canceled", Status: http.StatusServiceUnavailable, Exit: ExitInterrupted, err: context.Canceled,
		Text: "the caller went away"}
	Interrupted = &Fault{Exit: ExitInterrupted, Text: "interrupted"}
	NoAccess    = &Fault{Exit: ExitFailure, err: fs.ErrPermission, Text: "permission denied",
		Hint: "check who owns the file and its mode", Route: seeLog}

	unlisted = &Fault{Code: Internal, Status: http.StatusInternalServerError, Exit: ExitFailure, Text: "a defect", Route: seeLog,
		About: "a defect; the log has more"}
)

const seeLog = "the log has more: daycare logs"

// All is the list, in the order of docs/api.md.
var All = []*Fault{
	Malformed, Unauthorized, Forbidden, Scope,
	UnknownAgent, UnknownItem, NoAsk, NoFile, NoHandFile, NoRecord, NoTask, NoTrash, NoCommand, NoRoute, OtherVersion, NoSecret,
	Ambiguous, Decided, Busy, Protected, AgentLimit, Taken, ItemTaken, TaskBusy, Conflict,
	TooLarge, FileTooLarge, Invalid, InvalidConfig, InvalidFile, InboxFull,
	DiskFull, DiskFailed, NotRunning, ShuttingDown, Cut, Timeout, Canceled, Interrupted, NoAccess, unlisted,
}
