package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"daycare/engine/control"
	"daycare/engine/fault"
)

type (
	document struct {
		OpenAPI    string                          `json:"openapi"`
		Info       info                            `json:"info"`
		Servers    []server                        `json:"servers"`
		Security   []map[string][]string           `json:"security"`
		Paths      map[string]map[string]operation `json:"paths"`
		Components components                      `json:"components"`
	}
	info struct {
		Title       string `json:"title"`
		Version     string `json:"version"`
		Description string `json:"description"`
	}
	server struct {
		URL         string              `json:"url"`
		Description string              `json:"description"`
		Variables   map[string]variable `json:"variables,omitempty"`
	}
	variable struct {
		Default     string `json:"default"`
		Description string `json:"description"`
	}
	components struct {
		Schemas         map[string]*schema  `json:"schemas"`
		Responses       map[string]response `json:"responses"`
		SecuritySchemes map[string]scheme   `json:"securitySchemes"`
	}
	scheme struct {
		Type        string `json:"type"`
		Scheme      string `json:"scheme"`
		Description string `json:"description"`
	}
	operation struct {
		ID          string                `json:"operationId"`
		Tags        []string              `json:"tags"`
		Description string                `json:"description"`
		Parameters  []parameter           `json:"parameters,omitempty"`
		RequestBody *requestBody          `json:"requestBody,omitempty"`
		Responses   map[string]response   `json:"responses"`
		Security    []map[string][]string `json:"security"`
	}
	parameter struct {
		Name        string  `json:"name"`
		In          string  `json:"in"`
		Description string  `json:"description,omitempty"`
		Required    bool    `json:"required,omitempty"`
		Schema      *schema `json:"schema"`
	}
	requestBody struct {
		Required bool             `json:"required,omitempty"`
		Content  map[string]media `json:"content"`
	}
	response struct {
		Ref         string           `json:"$ref,omitempty"`
		Description string           `json:"description,omitempty"`
		Content     map[string]media `json:"content,omitempty"`
	}
	media struct {
		Schema *schema `json:"schema"`
	}
)

const (
	inJSON = "application/json"
	inText = "text/plain"
	events = "text/event-stream"
)

// Document is the OpenAPI document of all operations, as indented JSON.
func Document() ([]byte, error) {
	d, _ := describeAll()
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode OpenAPI document: %w", err)
	}

	return append(data, '\n'), nil
}

const about = "HTTP/1.1 and JSON over the socket `.daycare/daycare.sock`, which only the user that daycare runs as can " +
	"connect to, and on TCP if `control.listen` is set. A request with an unknown member is refused; clients " +
	"should ignore unknown members of responses."

func describeAll() (document, builder) {
	b := builder{schemas: map[string]*schema{}, types: map[string]reflect.Type{}}
	d := document{
		OpenAPI: "3.1.0",
		Info:    info{Title: "daycare", Version: "1", Description: about},
		Servers: []server{
			{URL: "http://daycare", Description: "the unix socket `.daycare/daycare.sock` of a workspace, without a token: " +
				"`curl --unix-socket .daycare/daycare.sock http://daycare/v1/status`"},
			{URL: "http://{listen}", Description: "`control.listen` of the settings; https only, except on loopback",
				Variables: map[string]variable{"listen": {"127.0.0.1:7331", "HOST:PORT"}}},
		},
		Security: []map[string][]string{{"bearer": {}}},
		Paths:    map[string]map[string]operation{},
	}
	for _, o := range control.Operations() {
		if d.Paths[o.Path] == nil {
			d.Paths[o.Path] = map[string]operation{}
		}
		d.Paths[o.Path][strings.ToLower(o.Method)] = b.operation(o)
	}

	d.Components = components{
		Responses: map[string]response{"Error": {
			Description: "An error: " + codes(),
			Content:     map[string]media{inJSON: {b.of(reflect.TypeFor[control.ErrorBody]())}},
		}},
		Schemas: b.schemas,
		SecuritySchemes: map[string]scheme{"bearer": {"http", "bearer",
			"On TCP: the secret `control`, which allows everything, or a token of `daycare auth token create NAME --scope SCOPE`. " +
				"The unix socket needs none: only the user that daycare runs as can connect to it, and that user may do everything."}},
	}

	return d, b
}

// codes lists what `code` can be, with the HTTP status.
func codes() string {
	var list []string
	for _, f := range fault.All {
		if f.Code != "" {
			list = append(list, fmt.Sprintf("`%s` (%d): %s", f.Code, f.Status, cmp.Or(f.About, f.Text)))
		}
	}

	return strings.Join(list, "; ")
}

// A builder collects the schemas of types with a name, and which types they are of.
type builder struct {
	schemas map[string]*schema
	types   map[string]reflect.Type
}

func (b builder) operation(o control.Operation) operation {
	word, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(o.Path, "/v1"), "/"), "/")
	op := operation{ID: o.Name, Tags: []string{word}, Description: describe(o), Responses: map[string]response{
		"default": {Ref: "#/components/responses/Error"},
	}, Security: []map[string][]string{{"bearer": {string(o.Scope)}}, {}}}
	for _, p := range control.Params(o.In) {
		if p.In == "body" {
			op.RequestBody = &requestBody{Content: map[string]media{p.Name: {b.body(p.Field.Type)}}}
			continue
		}
		op.Parameters = append(op.Parameters, b.parameter(p))
	}

	op.Responses[fmt.Sprint(o.Status())] = b.answer(o)
	if o.Streams() {
		op.Responses["200"] = response{Description: "server-sent events", Content: map[string]media{events: {&schema{Type: "string"}}}}
	}

	return op
}

// describe says what an operation does and what it needs.
func describe(o control.Operation) string {
	text := o.About + ".\n\nNeeds the scope `" + string(o.Scope) + "`"
	if o.AllAgents() {
		text += " on a token for all agents"
	}
	if o.NeedsDaemon() {
		text += ", and the running daemon"
	}

	return text + "."
}

func (b builder) answer(o control.Operation) response {
	switch o.Out {
	case reflect.TypeFor[control.Text]():
		return response{Description: "text", Content: map[string]media{inText: {&schema{Type: "string"}}}}
	case reflect.TypeFor[control.Tar]():
		bytes := &schema{Type: "string", Format: "binary"}
		return response{Description: "a tar", Content: map[string]media{"application/x-tar": {bytes}}}
	case reflect.TypeFor[control.Archive]():
		bytes := &schema{Type: "string", Format: "binary"}
		return response{Description: "a gzipped tar", Content: map[string]media{"application/gzip": {bytes}}}
	case reflect.TypeFor[control.Attachment]():
		return response{Description: "the content", Content: map[string]media{"*/*": {&schema{Type: "string", Format: "binary"}}}}
	case reflect.TypeFor[control.EventStream]():
		return response{}
	}

	return response{Description: "done", Content: map[string]media{inJSON: {b.of(o.Out)}}}
}

// body is the schema of what is sent: a type, or bytes.
func (b builder) body(t reflect.Type) *schema {
	if t.Kind() == reflect.Interface {
		return &schema{Type: "string", Description: "the raw content"}
	}
	return b.of(t)
}

// hints say what the parameters are that many operations have.
var hints = map[string]string{
	"id":            "an agent: its exact id, handle (`0%2F1`), name, or the first four or more letters of its id",
	"item":          "the id of an inbox item",
	"file":          "the id of a stored file",
	"token":         "the token of the approval request",
	"code":          "the code that the stranger was told",
	"session":       "the name of a browser's session",
	"slug":          "the name of the task or heartbeat item",
	"name":          "a name",
	"family":        "only this agent and its descendants that have not ended",
	"secrets":       "with keys and tokens",
	"rewind":        "also what a rewind would add, to the place `to`",
	"to":            "a seq or a checkpoint (default: before the newest turn)",
	"force":         "even while it has work",
	"before":        "only records before this seq (default: the newest)",
	"limit":         "maximum number of results",
	"agent":         "only what is about this agent",
	"html":          "with Markdown as HTML",
	"state":         "pending or decided",
	"ref":           "the id of an item, a reply, a turn, a tool call or an approval",
	"level":         "this level and above",
	"follow":        "go on with what is added",
	"types":         "only these types of events, separated by commas",
	"by":            "what to group by",
	"since":         "only what is of this time or later",
	"permission":    "a tag, such as `@exec:git push`",
	"what":          "a tag or a command",
	"If-Match":      "the `ETag` of the version that was edited",
	"after":         "`Last-Event-ID` for clients that cannot send the header",
	"Last-Event-ID": "continue after this event",

	"model":                  "a model of `data` in `GET /v1/models`, or the handle, name or id of an agent",
	"Idempotency-Key":        "the same key of the same caller for the same agent is the same message",
	"X-Daycare-Conversation": "the conversation that a message without an agent belongs to",
}

func (b builder) parameter(p control.Param) parameter {
	tag := p.Field.Tag
	_, need := tag.Lookup("need")
	out := parameter{Name: p.Name, In: p.In, Description: hints[p.Name], Required: need || p.In == "path" || p.Name == "If-Match"}
	switch p.Field.Type {
	case reflect.TypeFor[int64]():
		low, high := control.Bounds(tag)
		out.Schema = &schema{Type: "integer", bounds: bounds{&low, &high}}
		if s := tag.Get("default"); s != "" {
			out.Schema.Default = json.RawMessage(s)
		}
	case reflect.TypeFor[time.Time]():
		out.Schema = &schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[bool]():
		out.Schema = &schema{Type: "string", Enum: []string{"0", "1", "false", "true"}}
	default:
		out.Schema = &schema{Type: "string"}
		if allow := tag.Get("allow"); allow != "" {
			out.Schema.Enum = strings.Split(allow, "|")
			slices.Sort(out.Schema.Enum)
		}
	}

	return out
}
