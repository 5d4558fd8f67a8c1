package control

import (
	"context"
	"net/http"
	"strings"
	"time"

	"daycare/engine/fault"
)

// Browsers lets people in who use the page.
type Browsers interface {
	// Invite serves the page from now on and makes a login token for it, of one use.
	Invite(ctx context.Context) (Invitation, error)
	// Login makes a session of a login token. browser is what the browser says of itself. Errors:
	// fault.WrongLogin, fault.LoginLater in a *Wait.
	Login(ctx context.Context, token, browser string) (s Session, cookie string, err error)
	// Sessions are the browsers that are logged in.
	Sessions(ctx context.Context) ([]Session, error)
	// End ends a session and what it has open. Errors: fault.NoSession.
	End(ctx context.Context, name string) error
}

// A Page is what a listener serves to browsers beside the API.
type Page interface {
	// On reports whether the page was ever requested.
	On() bool
	// Has reports whether a request is for the page, not for the API.
	Has(r *http.Request) bool
	http.Handler
}

// An Invitation is an address with a login token.
type Invitation struct {
	URL       string    `json:"url"`     // with the token in its fragment, which browsers do not send
	Address   string    `json:"address"` // without
	ExpiresAt time.Time `json:"expiresAt"`
}

// A Session is a browser that is logged in; of another caller only Caller is known.
type Session struct {
	Caller    string     `json:"caller,omitempty"` // as in decisions: web:web-firefox-1c9e04, token:phone
	Name      string     `json:"name,omitempty"`
	CreatedAt *time.Time `json:"createdAt,omitempty"`
	LastAt    *time.Time `json:"lastAt,omitempty"` // to the minute
	ExpiresAt *time.Time `json:"expiresAt,omitempty"`
}

// A Wait is an error that goes away after a time.
type Wait struct {
	Err   error
	After time.Duration
}

func (e *Wait) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong until then.
func (e *Wait) Unwrap() error { return e.Err }

type sessionsBody struct {
	Sessions []Session `json:"sessions"`
}

// browserRoutes serve Browsers.
type browserRoutes struct {
	api      *api
	browsers Browsers
}

func browserRows(a *api, b browserRoutes) []row {
	return []row{on(a, openPage, b.invite), stream(a, login, b.login), on(a, whoAmI, b.who), stream(a, logout, b.logout),
		on(a, listSessions, b.list), on(a, endSession, b.end)}
}

func (b browserRoutes) invite(ctx context.Context, _ nothing) (Invitation, error) {
	return b.browsers.Invite(ctx)
}

// login gives a browser its cookie.
func (b browserRoutes) login(w http.ResponseWriter, r *http.Request, in aBody[loginBody]) {
	way, ok := r.Context().Value(cookieKey{}).(cookieWay)
	err := b.api.ready(Route(login))
	if err == nil && !ok {
		err = refuse(fault.Forbidden, "open the page with: daycare web", "only a browser logs in")
	}
	if err == nil {
		err = body(w, r, &in)
	}
	var s Session
	var cookie string
	if err == nil {
		s, cookie, err = b.browsers.Login(r.Context(), in.Body.Token, r.UserAgent())
	}
	if err != nil {
		b.api.fail(w, r, err)
		return
	}

	if old := callerOf(r.Context()).Session; old != "" { // the cookie takes its place
		_ = b.browsers.End(context.WithoutCancel(r.Context()), old)
	}
	http.SetCookie(w, way.cookie(cookie, *s.ExpiresAt))
	b.api.send(w, r, Route(login).Status(), s)
}

func (b browserRoutes) who(ctx context.Context, _ nothing) (Session, error) {
	caller := callerOf(ctx)
	if caller.Session == "" {
		return Session{Caller: caller.Name}, nil
	}

	list, err := b.browsers.Sessions(ctx)
	for _, s := range list {
		if s.Name == caller.Session {
			return s, nil
		}
	}

	return Session{Caller: caller.Name, Name: caller.Session}, err
}

// logout ends the session of the caller and takes its cookie back.
func (b browserRoutes) logout(w http.ResponseWriter, r *http.Request, _ nothing) {
	name := callerOf(r.Context()).Session
	err := b.api.ready(Route(logout))
	if err == nil && name == "" {
		err = &Invalid{Reason: "the caller has no session", Hint: "only a browser that is logged in has one"}
	}
	if err == nil {
		err = b.browsers.End(context.WithoutCancel(r.Context()), name) // it ends the request, too
	}
	if err != nil {
		b.api.fail(w, r, err)
		return
	}

	if way, ok := r.Context().Value(cookieKey{}).(cookieWay); ok {
		http.SetCookie(w, way.cookie("", time.Time{}))
	}
	b.api.send(w, r, Route(logout).Status(), empty{})
}

func (b browserRoutes) list(ctx context.Context, _ nothing) (sessionsBody, error) {
	list, err := b.browsers.Sessions(ctx)
	return sessionsBody{some(list)}, err
}

func (b browserRoutes) end(ctx context.Context, in sessionIn) (empty, error) {
	return empty{}, b.browsers.End(ctx, in.Session)
}

// OpenPage has the daemon serve the page and returns where.
func (c daemonCalls) OpenPage(ctx context.Context) (Invitation, error) {
	return openPage.call(ctx, c.wire, nothing{})
}

// Sessions lists the browsers that are logged in.
func (c daemonCalls) Sessions(ctx context.Context) ([]Session, error) {
	b, err := listSessions.call(ctx, c.wire, nothing{})
	return b.Sessions, err
}

// EndSession ends the session of a browser. Errors: fault.NoSession.
func (c daemonCalls) EndSession(ctx context.Context, name string) error {
	_, err := endSession.call(ctx, c.wire, sessionIn{name})
	return err
}

// A cookieWay is how a listener gives cookies: by its port, because cookies know none.
type cookieWay struct {
	name   string
	secure bool
}

type cookieKey struct{}

// cookie holds a session until a time; "" takes it back.
func (c cookieWay) cookie(value string, until time.Time) *http.Cookie {
	k := &http.Cookie{Name: c.name, Value: value, Path: "/", HttpOnly: true, Secure: c.secure, SameSite: http.SameSiteStrictMode,
		Expires: until}
	if value == "" {
		k.MaxAge = -1
	}

	return k
}

// pageHeader is the header that the page sends with whatever changes something: no form and no
// link of another page can.
const pageHeader = "X-Daycare"

// browser finds out whose cookie a request has. A login has none yet: it goes on without rights.
func (g *guard) browser(r *http.Request) (ctx context.Context, end func(), refused *APIError) {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if !reads && r.Header.Get(pageHeader) != "1" {
		return nil, nil, refuse(fault.Forbidden, "send the header "+pageHeader+": 1", "the header %s is missing", pageHeader)
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return nil, nil, Describe(fault.Forbidden)
	}

	way := cookieWay{"daycare_session_" + g.port, g.scheme == "https"}
	ctx = context.WithValue(r.Context(), cookieKey{}, way)
	if c, err := r.Cookie(way.name); err == nil {
		if h, known := g.tokens.FindSession(c.Value); known {
			ctx, cancel := h.Within(ctx)
			return WithCaller(ctx, Caller{Name: h.String(), Rights: h.Rights, Session: h.Name}), cancel, nil
		}
	}
	if r.Method == login.Method && strings.TrimSuffix(r.URL.Path, "/") == login.Path {
		return WithCaller(ctx, Caller{Name: "web"}), func() {}, nil
	}

	return nil, nil, refuse(fault.Unauthorized, "open the page with: daycare web", "%s", fault.Unauthorized.Text)
}
