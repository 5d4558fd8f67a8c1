package fault

import (
	"context"
	"io/fs"
	"net/http"
)

// What the request has wrong.
var (
	Malformed = &Fault{Code: "malformed", Status: http.StatusBadRequest, Exit: ExitFailure, Text: "malformed request",
		About: "not JSON, an unknown member, or an invalid query parameter (`field` names it)"}
	Unauthorized = &Fault{Code: "unauthorized", Status: http.StatusUnauthorized, Exit: ExitFailure,
		Text:  "the token is missing, wrong, expired or revoked",
		Hint:  "send it as Authorization: Bearer TOKEN; create one with: daycare auth token create NAME",
		About: "the token is missing, wrong, expired or revoked"}
	Forbidden = &Fault{Code: "forbidden", Status: http.StatusForbidden, Exit: ExitFailure,
		Text:  "requests from other web pages are refused",
		About: "a foreign name in `Host`, or a foreign `Origin`"}
	WrongLogin = &Fault{Code: "wrong_login", Status: http.StatusUnauthorized, Exit: ExitFailure,
		Text: "the login token is wrong, used or expired", Hint: "get another one with: daycare web",
		About: "a login token of the page that is wrong, was used or is older than 5 minutes"}
	LoginLater = &Fault{Code: "login_later", Status: http.StatusTooManyRequests, Exit: ExitFailure,
		Text: "too many wrong login tokens", Hint: "wait, then get another one with: daycare web",
		About: "too many wrong login tokens; `Retry-After` says when to try again"}
	Streams = &Fault{Code: "too_many_streams", Status: http.StatusTooManyRequests, Exit: ExitFailure,
		Text: "the token has too many streams open", Hint: "end some of them, then try again",
		About: "the token, or the browser, has 256 streams open; `Retry-After` says when to try again"}
	Scope = &Fault{Code: "scope", Status: http.StatusForbidden, Exit: ExitFailure, Text: "the token lacks the scope",
		About: "the token lacks the scope (`scope` names what it needs)"}
	OtherVersion = &Fault{Exit: ExitFailure, Text: "the daemon has another version", Hint: "restart it: daycare restart"}
	NoRoute      = &Fault{Code: "no_route", Status: http.StatusNotFound, Exit: ExitFailure, Text: "no such route",
		About: "unknown path, or a method that the path does not support"}
	Invalid = &Fault{Code: "invalid", Status: http.StatusUnprocessableEntity, Exit: ExitUsage, Text: "invalid value",
		About: "an invalid value (`field` names it)"}
	InvalidConfig = &Fault{Code: "invalid_config", Status: http.StatusUnprocessableEntity, Exit: ExitFailure,
		Text: "the settings have errors", Hint: "the last valid settings stay active",
		About: "errors in the settings (`findings`: file, line, column, reason, remedy)"}
	InvalidFile = &Fault{Code: "invalid_file", Status: http.StatusUnprocessableEntity, Exit: ExitFailure,
		Text: "the file has errors", Hint: "nothing was changed",
		About: "errors in the submitted file (`findings`)"}
	TooLarge = &Fault{Code: "too_large", Status: http.StatusRequestEntityTooLarge, Exit: ExitFailure, Text: "the message is too large",
		Hint: "put the text into a file and send its path", Route: "send long texts as a file",
		About: "a text over 1 MiB, a body over its limit"}
	FileTooLarge = &Fault{Code: "file_too_large", Status: http.StatusRequestEntityTooLarge, Exit: ExitFailure,
		Text:  "the file is too large",
		Hint:  "name the path of the file instead of sending it: the agent can read it there",
		Route: "put it into the workspace and name its path in the text",
		About: "files over 20 MiB together"}
)

// What does not exist.
var (
	UnknownAgent = &Fault{Code: "unknown_agent", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such agent",
		Hint: "list agents with: daycare agents ls", Route: "GET /v1/agents lists them"}
	UnknownItem = &Fault{Code: "unknown_item", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such queued item",
		Hint:  "list queued items with: daycare inbox ls",
		Route: "it may already be done; GET /v1/agents/{id}/inbox lists queued items"}
	NoAsk = &Fault{Code: "unknown_permission", Status: http.StatusNotFound, Exit: ExitNotFound,
		Text: "no such approval request",
		Hint: "list pending approvals with: daycare permissions ls", Route: "GET /v1/permissions lists pending approvals"}
	NotGranted = &Fault{Code: "not_granted", Status: http.StatusNotFound, Exit: ExitNotFound,
		Text: "the agent does not have this permission",
		Hint: "list what it has with: daycare permissions grants ID", Route: "GET /v1/agents/{id}/grants lists what it has",
		About: "nothing was revoked: neither the agent nor those that it started have the permission"}
	NoFile = &Fault{Code: "unknown_file", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such file",
		Hint: "send the path of the file instead", Route: "send the file's path or its content instead",
		About: "no attachment has that id"}
	NoRecord = &Fault{Code: "unknown_record", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such record",
		Hint:  "list records with their seq: daycare agents tail ID",
		Route: "GET /v1/agents/{id}/history lists records with their seq",
		About: "the history has no such record or checkpoint"}
	NoTrash = &Fault{Code: "not_in_trash", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "not in the trash",
		Hint: "list removed agents with: daycare agents trash", Route: "GET /v1/trash lists removed agents"}
	NotEditable = &Fault{Code: "unknown_file_name", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "not an editable file",
		Hint: "editable files are descriptor.json, state.json and history.jsonl"}
	NoTask = &Fault{Code: "unknown_task", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such task",
		Hint: "list them with: daycare cron ls   or: daycare heartbeat ls", Route: "GET /v1/cron and /v1/heartbeats list them",
		About: "no such task or heartbeat item"}
	NoCommand = &Fault{Code: "unknown_command", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such command",
		Hint: "list them with: daycare commands ls", Route: "GET /v1/commands lists them",
		About: "no command of that name in `.daycare/commands` or `.claude/commands`"}
	NoPairing = &Fault{Code: "unknown_code", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such pairing code",
		Hint: "list pending codes with: daycare connectors pair", Route: "GET /v1/pairings lists pending codes",
		About: "no pending pairing request has this code, or it has expired"}
	NoSession = &Fault{Code: "unknown_session", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "no such session",
		Hint: "list them with: daycare web ls", Route: "GET /v1/sessions lists them",
		About: "no browser is logged in under that name"}
	NoTrace = &Fault{Code: "unknown_id", Status: http.StatusNotFound, Exit: ExitNotFound, Text: "in no history and no inbox",
		Hint: "find ids with: daycare agents tail ID --json", Route: "GET /v1/agents/{id}/history has ids",
		About: "no history and no inbox has that id"}
	NoSecret = &Fault{Exit: ExitNotFound, Text: "no such secret", Hint: "list them with: daycare auth ls"}
)

// What the state of things does not allow.
var (
	Ambiguous = &Fault{Code: "ambiguous", Status: http.StatusConflict, Exit: ExitUsage, Text: "ambiguous: it matches several agents",
		Hint: "use a handle or an id", About: "a name or prefix of several agents (`ref`, `candidates`)"}
	Decided = &Fault{Code: "decided", Status: http.StatusConflict, Exit: ExitDenied, Text: "already answered",
		Hint: "list pending approvals with: daycare permissions ls", Route: "the first answer counts",
		About: "the request was already answered (`decided`: who answered, what, when)"}
	Conflict = &Fault{Code: "file_changed", Status: http.StatusConflict, Exit: ExitFailure, Text: "the file has changed in the meantime",
		Hint:  "repeat your change in the content returned with this error",
		About: "the file has changed (`conflict`: its content and hash)"}
	Taken = &Fault{Code: "taken", Status: http.StatusConflict, Exit: ExitFailure, Text: "such an agent already exists",
		Hint: "find it with: daycare agents ls", Route: "remove or rename it first"}
	ItemTaken = &Fault{Code: "item_taken", Status: http.StatusConflict, Exit: ExitFailure, Text: "a turn is already working on the item",
		Hint: "stop the turn that works on it with: daycare agents stop ID", Route: "POST /v1/agents/{id}/stop cancels the turn"}
	Busy = &Fault{Code: "busy", Status: http.StatusConflict, Exit: ExitFailure, Text: "the agent has unfinished work",
		Hint: "wait until it is idle, or use --force", Route: "wait until it is idle, or use force"}
	TaskBusy = &Fault{Code: "task_busy", Status: http.StatusConflict, Exit: ExitFailure, Text: "already running",
		Hint: "see its runs with: daycare cron runs NAME", Route: "wait until the run has ended",
		About: "the task or heartbeat is already running"}
	Applying = &Fault{Code: "applying", Status: http.StatusConflict, Exit: ExitFailure,
		Text: "another command is changing these files", Hint: "try again when it has ended", Route: "try again when it has ended",
		About: "another command is applying changes or taking files back"}
	AgentLimit = &Fault{Code: "agent_limit", Status: http.StatusConflict, Exit: ExitFailure, Text: "too many agents",
		Hint:  "end one with daycare agents kill or rm, or raise the setting that the message names",
		Route: "end or remove one, or raise the setting that the message names",
		About: "a limit in the settings is reached, such as `agents.maxSpawned`; no agent was created"}
	Protected = &Fault{Code: "protected", Status: http.StatusConflict, Exit: ExitFailure, Text: "this agent cannot be killed",
		Hint: "use daycare agents reset or daycare agents rm instead", Route: "reset or remove it instead"}
	InboxFull = &Fault{Code: "inbox_full", Status: http.StatusTooManyRequests, Exit: ExitFailure, Text: "the inbox is full",
		Hint: "wait until the agent has worked through its inbox, then try again", Route: "nothing was accepted; send it again later",
		About: "nothing was accepted; `Retry-After` says when to try again"}
)

// What daycare or its machine cannot do now.
var (
	DiskFull = &Fault{Code: "disk_full", Status: http.StatusServiceUnavailable, Exit: ExitFailure,
		Text: "no space left on the disk of the workspace",
		Hint: "free some space on the disk that holds .daycare, then try again"}
	DiskFailed = &Fault{Code: "disk_failed", Status: http.StatusServiceUnavailable, Exit: ExitDisk, Text: "durable storage failed",
		Hint:  "check the disk that holds .daycare, then restart daycare; everything acknowledged is safe",
		Route: "check the disk, then restart daycare; everything acknowledged is safe"}
	ReplicaAway = &Fault{Code: "replica_away", Status: http.StatusServiceUnavailable, Exit: ExitFailure,
		Text:  "the servers or another machine of the cluster do not answer",
		Hint:  "check the network, and see: daycare cluster status; everything accepted is safe, and a running daemon reconnects by itself",
		Route: "nothing was accepted; send it again later"}
	Cut = &Fault{Code: "cut", Status: http.StatusServiceUnavailable, Exit: ExitNotRunning,
		Text:  "the connection closed before the turn ended",
		Hint:  "restart daycare and the turn continues: daycare start --background",
		Route: "send the message again with the same dedupe key to get the rest",
		About: "the stream closed before the turn ended; everything accepted is safe"}
	NotRunning = &Fault{Code: "not_running", Status: http.StatusServiceUnavailable, Exit: ExitNotRunning,
		Text: "the daemon is not running",
		Hint: "start it with: daycare start --background", Route: "start it with: daycare start",
		About: "the operation needs the daemon"}
	ShuttingDown = &Fault{Code: "shutting_down", Status: http.StatusServiceUnavailable, Exit: ExitFailure, Text: "the inbox is closed",
		Hint: "send it again when daycare is back", About: "the daemon is shutting down; nothing was accepted"}
	Timeout = &Fault{Code: "timeout", Status: http.StatusServiceUnavailable, Exit: ExitTimeout, err: context.DeadlineExceeded,
		Text: "timed out"}
	Canceled = &Fault{Code: "canceled", Status: http.StatusServiceUnavailable, Exit: ExitInterrupted, err: context.Canceled,
		Text: "the caller disconnected"}
	Interrupted = &Fault{Exit: ExitInterrupted, Text: "interrupted"}
	NoAccess    = &Fault{Exit: ExitFailure, err: fs.ErrPermission, Text: "permission denied",
		Hint: "check who owns the file and its mode", Route: seeLog}

	unlisted = &Fault{Code: Internal, Status: http.StatusInternalServerError, Exit: ExitFailure, Text: "internal error", Route: seeLog,
		About: "internal error; the log has details"}
)

const seeLog = "see the log for details: daycare logs"

// All is the list, in the order of docs/api.md.
var All = []*Fault{
	Malformed, Unauthorized, WrongLogin, Forbidden, Scope,
	UnknownAgent, UnknownItem, NoAsk, NotGranted, NoFile, NotEditable, NoRecord, NoTask, NoTrash, NoCommand, NoPairing, NoSession, NoTrace,
	NoRoute, OtherVersion, NoSecret,
	Ambiguous, Decided, Busy, Protected, AgentLimit, Taken, ItemTaken, TaskBusy, Applying, Conflict,
	TooLarge, FileTooLarge, Invalid, InvalidConfig, InvalidFile, InboxFull, Streams, LoginLater,
	DiskFull, DiskFailed, ReplicaAway, NotRunning, ShuttingDown, Cut, Timeout, Canceled, Interrupted, NoAccess, unlisted,
}
