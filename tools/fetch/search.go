package fetch

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"daycare/engine/permission"
	"daycare/tools"
)

// A Service is who searches the web for us.
type Service struct {
	Name string // brave, exa, tavily, perplexity or searxng
	URL  string // its address; "" is the usual one (searxng has none)
	Key  func() string
}

// Services are the names of the services, in the order in which a key is looked
// for.
var Services = []string{"brave", "exa", "tavily", "perplexity", "searxng"}

// FindService makes the service of a setting: a name, or the address of a SearXNG.
// "" takes the first whose key is there. key gives the secret of a name; nil is
// returned if there is none.
func FindService(setting string, key func(name string) string) (*Service, error) {
	with := func(name, address string) *Service {
		return &Service{Name: name, URL: address, Key: func() string { return key(name) }}
	}
	switch {
	case strings.HasPrefix(setting, "http://"), strings.HasPrefix(setting, "https://"):
		return with("searxng", strings.TrimRight(setting, "/")), nil
	case setting == "":
		for _, name := range Services[:4] {
			if key(name) != "" {
				return with(name, ""), nil
			}
		}
		return nil, nil
	case setting == "searxng" || !slices.Contains(Services, setting):
		return nil, fmt.Errorf("tools.web.search is %q, allowed: brave, exa, tavily, perplexity, or the address of a SearXNG", setting)
	case key(setting) == "":
		return nil, fmt.Errorf("tools.web.search is %s, but there is no key for it\nset it with: daycare auth set %s", setting, setting)
	}

	return with(setting, ""), nil
}

type search struct{ service Service }

var searchSpec = tools.Spec{Name: "web_search", Replay: tools.ReadOnly, Parallel: true, Timeout: fetchTimeout,
	Description: "Search the web. Returns titles, addresses and extracts; read pages with web_fetch.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"query":{"type":"string"},
"count":{"type":"integer","minimum":1,"maximum":20}},
"required":["query"],"additionalProperties":false}`)}

// Spec describes the tool.
func (*search) Spec() tools.Spec { return searchSpec }

// Needs is the right to the service's host: a query tells it what the agent is
// about. A server that the owner named by its address needs none.
func (s *search) Needs(call tools.Call) (*permission.Request, error) {
	u, err := url.Parse(s.service.address())
	if err != nil {
		return nil, fmt.Errorf("web_search: the address of the service is invalid: %w", err)
	}
	if s.service.URL != "" {
		return nil, nil // the owner named it in the settings
	}

	a := web(u.Hostname())
	if call.Access.Allows(a) {
		return nil, nil
	}

	return &permission.Request{Tag: a.Tag(), Reason: "search the web", Detail: permission.Detail{Host: u.Hostname()}}, nil
}

func (s Service) address() string {
	return cmp.Or(s.URL, map[string]string{
		"brave":      "https://api.search.brave.com/res/v1/web/search",
		"exa":        "https://api.exa.ai/search",
		"tavily":     "https://api.tavily.com/search",
		"perplexity": "https://api.perplexity.ai/search",
	}[s.Name])
}

// Run asks the service.
func (s *search) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	var a struct {
		Query string  `json:"query"`
		Count float64 `json:"count"`
	}
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return tools.Errorf("web_search: the arguments do not fit: %v", err), nil
	}
	if a.Query = strings.TrimSpace(a.Query); a.Query == "" || len(a.Query) > 1000 {
		return tools.Errorf("web_search: a query has 1 to 1,000 characters"), nil
	}

	count := 8
	if a.Count >= 1 {
		count = int(min(a.Count, 20))
	}
	body, err := s.ask(ctx, a.Query, count)
	if err != nil {
		if ctx.Err() != nil {
			return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
		}
		return tools.Errorf("web_search: %s: %v", s.service.Name, err), nil
	}

	return tools.Result{Text: shown(s.service.results(body), count), Source: "what web_search found for " + strconv.Quote(a.Query)}, nil
}

func (s *search) ask(ctx context.Context, query string, count int) ([]byte, error) {
	req, err := s.service.request(ctx, query, count)
	if err != nil {
		return nil, err
	}
	host, port, err := target(hostPort(req.URL))
	if err != nil {
		return nil, err
	}

	set := permission.Set{Hosts: []string{host}}
	if s.service.URL != "" { // the owner named the server, which may be in their network
		set.Lan = []string{net.JoinHostPort(host, strconv.Itoa(int(port)))}
	}
	client := &http.Client{Transport: transport(set, fetchTimeout), CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a key is not sent elsewhere
	}}
	resp, err := client.Do(req)
	if err != nil {
		if u, ok := err.(*url.Error); ok {
			err = u.Err // its text has the address, and that the query
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK || !json.Valid(body) {
		switch after := resp.Header.Get("Retry-After"); {
		case after != "":
			return nil, fmt.Errorf("it answered %s, to be asked again after %s", resp.Status, clean(after)+secondsOf(after))
		case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
			return nil, fmt.Errorf("it answered %s: its key is not accepted, which only the owner of daycare can change", resp.Status)
		}
		return nil, fmt.Errorf("it answered %s", resp.Status)
	}

	return body, nil
}

// request is how each service wants to be asked.
func (s Service) request(ctx context.Context, query string, count int) (*http.Request, error) {
	get := func(params url.Values, path string) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodGet, s.address()+path+"?"+params.Encode(), nil)
	}
	post := func(body map[string]any) (*http.Request, error) {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address(), bytes.NewReader(data))
		if err == nil {
			req.Header.Set("Content-Type", "application/json")
		}

		return req, err
	}
	var req *http.Request
	var err error
	header, value := "Authorization", "Bearer "+s.Key()
	switch s.Name {
	case "brave":
		req, err = get(url.Values{"q": {query}, "count": {fmt.Sprint(count)}}, "")
		header, value = "X-Subscription-Token", s.Key()
	case "searxng":
		req, err = get(url.Values{"q": {query}, "format": {"json"}}, "/search")
		header = ""
	case "exa":
		req, err = post(map[string]any{"query": query, "numResults": count, "contents": map[string]any{"highlights": true}})
		header, value = "x-api-key", s.Key()
	case "tavily":
		req, err = post(map[string]any{"query": query, "max_results": count})
	case "perplexity":
		req, err = post(map[string]any{"query": query, "max_results": count})
	default:
		return nil, fmt.Errorf("there is no service %q", s.Name)
	}

	if err != nil {
		return nil, err
	}
	if header != "" {
		req.Header.Set(header, value)
	}

	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", userAgent)
	return req, nil
}

// A found is one result.
type found struct{ title, url, text string }

// results reads the answer of each service.
func (s Service) results(body []byte) []found {
	list, text := "results", "content"
	switch s.Name {
	case "brave":
		list, text = "web.results", "description"
	case "exa":
		text = "highlights.0"
	case "perplexity":
		text = "snippet"
	}

	var all []found
	for _, r := range gjson.GetBytes(body, list).Array() {
		all = append(all, found{flat(r.Get("title").String()), r.Get("url").String(), flat(plain(r.Get(text).String()))})
	}

	return all
}

func shown(all []found, count int) string {
	if len(all) == 0 {
		return "[nothing was found]"
	}
	var b strings.Builder
	for i, f := range all[:min(len(all), count)] {
		text := []rune(f.text)
		if len(text) > 500 {
			text = append(text[:500], '…')
		}
		fmt.Fprintf(&b, "%d. %s\n   %s\n   %s\n", i+1, f.title, f.url, string(text))
	}

	return b.String()
}
