package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"daycare/engine/control"
	"daycare/engine/inbox"
	"daycare/engine/message"
)

// Clients of this API keep the conversation themselves and send all of it each time; an agent keeps
// its own. So a request becomes one message: what was said after the client's last answer, and what
// came before it only where the agent's newest exchange over this connector is not exactly that.
// Whether it is, the id of the message says: a digest of what users said up to it.

const (
	// maxQuoted bounds what is quoted of earlier messages, and of instructions, in bytes. The whole
	// of what is longer is attached as a file.
	maxQuoted = 64 << 10
	idBegin   = "openai:"
)

// split is the conversation up to the last answer that the client has, and what is new.
func (r request) split() (earlier, now []turn, err error) {
	i := len(r.turns)
	for i > 0 && r.turns[i-1].role != "assistant" {
		i--
	}
	earlier, now = r.turns[:i], r.turns[i:]
	if !slices.ContainsFunc(now, func(t turn) bool { return t.role == "user" }) {
		return nil, nil, bad("messages", "the conversation does not end with a message of the user")
	}

	return earlier, now, nil
}

// digest is a short name for what others than the agent said.
func digest(turns []turn) string {
	sum := sha256.New()
	for _, t := range turns {
		if t.role == "assistant" {
			continue
		}
		line, _ := json.Marshal([]any{t.role, t.text, len(t.files)}) // of strings and a number
		sum.Write(line)
		for _, f := range t.files {
			one := sha256.Sum256(f.Data)
			sum.Write(one[:])
		}
	}

	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// messageID is the id of the message that a request becomes.
func (r request) messageID() string {
	return idBegin + digest(r.turns) + ":" + digest([]turn{{role: "system", text: r.instructions}})
}

// seen is the newest exchange over this connector, as the agent's history has it.
type seen struct {
	id    string // of the message; "": none in this conversation
	reply string // the agent's newest text after it
}

// look reads records, the newest last, backward; true: it found what there is to find.
func (s *seen) look(records []json.RawMessage) bool {
	for _, line := range slices.Backward(records) {
		var rec struct {
			Type    string
			Text    string
			Context *message.Context
		}
		if json.Unmarshal(line, &rec) != nil {
			continue
		}
		switch rec.Type {
		case "reset", "rewind":
			return true
		case "assistant_message":
			if s.reply == "" {
				s.reply = strings.TrimSpace(rec.Text)
			}
		case "user_message":
			if rec.Context != nil && strings.HasPrefix(rec.Context.MessageID, idBegin) {
				s.id = rec.Context.MessageID
				return true
			}
			s.reply = "" // it is of this message, which came another way
		}
	}

	return false
}

// knows reports whether the agent has the earlier messages, and the instructions, as the client
// has them.
func (s seen) knows(r request, earlier []turn) (talk, instructions bool) {
	was, told, _ := strings.Cut(strings.TrimPrefix(s.id, idBegin), ":")
	_, now, _ := strings.Cut(strings.TrimPrefix(r.messageID(), idBegin), ":")
	talk = len(earlier) == 0 || was == digest(earlier) && strings.Contains(earlier[len(earlier)-1].text, s.reply)

	return talk, r.instructions == "" || told == now
}

// compose makes the text and the files of the message.
func (r request) compose(earlier, now []turn, s seen) (string, []control.File) {
	talk, instructions := s.knows(r, earlier)
	texts, files := said(now)
	text := strings.Join(texts, "\n\n")
	if talk && instructions {
		return text, files
	}

	var b strings.Builder
	if !instructions {
		b.WriteString("The program that this message comes through has instructions of its own. They are no rules of daycare; " +
			"heed them where they help with the message:\n\n")
		if len(r.instructions) > maxQuoted {
			files = append(files, control.File{Name: "instructions.md", Data: []byte(r.instructions)})
		}
		b.WriteString(quote(cut(r.instructions)) + "\n\n")
	}
	if !talk {
		earlierText, earlierFiles := transcript(earlier)
		b.WriteString("This conversation began before, with these messages as the program has them:\n\n")
		if len(earlierText) > maxQuoted {
			files = append(files, control.File{Name: "earlier-messages.md", Data: []byte(earlierText)})
			earlierText = "[The beginning is left out here; earlier-messages.md has all of it.]\n" +
				strings.ToValidUTF8(earlierText[len(earlierText)-maxQuoted:], "")
		}
		b.WriteString(quote(earlierText) + "\n\n")
		files = fitting(files, earlierFiles)
	}
	b.WriteString("The message:\n\n")

	if b.Len()+len(text) > inbox.MaxItemBytes && len(text) <= inbox.MaxItemBytes {
		return text, append(files, control.File{Name: "conversation.md", Data: []byte(b.String())})
	}

	return b.String() + text, files
}

// said is what turns say, and their files.
func said(turns []turn) (texts []string, files []control.File) {
	for _, t := range turns {
		switch {
		case t.role == "tool":
			texts = append(texts, "[result of a tool of the program] "+t.text)
		case t.text != "":
			texts = append(texts, t.text)
		}
		files = append(files, t.files...)
	}

	return texts, files
}

// transcript is a conversation to be quoted, and its files.
func transcript(turns []turn) (text string, files []control.File) {
	var b strings.Builder
	for i, t := range turns {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "[%s]\n%s", t.role, t.text)
		for _, f := range t.files {
			fmt.Fprintf(&b, "\n[file: %s]", f.Name)
		}
		files = append(files, t.files...)
	}

	return b.String(), files
}

// fitting adds earlier files, the newest first, as long as all of them can be kept.
func fitting(files, earlier []control.File) []control.File {
	total := 0
	for _, f := range files {
		total += len(f.Data)
	}
	for _, f := range slices.Backward(earlier) {
		if total += len(f.Data); total > control.MaxFileBytes {
			break
		}
		files = append(files, f)
	}

	return files
}

// cut is the beginning of a long text.
func cut(text string) string {
	if len(text) <= maxQuoted {
		return text
	}
	return strings.ToValidUTF8(text[:maxQuoted], "") + "\n[The rest is left out here; instructions.md has all of it.]"
}

// quote marks each line, so that no quoted text can pass for what is around it.
func quote(text string) string {
	return "> " + strings.ReplaceAll(strings.ReplaceAll(text, "\r", ""), "\n", "\n> ")
}
