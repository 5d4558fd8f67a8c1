// Package config makes one immutable Config of settings.yaml, auth.json and the
// environment. It is the only importer of viper.
//
// The structs below are the schema: engine/form reads the file by their tags, so that
// everything wrong with it is reported with line and column; what is right goes to
// viper, which lays the environment (DAYCARE_LOG_LEVEL=debug) over it.
//
// To add a setting: a field here, its default in defaults, a line in
// settings.example.yaml (a test compares the three).
package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"daycare/engine/finding"
)

// A Config is the configuration in force. Nobody changes it once it is made. A section
// with apply:"restart" takes effect after a restart, because open sockets and built tools
// hang on it; all others apply as soon as the file is read.
type Config struct {
	Providers   []Provider  `json:"providers"` // in fallback order
	Models      []Model     `json:"models"`
	Routing     Routing     `json:"routing"`
	Connectors  []Connector `json:"connectors" check:"open"` // a connector reads its own options
	Agents      Agents      `json:"agents"`
	Tools       Tools       `json:"tools" apply:"restart"`
	MCP         MCP         `json:"mcp"`
	Cron        Cron        `json:"cron"`
	Heartbeat   Heartbeat   `json:"heartbeat"`
	Permissions Permissions `json:"permissions"`
	Hooks       Hooks       `json:"hooks"`
	Budget      Budget      `json:"budget"`
	Retention   Retention   `json:"retention"`
	Control     Control     `json:"control" apply:"restart"`
	Log         Log         `json:"log" apply:"restart"`
	ModelsURL   string      `json:"modelsURL"` // a newer catalogue, for daycare models refresh

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
	// BaseURL "" is the vendor's own. Type openai speaks to any compatible service.
	BaseURL string `json:"baseURL" check:"url"`
	// Model "" is the vendor's default of this release.
	Model string `json:"model"`
	// APIKeyEnv names the variable that holds the key; "" is the vendor's usual one.
	APIKeyEnv   string            `json:"apiKeyEnv" check:"env"`
	Concurrency int               `json:"concurrency" min:"1" max:"1000"` // calls at once
	Headers     map[string]string `json:"headers"`
	Options     Options           `json:"options"` // of the vendor, sent as they are

	// APIKey is found by apiKeyEnv, DAYCARE_SECRET_<ID> or auth.json, in this order.
	APIKey Secret `json:"-"`
	// Why says where this provider comes from: "settings.yaml:4",
	// "ANTHROPIC_API_KEY in the environment".
	Why string `json:"-"`
}

// Options are settings that somebody else's documentation explains. (A named
// type: viper lower-cases the keys of plain maps.)
type Options map[string]any

// A Model overrides what the built-in catalogue says of one.
type Model struct {
	ID        string `json:"id" check:"required"`
	Provider  string `json:"provider"`          // id; "": wherever it is served
	Window    int    `json:"window" min:"0"`    // tokens; 0: as in the catalogue
	MaxOutput int    `json:"maxOutput" min:"0"` // tokens
	Images    *bool  `json:"images"`            // it takes pictures; nil: as in the catalogue
	Documents *bool  `json:"documents"`         // it takes PDFs
	Price     Price  `json:"price"`
}

// A Price is in US dollars per million tokens; nil is what the catalogue says.
type Price struct {
	Input      *float64 `json:"input" min:"0"`
	Output     *float64 `json:"output" min:"0"`
	CacheRead  *float64 `json:"cacheRead" min:"0"`
	CacheWrite *float64 `json:"cacheWrite" min:"0"`
}

// Route is the place of a route by its key: a finding without a reason.
func (c *Config) Route(key string) finding.Finding { return c.routes[key] }

// Routing gives kinds of calls models of their own: PROVIDER, PROVIDER/MODEL, or a model that
// a provider of the settings has; "": as any other call.
type Routing struct {
	Summary   string `json:"summary"`   // summaries of conversations that grew too long
	Heartbeat string `json:"heartbeat"` // turns of the heartbeat
	Subagent  string `json:"subagent"`  // turns of sub-agents and background agents
}

// Routes are the routes that are set, by their keys.
func (r Routing) Routes() map[string]string {
	all := map[string]string{"summary": r.Summary, "heartbeat": r.Heartbeat, "subagent": r.Subagent}
	maps.DeleteFunc(all, func(_, to string) bool { return to == "" })
	return all
}

// A Connector is one way in. Options beyond these are of its type: Decode.
type Connector struct {
	ID      string   `json:"id" check:"id,required"`
	Type    string   `json:"type" check:"required"`
	Allow   []string `json:"allow"`   // user ids; empty is nobody
	Owners  []string `json:"owners"`  // of allow: who answers approvals; empty: the first of allow
	Ceiling []string `json:"ceiling"` // what the others may allow their own agents, as permission tags
	Pairing bool     `json:"pairing"` // who is not in allow gets a code, with which an owner lets them in
	AgentID string   `json:"agentId"` // all its messages go to this agent
	// Queue is how what arrives here during a turn is taken; "": as agents.queue.
	Queue string `json:"queue" allow:"|steer|followup|collect|interrupt"`

	Raw  *yaml.Node `json:"-"` // the whole entry, for Decode
	file string
}

// Place is where a connector's entry begins: for findings about it.
func (c Connector) Place() (file string, line, column int) {
	if c.Raw != nil {
		line, column = c.Raw.Line, c.Raw.Column
	}
	return c.file, line, column
}

// OwnerIDs are the people of allow who answer approvals. Where nobody is named it is the
// first of the list: who runs daycare alone has nobody else on it.
func (c Connector) OwnerIDs() []string {
	if len(c.Owners) > 0 || len(c.Allow) == 0 {
		return c.Owners
	}
	return c.Allow[:1]
}

// Agents bounds what agents do.
type Agents struct {
	EmergencyContextLimit int           `json:"emergencyContextLimit" min:"1000"` // tokens
	ToolRounds            ToolRounds    `json:"toolRounds"`
	ParallelTools         int           `json:"parallelTools" min:"1" max:"64"`
	Queue                 string        `json:"queue" allow:"steer|followup|collect|interrupt"`
	PerMinute             int           `json:"perMinute" min:"0"`          // messages of one sender of a connector; 0: any number
	MaxChildren           int           `json:"maxChildren" min:"0"`        // running, of one agent
	MaxRunningChildren    int           `json:"maxRunningChildren" min:"0"` // in all
	MaxSpawned            int           `json:"maxSpawned" min:"0"`         // by /spawn in the terminal
	MaxAwake              int           `json:"maxAwake" min:"0"`           // in memory at a time; 0: as many as there are descriptors for
	SubagentTTL           time.Duration `json:"subagentTTL" min:"1s"`       // without work, before it ends
}

// ToolRounds is how often per turn the model may call tools.
type ToolRounds struct {
	Foreground int `json:"foreground" min:"1" max:"1000"`
	Background int `json:"background" min:"1" max:"1000"`
}

// Tools is what tools need to know.
type Tools struct {
	Exec Exec `json:"exec"`
	Web  Web  `json:"web"`
}

// Exec is of the shell.
type Exec struct {
	Sandbox string        `json:"sandbox" allow:"auto|bwrap|landlock|seatbelt|off"`
	Timeout time.Duration `json:"timeout" min:"1s" max:"30m"` // for calls that name none
	// ReserveMB stays free on the disks that commands write to; 0: nothing.
	ReserveMB int `json:"reserveMB" min:"0" max:"1000000"`
}

// Web is of web_fetch and web_search.
type Web struct {
	// Search is the service behind web_search: "" for none, else its name or
	// address.
	Search string `json:"search"`
}

// Cron is of scheduled tasks.
type Cron struct {
	Timezone string `json:"timezone" check:"timezone"` // IANA name; "": the machine's
}

// Heartbeat is of the agent that looks around by itself.
type Heartbeat struct {
	Every       time.Duration `json:"every" check:"off" min:"1m"` // 0: never
	ActiveHours string        `json:"activeHours" check:"hours"`  // "08:00-22:00"; "": always
}

// Permissions is what new agents may do and how long a request waits.
type Permissions struct {
	Expiry   time.Duration `json:"expiry" min:"1m"`
	Profile  string        `json:"profile" allow:"|read-only|ask|auto|plan"` // of agents that have none; "": as defaults.exec says
	Defaults Defaults      `json:"defaults"`
}

// Defaults are the rights of a new agent beside its workspace.
type Defaults struct {
	Web   bool     `json:"web"`
	Hosts []string `json:"hosts"`
	Lan   []string `json:"lan" check:"port"` // HOST:PORT
	Exec  string   `json:"exec" allow:"sandbox|ask|deny"`
}

// Hooks are programs that run at moments of an agent's work. Those of one moment run one
// after the other, in the order of the list.
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
	// OnError is what follows when the program fails; "": as the moment says.
	OnError string `json:"onError" allow:"|allow|deny"`
	Sandbox *bool  `json:"sandbox"` // nil: true
	Approve bool   `json:"approve"` // its "allow" answers the approval that a call needs
}

// DefaultHookTimeout is the time limit of a hook that names none.
const DefaultHookTimeout = 30 * time.Second

// A Moment is the hooks of one list.
type Moment struct {
	Name  string // the key of the list
	Hooks []Hook
}

// Moments are all lists, in the order in which they come in a turn.
func (h Hooks) Moments() []Moment {
	return []Moment{{"session_start", h.SessionStart}, {"on_message", h.OnMessage}, {"before_prompt", h.BeforePrompt},
		{"before_tool", h.BeforeTool}, {"after_tool", h.AfterTool}, {"turn_end", h.TurnEnd}, {"approval", h.Approval}}
}

// Budget is what may be spent; 0 is no limit.
type Budget struct {
	OnLimit  string `json:"onLimit" allow:"ask|stop"` // at a limit: an agent pauses and asks to raise it, or stops
	PerDay   Limit  `json:"perDay"`
	PerAgent Limit  `json:"perAgent"`
	Total    Limit  `json:"total"`
}

// A Limit counts both; whichever is reached first holds.
type Limit struct {
	USD    float64 `json:"usd" min:"0"`
	Tokens int64   `json:"tokens" min:"0"`
}

// Retention is after how long daycare gc offers things for deletion; 0 is never.
// Nothing is deleted without gc.
type Retention struct {
	Trash   time.Duration `json:"trash" check:"off" min:"1h"`   // removed agents and tasks
	Blobs   time.Duration `json:"blobs" check:"off" min:"1h"`   // long outputs that no history names
	History time.Duration `json:"history" check:"off" min:"1h"` // closed parts of histories
	Logs    time.Duration `json:"logs" check:"off" min:"1h"`    // older files of the log
}

// Control is of the API beyond the unix socket.
type Control struct {
	Listen  string `json:"listen" check:"listen"` // HOST:PORT; "": the socket only
	Token   Secret `json:"token"`                 // or DAYCARE_SECRET_CONTROL, or auth.json
	TLSCert string `json:"tlsCert"`
	TLSKey  string `json:"tlsKey"`
}

// Log is of the log.
type Log struct {
	Level  string `json:"level" allow:"debug|info|warn|error"`
	Format string `json:"format" allow:"text|json"` // on the terminal
	File   string `json:"file"`                     // JSON lines; relative to .daycare; "": none
}

// Default is the configuration without a settings file.
func Default() *Config {
	return &Config{
		Agents: Agents{
			EmergencyContextLimit: 200_000, ToolRounds: ToolRounds{Foreground: 20, Background: 15},
			ParallelTools: 4, Queue: "steer", PerMinute: 300, MaxChildren: 8, MaxRunningChildren: 32, MaxSpawned: 20,
			SubagentTTL: time.Hour,
		},
		Tools:       Tools{Exec: Exec{Sandbox: "auto", Timeout: 30 * time.Second, ReserveMB: 256}},
		MCP:         MCP{ToolTokens: 4000},
		Heartbeat:   Heartbeat{Every: 30 * time.Minute},
		Budget:      Budget{OnLimit: "ask"},
		Permissions: Permissions{Expiry: 24 * time.Hour, Defaults: Defaults{Exec: "sandbox"}},
		Retention:   Retention{Trash: 30 * 24 * time.Hour, Blobs: 30 * 24 * time.Hour},
		Log:         Log{Level: "info", Format: "text", File: "logs/daycare.jsonl"},
		ModelsURL:   "https://openrouter.ai/api/v1/models",
	}
}

// defaultConcurrency is how many calls one provider gets at once.
const defaultConcurrency = 8

// Connector finds a connector by id.
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
