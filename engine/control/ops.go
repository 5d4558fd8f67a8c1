package control

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/event"
	"daycare/engine/message"
	"daycare/engine/permission"
)

const (
	get  = http.MethodGet
	post = http.MethodPost
	put  = http.MethodPut
	del  = http.MethodDelete
)

// What goes in, where several operations take the same.
type (
	nothing struct{}
	// aBody is a body alone.
	aBody[B any] struct {
		Body B `body:"application/json"`
	}
	// anAgent is the path of an agent: an exact id, a handle, a name, or the beginning of an id.
	anAgent struct {
		ID string `path:"id"`
	}
	// agentBody is a body about an agent.
	agentBody[B any] struct {
		ID   string `path:"id"`
		Body B      `body:"application/json"`
	}
	itemIn struct {
		ID   string `path:"id"`
		Item string `path:"item"`
	}
	storedIn struct {
		File string `path:"file"`
	}
	slugIn struct {
		Slug string `path:"slug"`
	}
)

// What comes out that is not JSON.
type (
	// Text is a text/plain response.
	Text struct{}
	// EventStream is a response with server-sent events.
	EventStream struct{}
	// Attachment is a response with the content of a stored file.
	Attachment struct{}
	// Tar is a response with a tar.
	Tar struct{}
)

// The daemon.
var (
	health = Op[nothing, Text]{"health", get, "/healthz", apitoken.Read, none, 0, "`ok` while the process answers"}
	metric = Op[nothing, Text]{"metrics", get, "/metrics", apitoken.Read, all, 0, "counters in the text format of Prometheus"}
	status = Op[nothing, event.Status]{"status", get, "/v1/status", apitoken.Read, known, 0,
		"version, pid, uptime, workspace, counts, connectors and providers with state and last error; `problems`: problems " +
			"of files that users edit, each `{file,line,column,text}`"}
	settings = Op[nothing, json.RawMessage]{"config", get, "/v1/config", apitoken.Admin, all, 0,
		"the active settings, secrets masked"}
	tools     = Op[nothing, toolsBody]{"tools", get, "/v1/tools", apitoken.Read, none, 0, "the available tools"}
	subAgents = Op[nothing, subAgentsBody]{"subagents", get, "/v1/subagents", apitoken.Read, none, 0, "the available sub-agents"}
	skills    = Op[nothing, skillsBody]{"skills", get, "/v1/skills", apitoken.Read, none, 0, "the available skills"}
	providers = Op[nothing, providersBody]{"providers", get, "/v1/providers", apitoken.Read, none, 0,
		"the model services in the order in which they are tried, as in the status"}
	commands = Op[nothing, commandsBody]{"commands", get, "/v1/commands", apitoken.Read, none, 0,
		"the commands that users wrote, each `{name, description?, arguments?, file}`"}
	expand = Op[expandIn, expandedBody]{"expand", post, "/v1/commands/{name}", apitoken.Chat, none, 0,
		"`{arguments}`: the message that a command expands to, `{text}`"}
	models = Op[nothing, modelsBody]{"models", get, "/v1/models", apitoken.Read, known, 0,
		"the available models; with the [OpenAI format](openai.md), agents as models are in `data`"}
	cost = Op[costIn, Bill]{"cost", get, "/v1/cost", apitoken.Read, all, 0,
		"spending: `?by=` agent (default), model, day or purpose (conversation, summary, heartbeat, cron, subagent), or a day with " +
			"another, `day,model`, whose rows have it as `then`; `?since=` a time"}
	budgets = Op[nothing, budgetsBody]{"budgets", get, "/v1/budgets", apitoken.Read, all, 0,
		"`{budgets}`: the limits of what agents may spend, each `{scope, agentId?, handle?, name?, parent?, limit, spent}` with `usd` " +
			"and `tokens`"}
	hooks = Op[nothing, hooksBody]{"hooks", get, "/v1/hooks", apitoken.Admin, all, 0,
		"the programs that run at moments of a turn, in the order in which they run"}
	testHooks = Op[aBody[HookSample], HookTest]{"testhooks", post, "/v1/hooks/test", apitoken.Admin, all, 0,
		"runs the hooks of an event with a sample: the result of each, and the combined result"}
	reload = Op[nothing, reloadBody]{"reload", post, "/v1/reload", apitoken.Admin, all, needsDaemon,
		"reloads the settings: `{findings}`, or 422, and the last valid ones stay active"}
	backup = Op[backupIn, Archive]{"backup", get, "/v1/backup", apitoken.Admin, all, 0,
		"a gzipped tar of `.daycare` at one moment; `secrets`: with keys and tokens, on the unix socket only"}
	shutDown = Op[nothing, empty]{"shutdown", post, "/v1/shutdown", apitoken.Admin, all, needsDaemon | accepted,
		"shuts the daemon down"}
)

// The page in a browser. A login token is of one use and made by someone with the owner's rights.
var (
	openPage = Op[nothing, Invitation]{"openPage", post, "/v1/web", apitoken.Admin, all, needsDaemon,
		"serves the [page](web.md) from now on: `{url, address, expiresAt}`, where `url` has a login token that works once"}
	login = Op[aBody[loginBody], Session]{"login", post, "/v1/session", apitoken.Read, none, needsDaemon | anyone,
		"`{token}`: logs a browser in, with a cookie and the response of `GET`; needs no token in a header"}
	whoAmI = Op[nothing, Session]{"session", get, "/v1/session", apitoken.Read, none, 0,
		"the caller: `{caller, name?, createdAt?, lastAt?, expiresAt?}`; a browser that is logged in has a `name`"}
	logout = Op[nothing, empty]{"logout", del, "/v1/session", apitoken.Read, none, needsDaemon,
		"ends the session of the calling browser, and its cookie"}
	listSessions = Op[nothing, sessionsBody]{"sessions", get, "/v1/sessions", apitoken.Admin, all, 0,
		"`{sessions}`: browsers that are logged in"}
	endSession = Op[sessionIn, empty]{"endSession", del, "/v1/sessions/{session}", apitoken.Admin, all, 0,
		"ends the session of a browser; its open streams end at once"}
)

type (
	loginBody struct {
		Token string `json:"token"`
	}
	sessionIn struct {
		Session string `path:"session"`
	}
)

type costIn struct {
	By    string    `query:"by" default:"agent" allow:"agent|model|day|purpose|day,agent|day,model|day,purpose"`
	Since time.Time `query:"since"`
}

// What the commands that look at files print with --json.
var (
	traceOp = Op[traceIn, json.RawMessage]{"trace", get, "/v1/why/{ref}", apitoken.Read, all, 0,
		"everything that led from a message to its reply, by the id of an item, a reply, a turn, a tool call or an approval: as " +
			"`daycare why ID --json`"}
	examine = Op[nothing, Checkup]{"doctor", get, "/v1/doctor", apitoken.Read, all, 0,
		"problems of files and of the system: as `daycare doctor --json`"}
	treat = Op[aBody[treatBody], Checkup]{"fix", post, "/v1/doctor/fix", apitoken.Admin, all, needsDaemon,
		"`{findings?}`: repairs what can be repaired without losing data, of the findings with these ids or of all, and checks again"}
	validate = Op[aBody[validateBody], findingsBody]{"validate", post, "/v1/validate", apitoken.Read, all, 0,
		"`{name, text}`: checks a text as the file at the path `name` in `.daycare`, without saving it: `{findings}`"}
	schemaOf = Op[schemaIn, json.RawMessage]{"schema", get, "/v1/schema/{name}", apitoken.Read, none, 0,
		"the JSON Schema of a file: as `daycare schema NAME`"}
	logOp = Op[logIn, linesBody]{"logs", get, "/v1/logs", apitoken.Admin, all, streams,
		"`{lines}` of the log, `?agent=`, `?level=debug`, `?since=`, `?limit=200`; with `?follow=1` a stream with an event `log` for " +
			"each line, beginning with the existing ones"}
	sharedFiles = Op[nothing, sharedBody]{"files", get, "/v1/files", apitoken.Admin, all, 0,
		"`{files}`: the files that users edit and that belong to no agent, each `{name, schema?, bytes, changedAt}`"}
	readShared = Op[sharedIn, Text]{"readShared", get, "/v1/files/{name}", apitoken.Admin, all, 0,
		"one of them, by its path in `.daycare` with `%2F`, with its hash as `ETag`; 422 if settings contain a key or a token"}
	writeShared = Op[sharedWriteIn, fileBody]{"writeShared", put, "/v1/files/{name}", apitoken.Admin, all, 0,
		"replaces or creates it; needs its `ETag` as `If-Match`"}
	testConnector = Op[sharedIn, json.RawMessage]{"testConnector", post, "/v1/connectors/{name}/test", apitoken.Admin, all, needsDaemon,
		"asks the platform of a connector: `{id, ok, verdict}`, as `daycare connectors test`"}
	testProvider = Op[sharedIn, json.RawMessage]{"testProvider", post, "/v1/providers/{name}/test", apitoken.Admin, all, needsDaemon,
		"asks a model service for one word: `{id, model, ok, firstMs?, ms, cost, answer?, error?, remedy?}`, as `daycare providers test`"}
	sizeOf = Op[anAgent, json.RawMessage]{"context", get, "/v1/agents/{id}/context", apitoken.Read, one, 0,
		"the size of what its model is sent, in tokens, by part: `context` of `daycare agents show ID --json`; null before the " +
			"first message"}
)

// The OpenAI format.
var (
	foreignModel = Op[foreignModelIn, ForeignModel]{"foreignModel", get, "/v1/models/{model}", apitoken.Read, known, 0,
		"an agent as a model of the [OpenAI format](openai.md)"}
	chatCompletions = Op[foreignIn, json.RawMessage]{"chatCompletions", post, "/v1/chat/completions", apitoken.Chat, known,
		needsDaemon | streams, "a message to an agent as a chat completion of the [OpenAI format](openai.md)"}
	createResponse = Op[foreignIn, json.RawMessage]{"createResponse", post, "/v1/responses", apitoken.Chat, known,
		needsDaemon | streams, "a message to an agent as a response of the [OpenAI format](openai.md)"}
)

type (
	foreignModelIn struct {
		Model string `path:"model"`
	}
	foreignIn struct {
		Key          string          `header:"Idempotency-Key"`
		Conversation string          `header:"X-Daycare-Conversation"`
		Body         json.RawMessage `body:"application/json"`
	}
)

// Agents.
var (
	listAgents = Op[listIn, agentsBody]{"listAgents", get, "/v1/agents", apitoken.Read, known, 0,
		"`{agents}`; with `?family=ID` only that agent and its descendants that have not ended"}
	createAgent = Op[aBody[NewAgent], event.Agent]{"createAgent", post, "/v1/agents", apitoken.Admin, all, needsDaemon | created,
		"`{type, name?, prompt?, parent?, description?, systemPrompt?, workspaceDir?, spawned?, connector?, channelId?}`, " +
			"type user, permanent or subagent; `name` is one line of at most 200 characters; 201 and the agent. " +
			"`connector` with `channelId`: the agent of this address, " +
			"created if needed. `spawned`: as with `/spawn` in the terminal, limited by " +
			"`agents.maxSpawned`; without it there is no limit"}
	showAgent = Op[anAgent, event.Agent]{"showAgent", get, "/v1/agents/{id}", apitoken.Read, one, 0,
		"`{id, handle, name, type, connector?, channelId?, parentAgentId?, state, detail?, queued, oldestAt?, lastAt, said?, " +
			"failed?, cost, ownCost?, budget?, model, context?, window?, running}`. `state` is idle, queued, thinking, tool, " +
			"waiting-permission, waiting-agent, retrying, paused, error or ended; `running`: it is in memory"}
	removeAgent = Op[removeIn, trashBody]{"removeAgent", del, "/v1/agents/{id}", apitoken.Admin, one, needsDaemon,
		"moves it to the trash: `{trash}`; 409 while it has work, unless `?force=1`"}
	history = Op[historyIn, event.Page]{"history", get, "/v1/agents/{id}/history", apitoken.Read, one, 0,
		"`?before=SEQ&limit=100`: `{records, before}`, oldest first; pass `before` to get the previous page, null on the first. " +
			"With `?html=1` records with a text have it as `html`, too: Markdown as HTML that is safe to show"}
	draft = Op[anAgent, event.Draft]{"draft", get, "/v1/agents/{id}/draft", apitoken.Read, one, 0,
		"the answer being streamed: `{turn, text, thinking?}`"}
	waiting = Op[anAgent, inboxBody]{"inbox", get, "/v1/agents/{id}/inbox", apitoken.Read, one, 0,
		"`{items}`, each `{id, seq, at, type, text, bytes, state, queue?, more?}`. `more`: it has files, is not from the " +
			"owner, or is answered elsewhere, so its text alone is not the whole message"}
	dropItem = Op[itemIn, empty]{"dropItem", del, "/v1/agents/{id}/inbox/{item}", apitoken.Chat, one, needsDaemon,
		"removes a queued item"}
	moveToFront = Op[itemIn, empty]{"moveToFront", post, "/v1/agents/{id}/inbox/{item}/front", apitoken.Chat, one, needsDaemon,
		"moves a queued item to the front"}
	showItem = Op[itemIn, event.Posted]{"showItem", get, "/v1/agents/{id}/items/{item}", apitoken.Read, one, needsDaemon,
		"an item that the agent accepted: `{agent, item, type, state, at, text, messageId?, route?, endedAt?, outcome?}`. `state` is " +
			"waiting, taken or done; `outcome` is how it ended; 404 if it was removed from the inbox"}
	followItem = Op[itemIn, EventStream]{"followItem", get, "/v1/agents/{id}/items/{item}/events", apitoken.Read, one,
		needsDaemon | streams, "the events of its turn until it ends, as of a message that was posted with `wait`"}
	attachment = Op[storedIn, Attachment]{"attachment", get, "/v1/attachments/{file}", apitoken.Read, all, 0,
		"the content of a stored file, by the id that a message or a result names it by: PNG, JPEG, GIF and WebP with " +
			"their media type, everything else as a download"}
	stop = Op[stopIn, stoppedBody]{"stop", post, "/v1/agents/{id}/stop", apitoken.Chat, one, needsDaemon,
		"cancels the current turn, or, with `?item=`, that of this item and no other: `{stopped}`"}
	reset = Op[anAgent, message.Receipt]{"reset", post, "/v1/agents/{id}/reset", apitoken.Chat, one, needsDaemon | accepted,
		"starts a new conversation; 202 and the receipt of the item"}
	compact = Op[anAgent, message.Receipt]{"compact", post, "/v1/agents/{id}/compact", apitoken.Chat, one, needsDaemon | accepted,
		"compacts the context; 202 and the receipt of the item"}
	mark = Op[agentBody[markBody], message.Receipt]{"mark", post, "/v1/agents/{id}/mark", apitoken.Chat, one, needsDaemon | accepted,
		"`{name}`: sets a checkpoint; 202 and the receipt"}
	kill = Op[anAgent, empty]{"kill", post, "/v1/agents/{id}/kill", apitoken.Admin, one, needsDaemon,
		"ends a background agent and its children; 409 `protected` for the others"}
)

type (
	listIn struct {
		Family string `query:"family"`
	}
	stopIn struct {
		ID   string `path:"id"`
		Item string `query:"item"`
	}
	removeIn struct {
		ID    string `path:"id"`
		Force bool   `query:"force"`
	}
	historyIn struct {
		ID     string `path:"id"`
		Before int64  `query:"before" min:"1"`
		Limit  int64  `query:"limit" default:"100" min:"1" max:"1000"`
		HTML   bool   `query:"html"`
	}
)

// Talk. Who posts by a descriptor speaks for whoever it names.
var (
	postToAgent = Op[agentBody[Message], message.Receipt]{"postToAgent", post, "/v1/agents/{id}/messages", apitoken.Chat, one,
		needsDaemon | accepted | streams,
		"`{text, files?, kind?, origin?, silent?, queue?, untrusted?, id?, dedupe?, context?, route?, wait?}`; " +
			"202 `{agent, item, seq, duplicate}` once it is durable. See below"}
	postByDescriptor = Op[aBody[Message], message.Receipt]{"postByDescriptor", post, "/v1/messages", apitoken.Admin, all,
		needsDaemon | accepted | streams,
		"the same, to the agent of `{connector, userId, channelId, threadId?}`, which is created if needed"}
	events = Op[eventsIn, EventStream]{"events", get, "/v1/events", apitoken.Read, known, streams, "the stream of events, below"}
	asks   = Op[asksIn, asksBody]{"permissions", get, "/v1/permissions", apitoken.Read, known, 0,
		"`{permissions}`: pending approvals; with `?state=decided` those that were answered, the newest first, `?limit=100`. A " +
			"`permission` that begins with `@budget:` asks to raise a limit; its agent is `paused`. A request has `shown`, `facts` " +
			"and `choices`, and all of it as text in `card`"}
	decide = Op[decideIn, empty]{"decide", post, "/v1/permissions/{token}", apitoken.Approve, known, needsDaemon,
		"`{decision}`: once, always, prefix or deny. The first answer wins. For a budget: once, always (permanently) or deny (stop)"}
)

type (
	eventsIn struct {
		Agent  string `query:"agent"`
		Types  string `query:"types"`
		After  string `query:"after"`
		LastID string `header:"Last-Event-ID"`
	}
	asksIn struct {
		State string `query:"state" default:"pending" allow:"pending|decided"`
		Limit int64  `query:"limit" default:"100" min:"1" max:"1000"`
	}
	decideIn struct {
		Token string `path:"token"`
		Body  Answer `body:"application/json"`
	}
)

// What an agent is, and other ones made of it. A descriptor decides where answers go and a state
// what is allowed, so an edit reaches beyond the agent.
var (
	rewind = Op[agentBody[rewindBody], message.Receipt]{"rewind", post, "/v1/agents/{id}/rewind", apitoken.Chat, one,
		needsDaemon | accepted, "`{to?}` a seq or a checkpoint; 202 and the receipt; 404 if there is no such record"}
	undoable = Op[undoableIn, rewoundBody]{"undoable", get, "/v1/agents/{id}/undo", apitoken.Read, one, 0,
		"`{files}`, each `{path, standing, turns}`: what its file tools wrote in turns that are rewound. With `?rewind=true&to=` " +
			"also what such a rewind would add. `standing` is ready, before, between, since, again or gone; docs/lab.md"}
	undo = Op[agentBody[undoBody], takenBody]{"undo", post, "/v1/agents/{id}/undo", apitoken.Admin, all, needsDaemon,
		"`{paths?, merge?}` restores such files, without `paths` those that only the agent changed: `{results}`, each " +
			"`{path, outcome, why?}`; the outcome is done, already or refused"}
	fork = Op[agentBody[forkBody], event.Agent]{"fork", post, "/v1/agents/{id}/fork", apitoken.Admin, all, needsDaemon | created,
		"`{at?, name?}`; 201 and the new agent"}
	switchModel = Op[agentBody[modelBody], Choice]{"switchModel", post, "/v1/agents/{id}/model", apitoken.Admin, one, 0,
		"`{model}`: a provider, a model, PROVIDER/MODEL or `default`"}
	readFile = Op[fileIn, Text]{"readFile", get, "/v1/agents/{id}/files/{name}", apitoken.Read, one, 0,
		"descriptor.json, state.json, history.jsonl, SYSTEM.md, or a text that the history names by hash, `blobs%2FHASH`, with " +
			"its hash as `ETag`"}
	writeFile = Op[writeIn, fileBody]{"writeFile", put, "/v1/agents/{id}/files/{name}", apitoken.Admin, all, 0,
		"replaces the file; needs its `ETag` as `If-Match`"}
	trash   = Op[nothing, trashListBody]{"trash", get, "/v1/trash", apitoken.Read, all, 0, "removed agents"}
	restore = Op[restoreIn, event.Agent]{"restore", post, "/v1/trash/{name}/restore", apitoken.Admin, all, needsDaemon,
		"`{name}` is a handle, a name, an id or the folder in the trash; 409 if several match"}
	exportAgent = Op[anAgent, Tar]{"exportAgent", get, "/v1/agents/{id}/export", apitoken.Admin, one, 0,
		"a tar of its files, as `daycare agents export`; one that does not end with `state.json` is incomplete"}
	importAgent = Op[importIn, event.Agent]{"importAgent", post, "/v1/import", apitoken.Admin, all, needsDaemon | created,
		"the body is the tar of `daycare agents export`"}
)

type (
	undoableIn struct {
		ID     string `path:"id"`
		Rewind bool   `query:"rewind"`
		To     string `query:"to"`
	}
	fileIn struct {
		ID   string `path:"id"`
		Name string `path:"name"`
	}
	writeIn struct {
		ID    string    `path:"id"`
		Name  string    `path:"name"`
		Match string    `header:"If-Match"`
		Body  io.Reader `body:"text/plain"`
	}
	restoreIn struct {
		Name string `path:"name"`
	}
	importIn struct {
		Name string    `query:"name"`
		Body io.Reader `body:"application/x-tar"`
	}
)

// Rights.
var (
	grants = Op[anAgent, permission.Set]{"grants", get, "/v1/agents/{id}/grants", apitoken.Read, one, 0, "its permissions"}
	grant  = Op[agentBody[Granting], empty]{"grant", post, "/v1/agents/{id}/grants", apitoken.Admin, all, needsDaemon,
		"`{\"permission\":\"@exec:git push\"}` grants a permission, `{\"profile\":\"plan\"}` sets the profile"}
	revoke = Op[revokeIn, empty]{"revoke", del, "/v1/agents/{id}/grants", apitoken.Admin, one, needsDaemon,
		"`?permission=TAG` revokes a permission"}
	why = Op[whyIn, Verdict]{"why", get, "/v1/agents/{id}/why", apitoken.Read, one, 0,
		"`?what=` a tag or a command: `{decision, rule, by, reason}`; the decision is allowed, asks or refused"}
)

// Pairing requests of unknown users.
var (
	listPairings = Op[nothing, pairingsBody]{"pairings", get, "/v1/pairings", apitoken.Admin, all, 0,
		"`{pairings}`: pending pairing codes of connectors with `pairing: true`, each `{code, connector, userId, name?, at, expiresAt}`"}
	decidePairing = Op[pairIn, Paired]{"pair", post, "/v1/pairings/{code}", apitoken.Admin, all, needsDaemon,
		"`{decision}`: approve adds the user to `allow` in settings.yaml, reject gives no access; returns the user, and `owner` " +
			"if they now answer approvals"}
)

type (
	revokeIn struct {
		ID         string `path:"id"`
		Permission string `query:"permission" need:"add ?permission=TAG"`
	}
	whyIn struct {
		ID   string `path:"id"`
		What string `query:"what" need:"add ?what=TAG or a command"`
	}
)

// The clocks, which run with any agent.
var (
	listTasks = Op[nothing, tasksBody]{"listTasks", get, "/v1/cron", apitoken.Read, all, 0, "scheduled tasks"}
	addTask   = Op[aBody[TaskChange], Task]{"addTask", post, "/v1/cron", apitoken.Admin, all, created, "creates a task"}
	showTask  = Op[slugIn, Task]{"showTask", get, "/v1/cron/{slug}", apitoken.Read, all, 0, "a task"}
	setTask   = Op[taskIn, Task]{"changeTask", put, "/v1/cron/{slug}", apitoken.Admin, all, 0,
		"changes a task; absent members stay unchanged"}
	removeTask = Op[slugIn, trashBody]{"removeTask", del, "/v1/cron/{slug}", apitoken.Admin, all, 0, "moves it to the trash: `{trash}`"}
	runTask    = Op[slugIn, slotBody]{"runTask", post, "/v1/cron/{slug}/run", apitoken.Admin, all, needsDaemon | accepted,
		"runs it now, in addition to its schedule; 202 `{slot}`"}
	taskRuns = Op[runsIn, runsBody]{"taskRuns", get, "/v1/cron/{slug}/runs", apitoken.Read, all, 0, "`{runs}`, `?limit=20`"}

	allRuns = Op[sinceIn, allRunsBody]{"runs", get, "/v1/runs", apitoken.Read, all, 0,
		"`{runs}` of all tasks and the heartbeat, the newest first, each with its `slug`, empty for the heartbeat; `?since=` a time"}

	heartbeat = Op[nothing, Heartbeat]{"heartbeat", get, "/v1/heartbeats", apitoken.Read, all, 0, "the heartbeat and its items"}
	addPrompt = Op[aBody[PromptChange], Prompt]{"addPrompt", post, "/v1/heartbeats", apitoken.Admin, all, created,
		"adds an item; to change it, edit its file"}
	removePrompt = Op[slugIn, trashBody]{"removePrompt", del, "/v1/heartbeats/{slug}", apitoken.Admin, all, 0,
		"moves it to the trash: `{trash}`"}
	runHeartbeat = Op[nothing, slotBody]{"runHeartbeat", post, "/v1/heartbeats/run", apitoken.Admin, all, needsDaemon | accepted,
		"runs it now; 202 `{slot}`"}
	heartbeatRuns = Op[limitIn, runsBody]{"heartbeatRuns", get, "/v1/heartbeats/runs", apitoken.Read, all, 0, "`{runs}`, `?limit=20`"}
)

type (
	taskIn struct {
		Slug string     `path:"slug"`
		Body TaskChange `body:"application/json"`
	}
	runsIn struct {
		Slug  string `path:"slug"`
		Limit int64  `query:"limit" default:"20" min:"1" max:"1000"`
	}
	sinceIn struct {
		Since time.Time `query:"since"`
	}
	limitIn struct {
		Limit int64 `query:"limit" default:"20" min:"1" max:"1000"`
	}
)
