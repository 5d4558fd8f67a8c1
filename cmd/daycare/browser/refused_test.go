//go:build !race

package browser

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Another page in the same browser, where the user is logged in, can do nothing: it reads
// nothing, changes nothing, and shows nothing of the page in a frame.
func TestOtherPagesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	agent := w.agent("worker")
	p := w.visit("/")

	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>another page</title><h1>another page</h1>")
	}))
	t.Cleanup(evil.Close)
	p.expect(".*") // a refusal is an error in the console of the page that tried
	p.open(evil.URL)
	p.sees("another page")

	const tries = `(async () => {
		const said = {};
		const attempt = async (name, path, options) => {
			try {
				const answer = await fetch(ORIGIN + path, { credentials: "include", ...options });
				said[name] = answer.type + " " + answer.status;
			} catch (err) {
				said[name] = "refused";
			}
		};
		await attempt("read", "/v1/agents");
		await attempt("read without looking", "/v1/agents", { mode: "no-cors" });
		const message = { method: "POST", body: '{"text":"evil"}' };
		await attempt("write", "/v1/agents/AGENT/messages",
			{ ...message, headers: { "Content-Type": "application/json", "X-Daycare": "1" } });
		await attempt("write as a form", "/v1/agents/AGENT/messages",
			{ ...message, mode: "no-cors", headers: { "Content-Type": "text/plain" } });
		await attempt("events", "/v1/events");
		await attempt("log in", "/v1/session", { method: "POST", mode: "no-cors", body: '{"token":"x"}' });
		const frame = document.createElement("iframe");
		frame.src = ORIGIN + "/";
		document.body.append(frame);
		await new Promise(done => { frame.onload = done; setTimeout(done, 3000); });
		let inside = "refused";
		try { inside = frame.contentDocument?.body?.innerText ?? "refused"; } catch {}
		said.frame = inside === "" ? "refused" : inside;
		const form = document.createElement("form");
		form.method = "POST";
		form.action = ORIGIN + "/v1/agents/AGENT/stop";
		form.target = "elsewhere";
		document.body.append(form);
		form.submit();
		return said;
	})()`
	script := strings.NewReplacer("ORIGIN", quote(p.origin), "AGENT", agent).Replace(tries)
	said := eval[map[string]string](p, script)
	for name, got := range said {
		if got != "refused" && got != "opaque 0" {
			t.Errorf("another page could %s: %s", name, got)
		}
	}
	if len(w.inbox(agent)) != 0 {
		t.Errorf("another page sent a message: %q", w.inbox(agent))
	}

	// By another name of this machine, as after DNS rebinding.
	for name, host := range map[string]string{"another name": "evil.example", "no name": "0.0.0.0"} {
		req, err := http.NewRequest("GET", p.origin+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("%s in Host: status %d, want 403", name, res.StatusCode)
		}
	}
	p.goTo("/")
	p.sees("worker")
}

// A session that is over takes what it showed off the screen, and leads to the way back.
func TestSessionIsOver(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	w.agent("secret project")
	p := w.visit("/")
	p.sees("secret project")
	var sessions struct{ Sessions []struct{ Name string } }
	w.api("GET", "/v1/sessions", nil, &sessions)
	if len(sessions.Sessions) != 1 {
		t.Fatalf("there are %d sessions, want 1", len(sessions.Sessions))
	}
	p.expect("401")
	w.run("web", "end", sessions.Sessions[0].Name)
	p.sees("Sign in")
	p.seesNot("secret project")
	p.login(w, "/")
	p.sees("secret project")
}

// Settings list the browsers that are logged in, and log another one out.
func TestBrowsersInSettings(t *testing.T) {
	t.Parallel()
	w := newWorkspace(t, talkScript, "")
	w.start()
	first, second := w.visit("/settings"), w.visit("/")
	second.expect("401")
	name := eval[string](second, "fetch('/v1/session').then(r => r.json()).then(s => s.name)")
	first.goTo("/settings")
	first.sees("this one")
	first.looks("browsers")
	eval[bool](first, "(document.querySelector('main [aria-label=Browsers]').scrollIntoView({ block: 'end' }), true)")
	first.settled()
	first.keep("browsers")
	first.click("button", "Log out "+name)
	first.find("dialog", "Log "+name+" out?")
	first.click("button", "Log out")
	second.sees("Sign in")
	first.seesNot(name)
	first.sees("this one")
}
