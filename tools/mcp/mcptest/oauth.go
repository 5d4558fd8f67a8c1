package mcptest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Issuer is an authorization server with a service behind it, written from the RFCs: 6749
// with PKCE (7636), its metadata (8414), that of the service (9728), registration (7591) and
// resource indicators (8707). Whoever opens the page of the login is logged in.
type Issuer struct {
	*httptest.Server
	// Lifetime is how long access tokens are good.
	Lifetime time.Duration

	mu      sync.Mutex
	clients map[string][]string   // redirect addresses by client
	codes   map[string]url.Values // the request of the login, by code
	access  map[string]time.Time  // when tokens end
	refresh map[string]string     // clients by refresh token
	counts  map[string]int
}

// NewIssuer has the service be at /mcp of the server.
func NewIssuer(service http.Handler) *Issuer {
	i := &Issuer{Lifetime: time.Hour, clients: map[string][]string{}, codes: map[string]url.Values{},
		access: map[string]time.Time{}, refresh: map[string]string{}, counts: map[string]int{}}
	mux := http.NewServeMux()
	mux.Handle("/mcp", i.guard(service))
	mux.HandleFunc("GET /.well-known/oauth-protected-resource/mcp", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"resource": i.URL + "/mcp", "authorization_servers": []string{i.URL},
			"scopes_supported": []string{"tools"}})
	})
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, object{"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
			"registration_endpoint": i.URL + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none"},
			"authorization_response_iss_parameter_supported": true})
	})
	mux.HandleFunc("POST /register", i.register)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(mux)
	return i
}

// ServeIssuer is the process of a service with a login; its address is written to the file path.
func ServeIssuer(path string) {
	s := &server{sdk.NewServer(&sdk.Implementation{Name: "service", Version: "1"}, nil)}
	s.add("echo", "Says it again", nil, func(r call) (result, error) { return text(string(r.Params.Arguments)) })
	i := NewIssuer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.Server }, nil))
	if err := os.WriteFile(path, []byte(i.URL+"/mcp"), 0o644); err != nil {
		panic(err)
	}
	select {}
}

// Count is how often something was done: register, authorize, code, refresh.
func (i *Issuer) Count(what string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.counts[what]
}

// Expire has all access tokens be over; with all, refresh tokens too.
func (i *Issuer) Expire(all bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.access)
	if all {
		clear(i.refresh)
	}
}

// guard lets requests with a good token pass (RFC 6750).
func (i *Issuer) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		end, known := i.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
		i.mu.Unlock()
		if !known || time.Now().After(end) {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token", resource_metadata="`+
				i.URL+`/.well-known/oauth-protected-resource/mcp"`)
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (i *Issuer) register(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Redirects []string `json:"redirect_uris"`
		Method    string   `json:"token_endpoint_auth_method"`
	}
	if json.NewDecoder(r.Body).Decode(&asked) != nil || len(asked.Redirects) == 0 {
		answer(w, http.StatusBadRequest, object{"error": "invalid_redirect_uri"})
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.counts["register"]++
	id := "client-" + rand.Text()
	i.clients[id] = asked.Redirects
	answer(w, http.StatusCreated, object{"client_id": id, "redirect_uris": asked.Redirects, "token_endpoint_auth_method": asked.Method})
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	to, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || !slices.Contains(i.clients[q.Get("client_id")], q.Get("redirect_uri")) {
		http.Error(w, "that is not an address of this client", http.StatusBadRequest)
		return
	}
	back := url.Values{"state": {q.Get("state")}, "iss": {i.URL}}
	switch {
	case q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "":
		back.Set("error", "invalid_request")
	case q.Get("resource") != i.URL+"/mcp":
		back.Set("error", "invalid_target")
	default:
		i.counts["authorize"]++
		code := rand.Text()
		i.codes[code] = q
		back.Set("code", code)
	}
	to.RawQuery = back.Encode()
	http.Redirect(w, r, to.String(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	client := r.PostFormValue("client_id")
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		asked := i.codes[r.PostFormValue("code")]
		delete(i.codes, r.PostFormValue("code")) // once
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if asked == nil || asked.Get("client_id") != client || asked.Get("redirect_uri") != r.PostFormValue("redirect_uri") ||
			asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) {
			answer(w, http.StatusBadRequest, object{"error": "invalid_grant"})
			return
		}
		i.counts["code"]++
	case "refresh_token":
		was := r.PostFormValue("refresh_token")
		if i.refresh[was] == "" || i.refresh[was] != client {
			answer(w, http.StatusBadRequest, object{"error": "invalid_grant"})
			return
		}
		delete(i.refresh, was) // each is good once (OAuth 2.1, 4.3.1)
		i.counts["refresh"]++
	default:
		answer(w, http.StatusBadRequest, object{"error": "unsupported_grant_type"})
		return
	}
	if r.PostFormValue("resource") != i.URL+"/mcp" {
		answer(w, http.StatusBadRequest, object{"error": "invalid_target"})
		return
	}
	access, refresh := rand.Text(), rand.Text()
	i.access[access], i.refresh[refresh] = time.Now().Add(i.Lifetime), client
	answer(w, http.StatusOK, object{"access_token": access, "token_type": "Bearer", "expires_in": int(i.Lifetime.Seconds()),
		"refresh_token": refresh})
}

func answer(w http.ResponseWriter, status int, body object) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(body)
}
