package control

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"daycare/engine/apitoken"
	"daycare/engine/fault"
)

// A Route is the address of one operation and the scope that it needs.
type Route struct {
	Name         string // operationId in OpenAPI
	Method, Path string
	Scope        apitoken.Scope
	Reach        Reach
	Traits       Trait
	About        string // one cell of the table in docs/api.md, Markdown
}

// An Op is a route with its input and output. The members of In have a tag: path, query or header
// with their name there, or body with its media type. A query parameter may have the tags default,
// min, max, allow (its values, separated by |) and need (it is required; the text says what to do
// without it). Server, client, docs/api.md and the OpenAPI document are all generated from it.
type Op[In, Out any] Route

// A Reach says which agents a route is about, for callers whose rights are limited to some agents.
type Reach int

// What a route can be about.
const (
	_     Reach = iota
	none        // no agent: everybody may use it
	one         // the agent {id} of the path; another than the caller's does not exist
	known       // the handler leaves out what belongs to other agents
	all         // all of them, or the daemon: not for such callers
)

// A Trait is a special property of a route.
type Trait int

// Traits of routes.
const (
	needsDaemon Trait = 1 << iota // not served from files alone
	created                       // answers 201
	accepted                      // answers 202
	streams                       // may answer with server-sent events
	anyone                        // serves callers without rights: they prove who they are by it
)

// NeedsDaemon reports whether only a running daemon serves the route.
func (r Route) NeedsDaemon() bool { return r.Traits&needsDaemon != 0 }

// Streams reports whether the route may answer with server-sent events.
func (r Route) Streams() bool { return r.Traits&streams != 0 }

// AllAgents reports whether the route is closed to tokens that are limited to some agents.
func (r Route) AllAgents() bool { return r.Reach == all }

// Status is the HTTP status code of success.
func (r Route) Status() int {
	switch {
	case r.Traits&created != 0:
		return http.StatusCreated
	case r.Traits&accepted != 0:
		return http.StatusAccepted
	}

	return http.StatusOK
}

// Pattern is the route in the syntax of http.ServeMux.
func (r Route) Pattern() string { return r.Method + " " + r.Path }

// A Param is a member of the input of an operation.
type Param struct {
	In    string // path, query, header or body
	Name  string // of a body its media type
	Field reflect.StructField
}

// Params lists the members of the input of an operation.
func Params(in reflect.Type) (list []Param) {
	for i := range in.NumField() {
		f := in.Field(i)
		for _, where := range []string{"path", "query", "header", "body"} {
			if name, ok := f.Tag.Lookup(where); ok {
				list = append(list, Param{where, name, f})
			}
		}
	}

	return list
}

// call is one request and its answer in JSON.
func (o Op[In, Out]) call(ctx context.Context, c *wire, in In) (out Out, err error) {
	resp, err := o.send(ctx, c, in, "")
	if err != nil {
		return out, err
	}
	defer resp.Body.Close()
	if err = json.NewDecoder(resp.Body).Decode(&out); err != nil {
		return out, fmt.Errorf("read response of %s %s: %w", o.Method, resp.Request.URL.Path, gone(err))
	}

	return out, nil
}

// send is one request; the caller reads and closes the answer. One that is an error comes back as
// an error.
func (o Op[In, Out]) send(ctx context.Context, c *wire, in In, accept string) (*http.Response, error) {
	path, query, header := o.Path, url.Values{}, http.Header{}
	var body io.Reader
	values := reflect.ValueOf(in)
	for _, p := range Params(values.Type()) {
		v := values.FieldByIndex(p.Field.Index)
		switch {
		case p.In == "body":
			r, err := encoded(v.Interface())
			if err != nil {
				return nil, err
			}
			header.Set("Content-Type", p.Name)
			body = r
		case p.In == "path":
			path = strings.Replace(path, "{"+p.Name+"}", segment(v.String()), 1)
		case v.IsZero():
		case p.In == "query":
			query.Set(p.Name, written(v.Interface()))
		case p.In == "header":
			header.Set(p.Name, v.String())
		}
	}

	if len(query) > 0 {
		path += "?" + query.Encode()
	}

	// The host is a name for the log only: the transport knows where to connect.
	req, err := http.NewRequestWithContext(ctx, o.Method, "http://daycare"+path, body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}

	req.Header = header
	if accept != "" {
		header.Set("Accept", accept)
	}

	return c.roundTrip(req)
}

// encoded is a body as it goes over the wire: JSON, or what is a stream already.
func encoded(v any) (io.Reader, error) {
	if r, ok := v.(io.Reader); ok {
		return r, nil
	}
	data, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}

	return bytes.NewReader(data), nil
}

// written is a query parameter as it goes over the wire.
func written(v any) string {
	switch v := v.(type) {
	case bool:
		return "1"
	case time.Time:
		return v.Format(time.RFC3339Nano)
	}

	return fmt.Sprint(v)
}

// bind reads path, query and header of a request into an In. An {id} becomes the id of an agent.
func (a *api) bind(r *http.Request, in any) error {
	values := reflect.ValueOf(in).Elem()
	for _, p := range Params(values.Type()) {
		v := values.FieldByIndex(p.Field.Index)
		var err error
		switch p.In {
		case "path":
			s := r.PathValue(p.Name)
			if p.Name == "id" {
				s, err = a.resolve(r.Context(), s)
			}
			v.SetString(s)
		case "query":
			err = read(v, p, r.URL.Query().Get(p.Name))
		case "header":
			v.SetString(r.Header.Get(p.Name))
		}

		if err != nil {
			return err
		}
	}

	return nil
}

// body reads the JSON body of a request into an In.
func body(w http.ResponseWriter, r *http.Request, in any) error {
	values := reflect.ValueOf(in).Elem()
	for _, p := range Params(values.Type()) {
		if p.In == "body" {
			return decode(w, r, maxBody, values.FieldByIndex(p.Field.Index).Addr().Interface())
		}
	}

	return nil
}

// read reads a query parameter.
func read(v reflect.Value, p Param, s string) error {
	tag := p.Field.Tag
	if s == "" {
		if need, ok := tag.Lookup("need"); ok {
			return &malformed{Invalid{Field: p.Name, Reason: "is missing", Hint: need}}
		}
		if s = tag.Get("default"); s == "" {
			return nil
		}
	}

	wrong := func(format string, args ...any) error {
		return &malformed{Invalid{Field: p.Name, Reason: fmt.Sprintf("found %q, allowed: ", s) + fmt.Sprintf(format, args...)}}
	}
	switch v.Interface().(type) {
	case bool:
		on, err := strconv.ParseBool(s)
		if err != nil {
			return wrong("1 or 0")
		}
		v.SetBool(on)
	case int64:
		low, high := Bounds(tag)
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < low || n > high {
			return wrong("a number from %d to %d", low, high)
		}
		v.SetInt(n)
	case time.Time:
		at, err := time.Parse(time.RFC3339, s)
		if err != nil {
			return wrong("a time such as 2026-11-20T00:00:00Z")
		}
		v.Set(reflect.ValueOf(at))
	default:
		if allow := tag.Get("allow"); allow != "" && !slices.Contains(strings.Split(allow, "|"), s) {
			return wrong("%s", strings.ReplaceAll(allow, "|", ", "))
		}
		v.SetString(s)
	}

	return nil
}

// Bounds returns the smallest and largest value that the tags of a number allow.
func Bounds(tag reflect.StructTag) (low, high int64) {
	low, _ = strconv.ParseInt(tag.Get("min"), 10, 64)
	high, err := strconv.ParseInt(tag.Get("max"), 10, 64)
	if err != nil {
		high = 1 << 53 // the greatest that JSON carries everywhere
	}

	return low, high
}

// A row is an operation with its handler.
type row struct {
	Route
	in, out reflect.Type
	serve   http.HandlerFunc
}

// on makes the row of an operation and the function that does it, JSON in and out.
func on[In, Out any](a *api, o Op[In, Out], do func(ctx context.Context, in In) (Out, error)) row {
	return stream(a, o, func(w http.ResponseWriter, r *http.Request, in In) {
		err := body(w, r, &in)
		if err == nil {
			err = a.ready(Route(o))
		}
		var out Out
		if err == nil {
			out, err = do(r.Context(), in)
		}
		if err != nil {
			a.fail(w, r, err)
			return
		}

		a.send(w, r, Route(o).Status(), out)
	})
}

// stream makes the row of an operation that reads its body or writes its answer itself.
func stream[In, Out any](a *api, o Op[In, Out], do func(w http.ResponseWriter, r *http.Request, in In)) row {
	return row{Route(o), reflect.TypeFor[In](), reflect.TypeFor[Out](), func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := a.bind(r, &in); err != nil {
			a.fail(w, r, err)
			return
		}
		do(w, r, in)
	}}
}

// ready refuses operations that need the daemon if there is none.
func (a *api) ready(r Route) error {
	if a.offline && r.NeedsDaemon() {
		return fault.NotRunning
	}
	return nil
}
