package fetch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/text/encoding/htmlindex"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/pdf"
)

const (
	fetchTimeout = 30 * time.Second
	maxBody      = 5 << 20 // bytes, unpacked
	maxPDF       = 20 << 20
	maxText      = 200_000 // characters of a result
	maxURL       = 4096
	userAgent    = "daycare/1 (an agent's web_fetch)"
)

// Options say what the tools use.
type Options struct {
	// Keep stores a picture that was fetched. nil: pictures are not shown.
	Keep func(name, mimeType string, data []byte) (message.File, error)
	// Search is the service behind web_search; nil: none.
	Search *Service
}

// New makes the tool web_fetch and, with a service, web_search.
func New(o Options) []tools.Tool {
	list := []tools.Tool{&fetch{o}}
	if o.Search != nil {
		list = append(list, &search{*o.Search})
	}

	return list
}

type fetch struct{ options Options }

var fetchSpec = tools.Spec{Name: "web_fetch", Replay: tools.ReadOnly, Parallel: true, Timeout: 2 * fetchTimeout,
	Description: "Fetch a web page as Markdown, or a PDF, a text file or an image.",
	Schema: json.RawMessage(`{"type":"object","properties":{
"url":{"type":"string"},
"raw":{"type":"boolean","description":"the source instead of Markdown"},
"page":{"type":"integer","minimum":1,"description":"first page of a PDF"}},
"required":["url"],"additionalProperties":false}`)}

// Spec describes the tool.
func (*fetch) Spec() tools.Spec { return fetchSpec }

type fetchArgs struct {
	URL  string `json:"url"`
	Raw  bool   `json:"raw"`
	Page int    `json:"page"`
}

func decodeFetch(call tools.Call) (a fetchArgs, u *url.URL, err error) {
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return a, nil, fmt.Errorf("the arguments do not fit: %w", err)
	}
	u, err = address(a.URL)
	return a, u, err
}

// address reads an address that a model gave.
func address(text string) (*url.URL, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxURL {
		return nil, errors.New("the address is too long")
	}
	if !strings.Contains(text, "://") && strings.Contains(text, ".") {
		text = "https://" + text
	}

	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("that is not an address")
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%q is not a web address; it must begin with http:// or https://", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("the address names no host")
	case u.User != nil:
		return nil, errors.New("an address with a user name in it is not fetched")
	}

	u.Fragment = ""
	return u, nil
}

// web is the right that a host needs. Hosts that no grant can spell (IPv6
// addresses, names with odd letters) are covered by the right to all.
func web(host string) permission.Access {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if a, err := permission.Parse("@web:" + host); err == nil {
		return a
	}

	return permission.Web{}
}

// Needs is the right to the host: to the very port where its name leads to this machine or
// its network. A name that anybody could have made is only looked up by who may reach it:
// the question alone would tell its name server what the agent put into it.
func (f *fetch) Needs(call tools.Call) (*permission.Request, error) {
	_, u, err := decodeFetch(call)
	if err != nil {
		return nil, nil // Run says so
	}
	host, port, err := target(hostPort(u))
	if err != nil {
		return nil, nil
	}

	far, near := web(host), permission.Lan{Host: host, Port: port}
	need := permission.Request{Tag: far.Tag(), Reason: "read a web page", Detail: permission.Detail{Host: u.String()}}
	allowed := call.Access.Allows(far)
	if call.Access.Allows(near) {
		return nil, nil
	}
	if allowed || !tells(host) {
		if leads := inside(host); len(leads) > 0 {
			need.Tag, need.Reason = near.Tag(), fmt.Sprintf("read from your network: %s leads to %s", host, leads[0].Unmap())
			return &need, nil
		}
	}
	if allowed {
		return nil, nil
	}

	return &need, nil
}

// hostPort is the host and port of an address of the web.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}

	return net.JoinHostPort(u.Hostname(), port)
}

// opened is the set of a call with what a user allowed for this call alone: its first host.
func opened(call tools.Call, u *url.URL) permission.Set {
	set := call.Access
	if call.Approved == "" {
		return set
	}
	host, port, err := target(hostPort(u))
	if err != nil {
		return set
	}
	if near := (permission.Lan{Host: host, Port: port}); call.Approved == near.Tag() {
		if more, err := set.Grant(permission.Grant{Tag: near.Tag()}); err == nil {
			return more
		}
		return set
	}

	set.Hosts = append(slices.Clone(set.Hosts), host)
	return set
}

// Run fetches it.
func (f *fetch) Run(ctx context.Context, call tools.Call) (tools.Result, error) {
	if ctx.Err() != nil {
		return tools.Result{Text: "Cancelled", Status: tools.Canceled}, nil
	}
	a, u, err := decodeFetch(call)
	if err != nil {
		return tools.Errorf("web_fetch: %v", err), nil
	}

	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	resp, err := get(ctx, opened(call, u), u)
	if err != nil {
		res := failed(ctx, call.Access, err)
		if quotes(err) {
			res.Source = u.String()
		}
		return res, nil
	}
	defer resp.Body.Close()
	res := f.read(ctx, call, resp, a)
	res.Source = u.String()

	return res, nil
}

// read reads an answer.
func (f *fetch) read(ctx context.Context, call tools.Call, resp *http.Response, a fetchArgs) tools.Result {
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody+1))
	if err == nil && pdf.Is(body) {
		var rest []byte
		rest, err = io.ReadAll(io.LimitReader(resp.Body, int64(maxPDF+1-len(body))))
		body = append(body, rest...)
	}

	switch {
	case err != nil && (len(body) == 0 || pdf.Is(body)): // of a text, the beginning is better than nothing
		return failed(ctx, call.Access, err)
	case pdf.Is(body) && resp.StatusCode < 300:
		return document(ctx, resp, body, a.Page)
	}

	note := ""
	switch {
	case len(body) > maxBody:
		note = fmt.Sprintf(", the first %d MB", maxBody>>20)
	case err != nil:
		note = ", cut off: the server did not send the rest"
	}

	return f.result(resp, body[:min(len(body), maxBody)], a.Raw, note)
}

// errHost is a redirect to a host that needs a right of its own.
type errHost struct{ url *url.URL }

func (e errHost) Error() string { return "redirected to " + e.url.String() }

// get makes the request; every redirect is judged as the first address was.
func get(ctx context.Context, set permission.Set, u *url.URL) (*http.Response, error) {
	client := &http.Client{Transport: transport(set, fetchTimeout), CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= 10:
			return errors.New("more than ten redirects")
		case req.URL.Scheme != "http" && req.URL.Scheme != "https" || req.URL.User != nil:
			return fmt.Errorf("redirected to %s, which is not fetched", req.URL.Redacted())
		case !strings.EqualFold(req.URL.Hostname(), u.Hostname()) && !set.Allows(web(req.URL.Hostname())) && !near(set, req.URL):
			return errHost{req.URL}
		}

		req.Header.Del("Referer")

		return nil
	}}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}

	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/html, text/markdown;q=0.9, text/*;q=0.8, application/json;q=0.8, image/*;q=0.5, */*;q=0.1")
	return client.Do(req)
}

// near reports whether an address is one in the network of this machine that a set names.
func near(set permission.Set, u *url.URL) bool {
	host, port, err := target(hostPort(u))
	return err == nil && set.Allows(permission.Lan{Host: host, Port: port})
}

// quotes reports whether an error may have words of the server in it: where it redirects to, what stands in its certificate, a line
// that is no HTTP. What the network and this program say has none.
func quotes(err error) bool {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err
	}
	_, network := errors.AsType[net.Error](err)
	_, inside := errors.AsType[*Inside](err)

	return !network && !inside && !errors.Is(err, ErrPrivate) && !errors.Is(err, context.Canceled)
}

// failed puts an error into words that say what to do.
func failed(ctx context.Context, set permission.Set, err error) tools.Result {
	var host errHost
	var near *Inside
	switch {
	case errors.As(err, &host):
		tag := web(host.url.Hostname()).Tag()
		return tools.Result{Status: tools.Denied,
			Text: fmt.Sprintf("The page redirects to %s; call web_fetch with that address (it needs %s).", host.url, tag)}
	case errors.As(err, &near):
		return tools.Result{Status: tools.Denied, Text: fmt.Sprintf(
			"%s is this machine or in its network. Ask with request_permission for %s.", near.Need.Host, near.Need.Tag())}
	case errors.Is(err, ErrPrivate):
		return tools.Result{Status: tools.Denied, Text: "The host is at an address that no agent may reach, " +
			"or at a port that web servers do not have (ask with request_permission for @web:HOST, by its full name)."}
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return tools.Result{Status: tools.TimedOut, Text: fmt.Sprintf("The server did not answer within %v.", fetchTimeout)}
	case ctx.Err() != nil:
		return tools.Result{Status: tools.Canceled, Text: "Cancelled"}
	}

	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return tools.Errorf("There is no host %s.", dns.Name)
	}

	return tools.Errorf("web_fetch: %v", err)
}

// result makes the answer readable. cut says why it is not all of it; "": it is.
func (f *fetch) result(resp *http.Response, body []byte, asIs bool, cut string) tools.Result {
	kind, params, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind == "application/octet-stream" {
		kind, params, _ = mime.ParseMediaType(http.DetectContentType(body))
	}
	head := fmt.Sprintf("%s\n%s, %s%s", resp.Request.URL, resp.Status, kind, cut)
	if after := resp.Header.Get("Retry-After"); after != "" && resp.StatusCode >= 400 {
		head += ", to be asked again after " + clean(after) + secondsOf(after)
	}
	if packed := resp.Header.Get("Content-Encoding"); packed != "" && packed != "identity" { // gzip is unpacked already
		return tools.Errorf("%s\n[the server packed it with %s, which it was not asked for; it cannot be read]", head, clean(packed))
	}

	var text string
	switch {
	case len(body) == 0 && cut == "":
		text = "[the answer is empty]"
	case pictures[kind] && resp.StatusCode < 300 && cut == "":
		return f.picture(head, resp.Request.URL, kind, body)
	case kind == "text/html" || kind == "application/xhtml+xml":
		text = decode(body, params["charset"])
		if !asIs {
			var title string
			title, text = markdown(text, resp.Request.URL)
			head += "\n" + title
			if strings.TrimSpace(text) == "" {
				text = "[the page has no text: scripts may make it in a browser, or it leads elsewhere; raw shows its source]"
			}
		}
	case strings.HasPrefix(kind, "text/") || strings.HasSuffix(kind, "json") || strings.HasSuffix(kind, "xml") ||
		kind == "application/javascript" || kind == "application/yaml":
		text = decode(body, params["charset"])
	default:
		return tools.Errorf("%s\n[%d bytes that are not text; they cannot be shown]", head, len(body))
	}

	if n := utf8.RuneCountInString(text); n > maxText {
		text = string([]rune(text)[:maxText]) + fmt.Sprintf("\n[the first %d of %d characters]", maxText, n)
	}
	res := tools.Result{Text: head + "\n\n" + text}
	if resp.StatusCode >= 400 {
		res.Status = tools.Failed
	}

	return res
}

// clean is a line of a header that a server wrote, as part of what a model reads.
func clean(header string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == utf8.RuneError {
			return -1
		}
		return r
	}, header[:min(len(header), 60)])
}

// secondsOf names the unit of a Retry-After that is a number.
func secondsOf(after string) string {
	if _, err := strconv.Atoi(after); err == nil {
		return " seconds"
	}
	return ""
}

var pictures = map[string]bool{"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true}

func (f *fetch) picture(head string, u *url.URL, kind string, data []byte) tools.Result {
	if f.options.Keep == nil {
		return tools.Errorf("%s\n[a picture; it cannot be shown here]", head)
	}
	name := path.Base(u.Path)
	if name == "." || name == "/" {
		name = "picture"
	}

	file, err := f.options.Keep(name, kind, data)
	if err != nil {
		return tools.Errorf("%s\n[the picture cannot be kept: %v]", head, err)
	}

	return tools.Result{Text: head, Blocks: []tools.Block{{Type: "image", File: &file}}}
}

// decode makes text of bytes in the charset that they begin with a mark of, else that
// of the header, else of the page. What is UTF-8 is read as such whatever is said of
// it, but for charsets whose bytes look like it; what is neither is Windows-1252, as
// browsers have it.
func decode(body []byte, charset string) string {
	switch {
	case bytes.HasPrefix(body, []byte("\xFF\xFE")):
		charset = "utf-16le"
	case bytes.HasPrefix(body, []byte("\xFE\xFF")):
		charset = "utf-16be"
	case charset == "":
		charset = declared(body)
	}

	charset = strings.ToLower(charset)
	plain := utf8.Valid(whole(body)) && !strings.HasPrefix(charset, "utf-16") && charset != "iso-2022-jp"
	if charset == "" && !plain {
		charset = "windows-1252"
	}
	if charset != "utf-8" && !plain {
		if enc, err := htmlindex.Get(charset); err == nil {
			if text, err := enc.NewDecoder().Bytes(body); err == nil {
				return strings.TrimPrefix(string(text), "\uFEFF")
			}
		}
	}

	return strings.ToValidUTF8(string(bytes.TrimPrefix(body, []byte("\uFEFF"))), "\uFFFD")
}

// whole is a text without the part of a character that it was cut in.
func whole(body []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(body); n++ {
		if c := body[len(body)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(body[len(body)-n:]) {
				return body[:len(body)-n]
			}
			break
		}
	}

	return body
}

// declared is what a page says of its own charset.
func declared(body []byte) string {
	head := strings.ToLower(string(body[:min(len(body), 2048)]))
	_, rest, ok := strings.Cut(head, "charset=")
	if !ok {
		return ""
	}

	rest = strings.TrimLeft(rest, `"' `)
	end := strings.IndexAny(rest, `"' ;/>`)
	if end < 0 {
		return ""
	}

	return rest[:end]
}
