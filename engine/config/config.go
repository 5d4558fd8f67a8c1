package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
)

// A Config is the active configuration. It never changes after it was built. A section with
// apply:"restart" takes effect after a restart, because open sockets and existing tools depend on
// it; all others apply as soon as the file is read.
type Config struct {
	Providers   []Provider  `json:"providers"` // in fallback order
	Models      []Model     `json:"models"`
	Routing     Routing     `json:"routing"`
	Connectors  []Connector `json:"connectors" check:"open"` // a connector reads its own options
	Links       Links       `json:"links"`                   // people who use several connectors
	Speech      Speech      `json:"speech"`
	Agents      Agents      `json:"agents"`
	Tools       Tools       `json:"tools" apply:"restart"`
	MCP         MCP         `json:"mcp"`
	A2A         A2A         `json:"a2a" apply:"restart"`
	Cron        Cron        `json:"cron"`
	Heartbeat   Heartbeat   `json:"heartbeat"`
	Permissions Permissions `json:"permissions"`
	Hooks       Hooks       `json:"hooks"`
	Budget      Budget      `json:"budget"`
	Retention   Retention   `json:"retention"`
	Control     Control     `json:"control" apply:"restart"`
	Web         WebPage     `json:"web" apply:"restart"`
	Log         Log         `json:"log" apply:"restart"`
	Tracing     Tracing     `json:"tracing" apply:"restart"`
	Cluster     Cluster     `json:"cluster" apply:"restart"`
	ModelsURL   string      `json:"modelsURL"` // address of a newer catalogue, for daycare models refresh

	env     Env
	secrets map[string]Secret          // auth.json
	routes  map[string]finding.Finding // where each route stands
}

// Env looks up an environment variable: os.LookupEnv.
type Env func(name string) (value string, set bool)

// A Provider is one model service.
type Provider struct {
	ID   string `json:"id" check:"id,required"`
	Type string `json:"type" check:"required" allow:"anthropic|openai|gemini|scripted"`
	// BaseURL "" is the vendor's own. Type openai works with any compatible service.
	BaseURL string `json:"baseURL" check:"url"`
	// Model "" is the default model of the vendor in this release.
	Model string `json:"model"`
	// APIKeyEnv is the environment variable with the key; "": the vendor's usual one.
	APIKeyEnv   string            `json:"apiKeyEnv" check:"env"`
	Concurrency int               `json:"concurrency" min:"1" max:"1000"` // maximum of simultaneous calls
	Headers     map[string]string `json:"headers"`
	Options     Options           `json:"options"` // options of the vendor, sent as they are
	Batch       bool              `json:"batch"`   // daycare batch asks through the vendor's batch API

	// APIKey comes from apiKeyEnv, DAYCARE_SECRET_<ID> or auth.json, in this order.
	APIKey Secret `json:"-"`
	// Why says where this provider comes from: "settings.yaml:4",
	// "ANTHROPIC_API_KEY in the environment".
	Why string `json:"-"`
}

// Options are settings that are documented elsewhere, by a vendor. (A named type: viper lower-cases
// the keys of plain maps.)
type Options map[string]any

// A Model overrides the entry of a model in the built-in catalogue.
type Model struct {
	ID        string `json:"id" check:"required"`
	Provider  string `json:"provider"`          // id of a provider; "": any
	Window    int    `json:"window" min:"0"`    // tokens; 0: as in the catalogue
	MaxOutput int    `json:"maxOutput" min:"0"` // tokens
	Images    *bool  `json:"images"`            // it accepts pictures; nil: as in the catalogue
	Documents *bool  `json:"documents"`         // it accepts PDFs; nil: as in the catalogue
	Price     Price  `json:"price"`
}

// A Price is in US dollars per million tokens; nil: as in the catalogue.
type Price struct {
	Input      *float64 `json:"input" min:"0"`
	Output     *float64 `json:"output" min:"0"`
	CacheRead  *float64 `json:"cacheRead" min:"0"`
	CacheWrite *float64 `json:"cacheWrite" min:"0"`
}

// Route returns the place of a route in the file, by its key: a finding without a reason.
func (c *Config) Route(key string) finding.Finding { return c.routes[key] }

// Routing selects models for some kinds of calls: PROVIDER, PROVIDER/MODEL, or a model of a
// provider in the settings; "": like all other calls.
type Routing struct {
	Summary   string `json:"summary"`   // summaries of conversations that grew too long
	Heartbeat string `json:"heartbeat"` // turns of the heartbeat
	Subagent  string `json:"subagent"`  // turns of sub-agents and background agents
}

// Routes returns the routes that are set, by their keys.
func (r Routing) Routes() map[string]string {
	all := map[string]string{"summary": r.Summary, "heartbeat": r.Heartbeat, "subagent": r.Subagent}
	maps.DeleteFunc(all, func(_, to string) bool { return to == "" })
	return all
}

// A Connector is the entry of one connector. Options beyond these depend on its type: see Decode.
type Connector struct {
	ID      string   `json:"id" check:"id,required"`
	Type    string   `json:"type" check:"required"`
	Allow   []string `json:"allow"`   // user ids; empty: nobody
	Owners  []string `json:"owners"`  // users in allow who answer approvals; empty: the first in allow
	Ceiling []string `json:"ceiling"` // permission tags that other users can approve for their own agents
	Pairing bool     `json:"pairing"` // users who are not in allow get a code, with which an owner can add them
	AgentID string   `json:"agentId"` // all its messages go to this agent
	// Queue says how messages that arrive here during a turn are handled; "": as agents.queue.
	Queue string `json:"queue" allow:"|steer|followup|collect|interrupt"`
	Talk

	Raw  *yaml.Node `json:"-"` // the whole entry, for Decode
	file string
}

// Place is the position of the connector's entry in the file, for findings about it.
func (c Connector) Place() (file string, line, column int) {
	if c.Raw != nil {
		line, column = c.Raw.Line, c.Raw.Column
	}
	return c.file, line, column
}

// OwnerIDs returns the users in allow who answer approvals. If none are named it is the first in
// allow, because someone who runs daycare alone is the only entry.
func (c Connector) OwnerIDs() []string {
	if len(c.Owners) > 0 || len(c.Allow) == 0 {
		return c.Owners
	}
	return c.Allow[:1]
}

// Agents limits what agents do.
type Agents struct {
	EmergencyContextLimit int           `json:"emergencyContextLimit" min:"1000"` // tokens
	ToolRounds            ToolRounds    `json:"toolRounds"`
	ParallelTools         int           `json:"parallelTools" min:"1" max:"64"`
	Queue                 string        `json:"queue" allow:"steer|followup|collect|interrupt"`
	PerMinute             int           `json:"perMinute" min:"0"`          // messages per minute and sender of a connector; 0: any number
	MaxChildren           int           `json:"maxChildren" min:"0"`        // running children of one agent
	MaxRunningChildren    int           `json:"maxRunningChildren" min:"0"` // in all
	MaxSpawned            int           `json:"maxSpawned" min:"0"`         // by /spawn in the terminal
	MaxAwake              int           `json:"maxAwake" min:"0"`           // agents in memory; 0: as many as file descriptors allow
	SubagentTTL           time.Duration `json:"subagentTTL" min:"1s"`       // how long it may be without work before it ends
	Worktrees             bool          `json:"worktrees"`                  // background agents work in copies, also without being asked to
}

// ToolRounds limits how many times per turn the model can call tools.
type ToolRounds struct {
	Foreground int `json:"foreground" min:"1" max:"1000"`
	Background int `json:"background" min:"1" max:"1000"`
}

// Tools configures tools.
type Tools struct {
	Exec Exec `json:"exec"`
	Web  Web  `json:"web"`
}

// Exec configures the tool exec.
type Exec struct {
	Sandbox string        `json:"sandbox" allow:"auto|bwrap|landlock|seatbelt|off"`
	Timeout time.Duration `json:"timeout" min:"1s" max:"30m"` // for calls without timeoutMs
	// ReserveMB is how many megabytes (MiB) stay free on the disks that commands write to; 0: none.
	ReserveMB int `json:"reserveMB" min:"0" max:"1000000"`
}

// Web configures web_fetch and web_search.
type Web struct {
	// Search is the name or address of the service behind web_search; "": none.
	Search string `json:"search"`
}

// Cron configures scheduled tasks.
type Cron struct {
	Timezone string `json:"timezone" check:"timezone"` // IANA name; "": the machine's
}

// Heartbeat configures the heartbeat, a periodic background check.
type Heartbeat struct {
	Every       time.Duration `json:"every" check:"off" min:"1m"` // 0: switched off
	ActiveHours string        `json:"activeHours" check:"hours"`  // "08:00-22:00"; "": always
}

// Permissions configures what new agents can do and how long an approval request waits.
type Permissions struct {
	Expiry   time.Duration `json:"expiry" min:"1m"`
	Profile  string        `json:"profile" allow:"|read-only|ask|auto|plan"` // of agents that have none; "": as defaults.exec implies
	Defaults Defaults      `json:"defaults"`
}

// Defaults are the permissions of a new agent, in addition to its workspace.
type Defaults struct {
	Web   bool     `json:"web"`
	Hosts []string `json:"hosts"`
	Lan   []string `json:"lan" check:"port"` // HOST:PORT
	Exec  string   `json:"exec" allow:"sandbox|ask|deny"`
}

// Hooks are programs that run at certain moments of an agent's work. The hooks of one moment run
// one after the other, in the order of the list.
type Hooks struct {
	SessionStart []Hook `json:"session_start"`
	OnMessage    []Hook `json:"on_message"`
	BeforePrompt []Hook `json:"before_prompt"`
	BeforeTool   []Hook `json:"before_tool"`
	AfterTool    []Hook `json:"after_tool"`
	TurnEnd      []Hook `json:"turn_end"`
	Approval     []Hook `json:"approval"`
}

// A Hook is one program.
type Hook struct {
	// Matcher is a regular expression that the whole name of the tool must match; "" and "*":
	// every tool. Only before_tool and after_tool have one.
	Matcher string        `json:"matcher"`
	Command string        `json:"command" check:"required"`
	Timeout time.Duration `json:"timeout" min:"100ms" max:"10m"` // 0: DefaultHookTimeout
	// OnError is the decision if the program fails; "": the default of the moment.
	OnError string `json:"onError" allow:"|allow|deny"`
	Sandbox *bool  `json:"sandbox"` // nil: true
	Approve bool   `json:"approve"` // its "allow" answers the approval that a call needs
}

// DefaultHookTimeout is the time limit of a hook that sets none.
const DefaultHookTimeout = 30 * time.Second

// A Moment is one list of hooks.
type Moment struct {
	Name  string // the key of the list
	Hooks []Hook
}

// Moments returns all lists, in the order of the moments in a turn.
func (h Hooks) Moments() []Moment {
	return []Moment{{"session_start", h.SessionStart}, {"on_message", h.OnMessage}, {"before_prompt", h.BeforePrompt},
		{"before_tool", h.BeforeTool}, {"after_tool", h.AfterTool}, {"turn_end", h.TurnEnd}, {"approval", h.Approval}}
}

// Budget limits what agents may spend; 0: no limit.
type Budget struct {
	OnLimit  string `json:"onLimit" allow:"ask|stop"` // at a limit an agent pauses and asks to raise it, or stops
	PerDay   Limit  `json:"perDay"`
	PerAgent Limit  `json:"perAgent"`
	Total    Limit  `json:"total"`
}

// A Limit has both units; the one that is reached first applies.
type Limit struct {
	USD    float64 `json:"usd" min:"0"`
	Tokens int64   `json:"tokens" min:"0"`
}

// Retention says after how long daycare gc offers things for deletion; 0: never. Only gc deletes.
type Retention struct {
	Trash   time.Duration `json:"trash" check:"off" min:"1h"`   // removed agents and tasks
	Blobs   time.Duration `json:"blobs" check:"off" min:"1h"`   // long outputs that no history names
	History time.Duration `json:"history" check:"off" min:"1h"` // closed parts of histories
	Logs    time.Duration `json:"logs" check:"off" min:"1h"`    // older files of the log
	Undo    time.Duration `json:"undo" check:"off" min:"1h"`    // what files held before agents wrote them
}

// Control configures the API beyond the unix socket.
type Control struct {
	Listen  string `json:"listen" check:"listen"` // HOST:PORT; "": the socket only
	Token   Secret `json:"token"`                 // or DAYCARE_SECRET_CONTROL, or auth.json
	TLSCert string `json:"tlsCert"`
	TLSKey  string `json:"tlsKey"`
}

// WebPage configures the page, which is served after the first `daycare web`.
type WebPage struct {
	// Listen is HOST:PORT. "": control.listen, or without it a loopback port that the workspace keeps.
	Listen string   `json:"listen" check:"listen"`
	Hosts  []string `json:"hosts"` // further names of this machine, HOST or HOST:PORT
}

// Log configures the log.
type Log struct {
	Level  string `json:"level" allow:"debug|info|warn|error"`
	Format string `json:"format" allow:"text|json"` // on the terminal
	File   string `json:"file"`                     // JSON lines; relative to .daycare; "": none
}

// Default returns the configuration without a settings file.
func Default() *Config {
	return &Config{
		Agents: Agents{
			EmergencyContextLimit: 200_000, ToolRounds: ToolRounds{Foreground: 20, Background: 15},
			ParallelTools: 4, Queue: "steer", PerMinute: 300, MaxChildren: 8, MaxRunningChildren: 32, MaxSpawned: 20,
			SubagentTTL: time.Hour,
		},
		Tools:     Tools{Exec: Exec{Sandbox: "auto", Timeout: 30 * time.Second, ReserveMB: 256}},
		MCP:       MCP{ToolTokens: 500},
		Heartbeat: Heartbeat{Every: 30 * time.Minute},
		Speech: Speech{Transcribe: Transcribe{Voicing: Voicing{Timeout: time.Minute}},
			Speak: Speak{Voicing: Voicing{Timeout: time.Minute}}},
		Budget:      Budget{OnLimit: "ask"},
		Permissions: Permissions{Expiry: 24 * time.Hour, Defaults: Defaults{Exec: "sandbox"}},
		Retention:   Retention{Trash: 30 * 24 * time.Hour, Blobs: 30 * 24 * time.Hour, Undo: 30 * 24 * time.Hour},
		Cluster:     Cluster{Replicas: 1, OwnDisk: "auto"},
		Log:         Log{Level: "info", Format: "text", File: "logs/daycare.jsonl"},
		ModelsURL:   "https://openrouter.ai/api/v1/models",
	}
}

// defaultConcurrency is how many calls one provider gets at once.
const defaultConcurrency = 8

// Connector returns the connector with an id.
func (c *Config) Connector(id string) (Connector, bool) {
	i := slices.IndexFunc(c.Connectors, func(k Connector) bool { return k.ID == id })
	if i < 0 {
		return Connector{}, false
	}

	return c.Connectors[i], true
}

// secretEnv is the environment variable that overrides a secret of auth.json.
func secretEnv(id string) string {
	return "DAYCARE_SECRET_" + strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, id)
}
