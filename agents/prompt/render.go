package prompt

import (
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
)

var (
	escapeText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
	escapeAttr = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "\n", " ", "\r", " ")
	oneLine    = strings.NewReplacer("\n", " ", "\r", " ")
)

// clean makes text what it will be when it is read back from a JSON file: each
// byte that is no UTF-8 becomes U+FFFD. Without it the same record would have
// other bytes after a restart.
func clean(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}

func escape(text string) string { return escapeText.Replace(clean(text)) }

// clock renders a time from what the record holds and nothing else. An unknown
// zone, which only a hand can have written, is UTC.
func clock(at time.Time, zone string) string {
	loc, err := location(zone)
	if err != nil || zone == "" {
		loc, zone = time.UTC, ""
	}
	text := at.In(loc).Format("2006-01-02 15:04 MST")
	if zone != "" && zone != "UTC" {
		text += " (" + zone + ")"
	}

	return "<time>" + text + "</time>"
}

// locations are the zones that were loaded, by name. There are as many as the system has names; a new
// version of the system's files takes effect at the next start.
var locations sync.Map

func location(zone string) (*time.Location, error) {
	if loc, ok := locations.Load(zone); ok {
		return loc.(*time.Location), nil
	}
	loc, err := time.LoadLocation(zone)
	if err == nil {
		locations.Store(zone, loc)
	}

	return loc, err
}

// fileLine names an attachment. note says why its content is not shown, if the
// model might expect it.
func fileLine(f message.File, note string) string {
	line := fmt.Sprintf("[file: %s, %s, %d bytes, %s]", f.Name, f.MimeType, f.Size, f.Path)
	if note != "" {
		line += " (" + note + ")"
	}

	return escapeText.Replace(oneLine.Replace(clean(line)))
}

// permissionText tells the model what was decided and what to do now. It is ""
// for the steps that the model learns of otherwise.
func permissionText(at time.Time, p *record.Permission) string {
	if p.Silent {
		return ""
	}
	what := p.Tag
	if p.Request != "" {
		what += " (" + p.Request + ")"
	}
	if _, ok := permission.BudgetOf(p.Tag); ok {
		return budgetText(at, p)
	}

	var text string
	switch p.Event {
	case "once":
		text = "Allowed once: " + what + ". Make exactly the same call again now; the permission is used up by it."
	case "always":
		text = "Allowed from now on: " + what + ". Make the call again."
	case "prefix":
		text = "Allowed from now on: every command that begins with these words and nothing else in it: " +
			strings.TrimPrefix(p.Tag, "@exec:") +
			". Make the call (" + p.Request + ") again."
	case "deny":
		text = "Denied: " + what + ". Do not try it again, nor by another way. Go on without it or say what cannot be done."
	case "expired":
		text = "Nobody answered the request for " + what + " in time. It counts as denied: do not try it again on your own."
	case "profile":
		text = "Your profile is now " + p.Tag +
			" (read-only changes nothing; ask asks before each command and change; auto works in its sandbox; plan " +
			"needs an approved plan first)."
	case "revoked":
		text = "Taken back: " + what + ". You no longer have this permission."
	case "changed-by-hand":
		text = "Your permissions were changed by hand: " + what + "."
	default: // asked: the result of the call said so
		return ""
	}

	return system(at, text)
}

// budgetText tells the model how the question was answered whether it may continue beyond a
// budget.
func budgetText(at time.Time, p *record.Permission) string {
	switch p.Event {
	case "once", "always", "freed":
		return system(at, "You were paused because a budget was used up. There is room again: continue where you stopped.")
	case "deny", "expired":
		return system(at, "You were paused because a budget was used up, and it was not raised. Say in a few words how far you came.")
	}

	return ""
}

// system is a message of daycare itself.
func system(at time.Time, text string) string {
	return clock(at, "") + `<system_message origin="system">` + escape(text) + "</system_message>"
}

// summaryText is the shortened past, as the first thing the model reads.
func summaryText(at time.Time, s *record.Summary) string {
	return clock(at, "") + `<system_message origin="system">This conversation was shortened. What came before:` +
		"\n\n" + escape(s.Text) + "</system_message>"
}
