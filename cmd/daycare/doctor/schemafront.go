package doctor

// The front matter of Markdown files is read key by key; these are its types, for
// their JSON Schemas. A test holds the keys against the readers.
type (
	gateFront struct {
		Command        string   `json:"command" jsonschema:"the task runs if it exits with 0; its output is part of the prompt"`
		TimeoutMS      int      `json:"timeoutMs"`
		Permissions    []string `json:"permissions"`
		AllowedDomains []string `json:"allowedDomains"`
	}
	taskFront struct {
		TaskID         string    `json:"taskId" jsonschema:"the id of the task's own agent; a file without one gets one"`
		Name           string    `json:"name"`
		Description    string    `json:"description"`
		Schedule       string    `json:"schedule" jsonschema:"five fields as in cron, or @hourly, @daily, @weekly, @monthly, @yearly"`
		Every          string    `json:"every" jsonschema:"instead of schedule: a duration like 10m"`
		At             string    `json:"at" jsonschema:"instead of schedule: once, like 2026-12-01T09:00"`
		Timezone       string    `json:"timezone" jsonschema:"an IANA name like Europe/Berlin"`
		Enabled        bool      `json:"enabled"`
		AgentID        string    `json:"agentId" jsonschema:"whom the task is for; empty: its own agent"`
		CreatedBy      string    `json:"createdBy" jsonschema:"the agent that made the task, which works for the same person; empty: made by hand"`
		Source         string    `json:"source" jsonschema:"what the agent had read from outside when it wrote the task; its runs are as untrusted"`
		CatchUp        string    `json:"catchUp" allow:"one|all|none"`
		DeleteAfterRun bool      `json:"deleteAfterRun"`
		Model          string    `json:"model"`
		Gate           gateFront `json:"gate"`
		Watch          []string  `json:"watch" jsonschema:"globs, relative to the workspace: run only when something changed"`
		WatchCommand   string    `json:"watchCommand"`
	}
	heartbeatFront struct {
		Title        string    `json:"title"`
		Enabled      bool      `json:"enabled"`
		Gate         gateFront `json:"gate"`
		ActiveHours  string    `json:"activeHours" jsonschema:"like 08:00-22:00"`
		Watch        []string  `json:"watch"`
		WatchCommand string    `json:"watchCommand"`
	}
	skillFront struct {
		Name          string         `json:"name" jsonschema:"small letters, digits and -, as its folder is called"`
		Description   string         `json:"description" jsonschema:"what it is for and when to use it"`
		License       string         `json:"license"`
		Compatibility string         `json:"compatibility"`
		Metadata      map[string]any `json:"metadata"`
		AllowedTools  string         `json:"allowed-tools"`
	}
	subagentFront struct {
		Name          string         `json:"name"`
		Description   string         `json:"description" jsonschema:"for the model that calls it"`
		Icon          string         `json:"icon"`
		Tools         []string       `json:"tools"`
		MaxIterations int            `json:"maxIterations"`
		Model         string         `json:"model"`
		Temperature   float64        `json:"temperature"`
		InputSchema   map[string]any `json:"inputSchema" jsonschema:"a JSON Schema of the tool's arguments"`
		Summarize     string         `json:"summarize" allow:"verbatim|structured"`
	}
)
