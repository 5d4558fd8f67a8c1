package irc

import (
	"strings"
	"unicode/utf8"
)

const (
	// maxLine is the most bytes of text in a line.
	maxLine = 400
	// wholeLine is the most bytes of a line as others read it, without what is always in it:
	// ":!@ PRIVMSG  :" and the end. The server puts our mask before it, and cuts what is too long.
	wholeLine = 512 - 16
	// maxUser and maxHost are of a mask, as servers have them at most.
	maxUser, maxHost = 11, 63
	// linesAPart keeps a part within what a flood limit lets through in time.
	linesAPart = 8
)

// room is how many bytes of text a line has that a nick says to a target.
func room(nick, target string) int {
	return max(min(maxLine, wholeLine-maxUser-maxHost-len(nick)-len(target)), utf8.UTFMax)
}

// lines makes of a text what is sent one by one: no empty lines, none over room bytes,
// and nothing in them that would begin another command.
func lines(text string, room int) []string {
	var all []string
	for line := range strings.Lines(text) {
		line = strings.Map(func(r rune) rune {
			switch r {
			case '\r', '\n', 0, 1: // 1 begins CTCP
				return -1
			case '\t':
				return ' '
			}

			return r
		}, strings.ToValidUTF8(line, "\uFFFD"))
		for strings.TrimSpace(line) != "" {
			head, rest := cut(line, room)
			all, line = append(all, head), rest
		}
	}

	return all
}

// cut takes off as much of a line as may be sent, between words if it can.
func cut(line string, room int) (head, rest string) {
	if len(line) <= room {
		return line, ""
	}
	n := room
	for !utf8.RuneStart(line[n]) {
		n--
	}

	if space := strings.LastIndexByte(line[:n], ' '); space > room/2 {
		return line[:space], line[space+1:]
	}

	return line[:n], line[n:]
}
