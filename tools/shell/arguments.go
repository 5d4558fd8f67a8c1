package shell

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"daycare/engine/lazyregexp"
	"daycare/tools"
)

// The arguments of exec: what a model says, checked, and put into words for the user who
// is asked.

type arguments struct {
	Command    string            `json:"command"`
	Workdir    string            `json:"workdir"`
	TimeoutMs  float64           `json:"timeoutMs"`
	Env        map[string]string `json:"env"`
	Stdin      string            `json:"stdin"`
	Background bool              `json:"background"`
	Domains    []string          `json:"allowedDomains"`
}

// maxDomains bounds the list that a user has to read.
const maxDomains = 20

func decode(call tools.Call) (arguments, error) {
	var a arguments
	if err := json.Unmarshal(call.Arguments, &a); err != nil {
		return a, fmt.Errorf("exec: the arguments do not fit: %w", err)
	}
	if strings.TrimSpace(a.Command) == "" {
		return a, fmt.Errorf("exec: command is empty")
	}
	if strings.ContainsRune(a.Command, 0) {
		return a, fmt.Errorf("exec: command holds a zero byte")
	}

	for name, value := range a.Env {
		if !envName.MatchString(name) || strings.ContainsRune(value, 0) {
			return a, fmt.Errorf("exec: env %q is not a usable variable", name)
		}
	}

	if len(a.Domains) > maxDomains {
		return a, fmt.Errorf("exec: allowedDomains names %d hosts; at most %d", len(a.Domains), maxDomains)
	}

	for i, d := range a.Domains {
		a.Domains[i] = strings.TrimSuffix(strings.ToLower(strings.TrimSpace(d)), ".")
		if _, err := DomainRight(a.Domains[i]); err != nil {
			return a, fmt.Errorf("exec: %w", err)
		}
	}

	return a, nil
}

var envName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// rendered is all that decides what the call does but its folder, as a user is
// shown it and as the approval is bound to it: no two calls have the same.
func (a arguments) rendered() string {
	var b strings.Builder
	b.WriteString(unmarked(a.Command))
	if len(a.Env) > 0 {
		b.WriteString("\n[environment]")
		for _, kv := range a.environment() {
			name, value, _ := strings.Cut(kv, "=")
			b.WriteString(" " + name + "=" + unmarked(quote(value)))
		}
	}
	if len(a.Domains) > 0 {
		b.WriteString("\n[network] " + strings.Join(a.Domains, ", "))
	}
	if a.Background {
		b.WriteString("\n[background] it continues after the call")
	}
	if a.TimeoutMs > 0 {
		b.WriteString("\n[time limit] " + a.timeout(0).String())
	}
	if a.Stdin != "" {
		b.WriteString("\n[standard input]\n" + unmarked(a.Stdin))
	}

	return b.String()
}

// unmarked is a text in which no line looks like the beginning of another part: what
// a command says of its network is not its network.
func unmarked(text string) string { return mark.ReplaceAllString(text, `\$0`) }

var mark = lazyregexp.New(`(?m)^\\*\[(?:environment|network|background|time limit|standard input|process)\]`)

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

var plainWord = lazyregexp.New(`^[A-Za-z0-9_./+@:-]+$`)

// firstWords is nameOf for a command that is not parsed.
func firstWords(command string) string { return nameOf(strings.Fields(command)) }

// nameOf is the words of a command that name what it does: the program and its
// sub-command ("git push"). A command that begins otherwise is taken whole.
func nameOf(words []string) string {
	var kept []string
	for _, word := range words {
		if len(kept) == 2 || !plainWord.MatchString(word) || len(kept) == 1 && !subCommand.MatchString(word) {
			break
		}
		kept = append(kept, word)
	}

	if len(kept) > 0 {
		return strings.Join(kept, " ")
	}
	whole := strings.Join(strings.Fields(strings.Map(printable, strings.Join(words, " "))), " ")
	if len(whole) > 200 {
		whole = strings.ToValidUTF8(whole[:200], "")
	}

	return whole
}

var subCommand = lazyregexp.New(`^[a-z][a-z0-9-]*$`)

func printable(r rune) rune {
	if r < ' ' || r == 0x7f || r == '\uFFFD' {
		return ' '
	}
	return r
}

func (a arguments) timeout(usual time.Duration) time.Duration {
	if a.TimeoutMs <= 0 {
		return usual
	}
	return time.Duration(min(a.TimeoutMs, float64(MaxTimeout.Milliseconds()))) * time.Millisecond
}
