package chat

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"slices"
	"strings"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/plain"
)

// decisions are the commands that answer a request.
var decisions = map[string]permission.Decision{
	"once": permission.Once, "allow": permission.Once, "always": permission.Always,
	"prefix": permission.Prefix, "deny": permission.Deny,
}

// told is what users read of a decision.
var told = map[permission.Decision]string{
	permission.Once: "Allowed once", permission.Always: "Allowed from now on",
	permission.Prefix: "Allowed from now on, with any words that follow",
	permission.Deny:   "Denied", permission.Expired: "Expired without an answer",
	permission.Freed: "No longer needed: the budget allows more again",
}

// choices are the buttons of a card. What cannot be shown whole can only be denied.
func choices(p permission.Pending) (list []Choice) {
	for _, c := range p.Request.Choices() {
		if permission.Decision(c.Decision) == permission.Deny || whole(p.Request) {
			list = append(list, Choice{clip(c.Text, maxLabel), c.Decision + " " + p.Token})
		}
	}

	return list
}

// labelled are the choices in the language of the connector.
func (q *approvals) labelled(p permission.Pending) []Choice {
	list := choices(p)
	for i := range list {
		list[i].Label = q.voice.t(list[i].Label)
	}

	return list
}

// maxLabel is how long the text of a button may be, in characters; Slack takes 75. The
// card above it has the whole.
const maxLabel = 70

func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// approvals shows the requests of agents to users, and takes their answers.
type approvals struct {
	o     Options
	host  Host
	log   *slog.Logger
	who   *people
	voice voice
	cards *cards
}

// look shows requests that are not shown yet, and settles cards of requests that
// no longer wait: what an event that was lost would have said.
func (q *approvals) look(ctx context.Context) {
	if q.host.Asks == nil {
		return
	}
	waiting := map[string]bool{}
	for _, p := range q.host.Asks.List() {
		waiting[p.Token] = true
		if !q.cards.has(p.Token) {
			q.show(ctx, p)
		}
	}
	for _, token := range q.cards.tokens() {
		if !waiting[token] {
			q.settle(ctx, token, "", "")
		}
	}
}

// show puts a request before whoever may answer it, if they are reached here: the user
// of the agent, or an owner where that user may not allow it.
func (q *approvals) show(ctx context.Context, p permission.Pending) {
	to, ok := q.who.home(p.Agent)
	if !ok {
		return
	}
	if q.who.mayAllow(to, p, permission.Once) {
		q.put(ctx, p, to, keyOf(p))
		return
	}
	owner, ok := q.who.owner()
	if !ok {
		q.log.Warn("a request waits for an owner, who cannot be reached here", "token", p.Token,
			"remedy", "daycare permissions show "+p.Token)
		q.cards.put(p.Token, card{}) // so that it is reported once
	} else {
		q.put(ctx, p, owner, keyOf(p))
	}
	if q.cards.has(p.Token) {
		q.voice.sayTo(ctx, to, "", q.forOwner(p))
	}
}

// forOwner tells a guest that an owner has to answer.
func (q *approvals) forOwner(p permission.Pending) string {
	return q.voice.t("This needs an owner's approval: %s. You may deny it: `deny %s`, as a command.", code(p.Request.Tag),
		p.Token[:permission.CodeLength])
}

// code is a short text as it is shown in a sentence.
func code(text string) string {
	return "`" + clip(strings.ReplaceAll(permission.VisibleLine(text), "`", "'"), 200) + "`"
}

// keyOf is the key under which a request is shown: a process that dies between showing it and
// noting that leaves it to the next one to show it again. It does not tell the token, which
// answers the request.
func keyOf(p permission.Pending) string {
	sum := sha256.Sum256([]byte("request " + p.Token))
	return "request-" + hex.EncodeToString(sum[:12])
}

// put shows a request in a chat under a key; "": once more.
func (q *approvals) put(ctx context.Context, p permission.Pending, to message.Address, key string) {
	k := card{To: to, Text: q.describe(ctx, p)}
	if q.cards.begin(p.Token, k) {
		k.Text += "\n\n" + q.voice.t(perhapsTwice)
	}
	c, ok := q.voice.platform.(CardSender)
	if !ok {
		q.post(ctx, p, to, key, k)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	var err error
	if k.Remote, err = c.Card(ctx, to, key, k.Text, q.labelled(p)); err != nil {
		q.unshown(p.Token, err)
		return
	}
	q.cards.put(p.Token, k)
}

// perhapsTwice is what is said under a request that may be in the chat already: the process before
// ended between showing it and noting that, and not every platform can tell.
const perhapsTwice = "daycare was interrupted while it showed this, so it may be here twice. Both are the same request: answer either."

// unshown notes that a request was not shown, or perhaps was.
func (q *approvals) unshown(token string, err error) {
	q.log.Warn("approval request not shown; retrying", "token", token, "err", err)
	if _, ok := errors.AsType[*message.NotSent](err); ok {
		q.cards.take(token)
	}
}

// post shows a request where there are no buttons: the answers are typed, or are reactions.
func (q *approvals) post(ctx context.Context, p permission.Pending, to message.Address, key string, k card) {
	how := q.voice.t("Answer with:")
	poster, ok := q.voice.platform.(Poster)
	if !ok {
		q.cards.put(p.Token, k)
		q.voice.sayTo(ctx, to, "", k.Text+"\n\n"+how+"\n"+q.typed(p))
		return
	}
	if whole(p.Request) {
		how = q.voice.t("Answer by reacting to this message with %s (once) or %s (deny), or with:", "👍", "👎")
	}
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	var err error
	if k.Remote, err = poster.Post(ctx, to, key, "", k.Text+"\n\n"+how+"\n"+q.typed(p)); err != nil {
		q.unshown(p.Token, err)
		return
	}
	q.cards.put(p.Token, k)
}

// meant are the reactions that answer a request.
var meant = map[string]permission.Decision{"👍": permission.Once, "✅": permission.Once, "✔": permission.Once,
	"👎": permission.Deny, "❌": permission.Deny,
	"+1": permission.Once, "thumbsup": permission.Once, "white_check_mark": permission.Once,
	"-1": permission.Deny, "thumbsdown": permission.Deny, "x": permission.Deny}

// reacted accepts a reaction to a request as its answer, and reports whether it is one.
func (q *approvals) reacted(ctx context.Context, p Post) bool {
	emoji := strings.Map(func(r rune) rune {
		if r == '\uFE0F' || r >= '\U0001F3FB' && r <= '\U0001F3FF' { // coloured, and the colour of skin
			return -1
		}
		return r
	}, p.Reaction.Emoji)
	decision, ok := meant[strings.Trim(emoji, ":")]
	token := q.cards.shownAs(p.From.ChannelID, p.Reaction.To)
	if !ok || token == "" {
		return false
	}
	q.voice.say(ctx, p, q.decide(ctx, p.From, decision, token))

	return true
}

// typed are the answers of a request as users type them where there are no buttons.
func (q *approvals) typed(p permission.Pending) string {
	var b strings.Builder
	for _, c := range q.labelled(p) {
		word, _, _ := strings.Cut(c.Data, " ")
		fmt.Fprintf(&b, "- `%s%s %s`: %s\n", q.o.mark(), word, p.Token[:permission.CodeLength], c.Label)
	}

	return strings.TrimRight(b.String(), "\n")
}

// maxCard is how long a request may be in a chat, in characters as platforms count them:
// with the signs that they write out. What is longer is answered where it can be read.
const maxCard = 2500

// whole reports whether a chat can show all of a request.
func whole(r permission.Request) bool { return len([]rune(html.EscapeString(r.Card()))) <= maxCard }

func (q *approvals) describe(ctx context.Context, p permission.Pending) string {
	who := p.Agent
	if q.host.Agents != nil {
		if a, err := q.host.Agents.Agent(ctx, p.Agent); err == nil {
			who = strings.TrimSpace(a.Handle + " " + a.Name)
		}
	}
	text := q.voice.t("**Permission needed** by %s", permission.VisibleLine(who))
	if _, ok := permission.BudgetOf(p.Request.Tag); ok {
		text = q.voice.t("**Paused at a budget**: %s", permission.VisibleLine(who))
	}
	card := p.Request.Card()
	if !whole(p.Request) {
		return text + "\n\n" + q.voice.t("The request is %d characters long: too long to show here in full, so it cannot "+
			"be allowed here. Read and answer it on the computer:\n\n"+
			"```\ndaycare permissions show %s\n```", len([]rune(card)), p.Token)
	}

	return text + "\n\n" + plain.Fenced(card) + offered(p.Request)
}

// offered spells what the answers mean that a button has no room for.
func offered(r permission.Request) (text string) {
	for _, c := range r.Choices() {
		if permission.Decision(c.Decision) != permission.Prefix {
			continue
		}
		text = "\n\n" + c.Text + ": the button, or the answer `prefix`."
		if strings.HasPrefix(r.Prefix, "@exec:") {
			text = "\n\n" + c.Text + ": the button, or the answer `prefix`, allows these, with any further words, but " +
				"with no other command in the line."
		}
	}

	return text
}

// Answer takes a pressed button and returns what to tell the user who pressed.
func (d *Desk) Answer(ctx context.Context, from message.Address, data string) string {
	from.Connector = d.o.ID
	if !d.gate.allows(from.UserID) {
		return d.voice.t("I work for another user.")
	}
	word, token, _ := strings.Cut(data, " ")
	decision, ok := decisions[word]
	if !ok || token == "" {
		return d.voice.t("That button does nothing.")
	}

	return d.voice.t(d.approvals.decide(ctx, from, decision, token))
}

// Pressed is Answer for a button of a message: one that shows a request that is closed, and is not
// the card that is kept of it, loses its buttons. It was shown by a process that could not note it.
func (d *Desk) Pressed(ctx context.Context, from message.Address, data, remote string) string {
	from.Connector = d.o.ID
	kept := d.approvals.cards.shownAs(from.ChannelID, remote) != ""
	text := d.Answer(ctx, from, data)
	_, token, _ := strings.Cut(data, " ")
	c, ok := d.voice.platform.(CardSender)
	if kept || !ok || remote == "" || !d.gate.allows(from.UserID) || d.approvals.waits(token) {
		return text
	}
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if err := c.Settle(ctx, from, remote, text); err != nil {
		d.log.Debug("buttons of an outdated request not removed", "err", err)
	}

	return text
}

// waits reports whether a request is open.
func (q *approvals) waits(token string) bool {
	return q.host.Asks != nil && slices.ContainsFunc(q.host.Asks.List(), func(p permission.Pending) bool { return p.Token == token })
}

// decide answers a request for a user, by its token or the beginning of it.
func (q *approvals) decide(ctx context.Context, from message.Address, decision permission.Decision, code string) string {
	if q.host.Asks == nil {
		return "I cannot do that right now."
	}
	token, refused := q.token(from, strings.ToLower(code), decision)
	if refused != "" {
		return refused
	}
	if decision != permission.Deny && q.hidden(token) {
		return "That request is too long to show here in full, so it cannot be allowed here."
	}
	earlier, err := q.host.Asks.Decide(ctx, token, decision, from.Connector+":"+from.UserID)
	switch {
	case errors.Is(err, permission.ErrNoPrefix):
		return "`prefix` does not apply to that request. Answer once, always or deny."
	case errors.Is(err, permission.ErrUnknown), earlier != nil && !q.who.mayAnswer(from, *earlier):
		return "That request is no longer open."
	case err != nil:
		q.log.Error("decision not accepted", "token", token, "err", err)
		return "I could not save your answer. Try again."
	case earlier != nil && earlier.Decision != "":
		answer := strings.ToLower(q.voice.t(told[earlier.Decision]))
		return q.voice.t("%s has already answered: %s.", q.orSomeone(earlier.DecidedBy), answer)
	case earlier != nil:
		return "The request is already answered."
	}
	if _, ok := q.voice.platform.(CardSender); ok {
		if q.cards.has(token) { // else it is about to be shown, and settled then
			q.settle(ctx, token, decision, from.Connector+":"+from.UserID)
		}
	} else {
		q.cards.take(token) // the result is shown here
	}

	return q.voice.t(told[decision]) + "."
}

// token finds the one request that a code means and that this user may answer.
func (q *approvals) token(from message.Address, code string, decision permission.Decision) (token, refused string) {
	if len(code) < 4 {
		return "", q.voice.t("Say which one: `%spermissions` lists pending approvals.", q.o.mark())
	}
	var found []permission.Pending
	for _, p := range q.host.Asks.List() {
		if strings.HasPrefix(p.Token, code) {
			found = append(found, p)
		}
	}
	switch {
	case len(found) > 1:
		return "", "Several requests start like that; type more of the code."
	case len(found) == 0 && len(code) >= permission.CodeLength:
		return code, "" // it may have been answered: whoever keeps the log says by whom
	case len(found) == 0:
		return "", "That request is no longer open."
	case !q.who.mayAnswer(from, found[0]):
		return "", "Only the user this agent works for can answer that."
	case !q.who.mayAllow(from, found[0], decision):
		return "", "Only an owner can allow that."
	}

	return found[0].Token, ""
}

// hidden reports whether a request waits that a chat cannot show whole.
func (q *approvals) hidden(token string) bool {
	return slices.ContainsFunc(q.host.Asks.List(), func(p permission.Pending) bool { return p.Token == token && !whole(p.Request) })
}

// settle removes the buttons of a card, once; without buttons it says that the
// request is closed.
func (q *approvals) settle(ctx context.Context, token string, decision permission.Decision, by string) {
	k, ok := q.cards.take(token)
	if !ok || k.To == (message.Address{}) {
		return
	}
	outcome := q.voice.t("Answered")
	switch decision {
	case "":
	case permission.Freed:
		outcome = q.voice.t(told[decision])
	default:
		outcome = q.voice.t("%s by %s", q.voice.t(told[decision]), q.orSomeone(by))
	}
	c, ok := q.voice.platform.(CardSender)
	if !ok || k.Remote == "" {
		q.voice.sayTo(ctx, k.To, "", q.voice.t("The request %s is closed: %s.", token[:min(len(token), permission.CodeLength)], outcome))
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sayTime)
	defer cancel()
	if err := c.Settle(ctx, k.To, k.Remote, k.Text+"\n\n**"+outcome+".**"); err != nil {
		q.log.Warn("buttons of an answered request not removed", "token", token, "err", err)
	}
}

func (q *approvals) orSomeone(by string) string {
	if by == "" {
		return q.voice.t("someone")
	}
	return by
}

// list shows what waits for this user, with buttons.
func (q *approvals) list(ctx context.Context, p Post) {
	var mine []permission.Pending
	if q.host.Asks != nil {
		for _, ask := range q.host.Asks.List() {
			if q.who.mayAnswer(p.From, ask) {
				mine = append(mine, ask)
			}
		}
	}
	if len(mine) == 0 {
		q.voice.say(ctx, p, "No pending approvals.")
		return
	}
	for _, ask := range mine {
		if !q.who.mayAllow(p.From, ask, permission.Once) {
			q.voice.say(ctx, p, q.forOwner(ask))
			continue
		}
		q.cards.take(ask.Token) // shown again, at the end of the chat
		q.put(ctx, ask, p.From, "")
	}
}
