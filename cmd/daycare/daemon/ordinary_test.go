//go:build !race

package daemon

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools/shell/sandbox"
	"daycare/tools/shell/sandbox/probe"
)

// ordinary is what users have agents do all day, with how many approvals each may need.
var ordinary = []struct {
	what  string
	most  int
	needs string // a program
	calls []string
}{
	{"README's tour: list and read files", 0, "", []string{`ls {"path":"."}`, `read {"path":"notes.txt"}`}},
	{"write and edit files", 0, "", []string{`write {"path":"shop/main.go","content":"package main\n\nfunc main() {}\n"}`,
		`edit {"path":"notes.txt","old":"milk","new":"bread"}`}},
	{"git init, status, add, commit", 0, "git",
		[]string{`exec {"command":"git init -q shop && cd shop && git status --short && git add -A && git -c user.name=a -c ` +
			`user.email=a@b commit -qm first && git log --oneline"}`}},
	// A package: a program would have the whole runtime of Go compiled. TestBuildsNeedNoApproval of
	// tools/shell links one and runs it.
	{"go build without a network", 0, "go",
		[]string{`exec {"command":"mkdir -p shop/lib && cd shop && (test -f go.mod || printf 'module shop\n\ngo 1.21\n' > go.mod) && ` +
			`printf 'package lib\n\nfunc Sum(a, b int) int { return a + b }\n' > lib/lib.go && go build ./lib && go list ./lib",` +
			`"timeoutMs":120000}`}},
	{"npm install from a folder", 0, "npm",
		[]string{`exec {"command":"mkdir -p web/dep && echo '{\"name\":\"dep\",\"version\":\"1.0.0\"}' > web/dep/package.json && echo ` +
			`'{\"name\":\"web\",\"dependencies\":{\"dep\":\"file:./dep\"}}' > web/package.json && cd web && npm install --offline ` +
			`--no-audit --no-fund","timeoutMs":120000}`}},
	{"pip install with a network", 1, "",
		[]string{`exec {"command":"pip --version; echo pip install","allowedDomains":["packages.test","files.packages.test"]}`}},
	{"npm install with a network", 1, "", []string{`exec {"command":"echo npm install","allowedDomains":["registry.test"]}`}},
	{"go build with a network", 1, "", []string{`exec {"command":"echo go mod download","allowedDomains":["proxy.test","sum.test"]}`}},
	{"edit a skill", 1, "", []string{`write {"path":".agents/skills/tea/SKILL.md","content":"---\nname: tea\ndescription: how to make ` +
		`tea\n---\nBoil.\n"}`}},
	{"edit AGENTS.md", 1, "", []string{`write {"path":"AGENTS.md","content":"Be kind.\n"}`}},
}

// TestApprovalsThatOrdinaryWorkNeeds counts what a user is asked by an agent with the
// rights that every agent has, and that the same is not asked again after "always".
func TestApprovalsThatOrdinaryWorkNeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs compilers")
	}
	var list []attempt
	for _, o := range ordinary {
		step := ""
		for _, c := range o.calls {
			step += c + "\n"
		}
		list = append(list, attempt{as: "narrow", step: []string{step, step}})
	}

	w := newWidening(t, list, "exec: sandbox")
	id := w.agents["narrow"]
	w.sandboxed()
	for n, o := range ordinary {
		if _, err := exec.LookPath(o.needs); o.needs != "" && err != nil {
			t.Logf("%s: not tried, there is no %s", o.what, o.needs)
			continue
		}
		before := w.last(id)
		first := w.approvals(id, mark(n, 0, false))
		if o.most == 0 {
			for _, r := range w.results(id, before) {
				if r.Status != record.StatusOK {
					t.Errorf("%s: %s: %s", o.what, r.Status, r.Output.Text)
				}
			}
		}

		again := w.approvals(id, mark(n, 1, false))
		t.Logf("%-36s %d approvals, %d when it is done again", o.what, first, again)
		if first > o.most || again > 0 {
			t.Errorf("%s: %d approvals, and %d when it is done again; want %d and 0", o.what, first, again, o.most)
		}
	}
}

// sandboxed skips the test where every command would ask.
func (w *widening) sandboxed() {
	w.t.Helper()
	if r, err := probe.Choose("auto", sandbox.Self()); err != nil || r.Level == sandbox.None {
		w.t.Skip("SKIPPED: no sandbox works here, so every command asks")
	}
}

// approvals plays a step and returns how many requests it made; each is allowed for always.
func (w *widening) approvals(id, step string) (asked int) {
	w.t.Helper()
	r, err := w.r.system.Deliver(w.t.Context(), message.Incoming{Agent: id, Text: step})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), 3*time.Minute)
	defer cancel()
	if _, err := w.r.system.Await(ctx, id, r.Item); err != nil {
		w.t.Fatalf("%s: %v", step, err)
	}

	for _, p := range w.r.asks.List() {
		if p.Agent == id {
			asked++
		}
	}
	w.decide(id, permission.Always)
	return asked
}
