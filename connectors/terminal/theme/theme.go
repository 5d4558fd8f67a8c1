// Package theme is the look of the full-screen terminal UI: one set of styles for
// dark backgrounds and one for light ones, and the same for terminals with sixteen
// colours. What a style says is never said by colour alone, so that nothing is lost
// under NO_COLOR.
package theme

import (
	"strings"

	"charm.land/lipgloss/v2"
)

// A Theme is made once for a terminal and not changed after.
type Theme struct {
	Dim    lipgloss.Style // what may be overlooked
	Bold   lipgloss.Style
	Accent lipgloss.Style // names, keys, what is under the cursor
	Good   lipgloss.Style
	Warn   lipgloss.Style // needs you
	Bad    lipgloss.Style

	Person   lipgloss.Style // what users wrote
	Selected lipgloss.Style // a row under the cursor
	Rule     lipgloss.Style // lines between areas

	Markdown
	Syntax Syntax
}

// Markdown is the part of a theme that text is set with.
type Markdown struct {
	Heading, Strong, Emphasis, Struck lipgloss.Style
	Code, CodeBlock, Link, Quote      lipgloss.Style
	Added, Removed, Hunk              lipgloss.Style // of diffs
}

// A Syntax is the part of a theme that source text is set with, beside Markdown.CodeBlock.
type Syntax struct{ Comment, String, Number, Keyword lipgloss.Style }

// Around is what switches a style on and off.
func Around(s lipgloss.Style) (on, off string) {
	on, off, _ = strings.Cut(s.Render("x"), "x")
	return on, off
}

// A Terminal is what a theme is made for.
type Terminal struct {
	Dark    bool // the background
	Sixteen bool // there are no more colours than the sixteen of old, or none
}

// New makes the theme for a terminal. Every colour can be read on its background:
// at least 4:1, lines that only separate 2.5:1.
func New(on Terminal) *Theme {
	plain := lipgloss.NewStyle()
	// pick gives the colour for a dark or light background, of the 256 and of the
	// sixteen; "" is the terminal's own.
	pick := func(dark, light, darkOld, lightOld string) lipgloss.Style {
		colour := dark
		switch {
		case on.Sixteen && on.Dark:
			colour = darkOld
		case on.Sixteen:
			colour = lightOld
		case !on.Dark:
			colour = light
		}
		if colour == "" {
			return plain
		}
		return plain.Foreground(lipgloss.Color(colour))
	}
	// behind is a background; of the sixteen none is pale enough to write on.
	behind := func(dark, light string) lipgloss.Style {
		switch {
		case on.Sixteen:
			return plain
		case on.Dark:
			return plain.Background(lipgloss.Color(dark))
		}
		return plain.Background(lipgloss.Color(light))
	}
	selected := behind("238", "252").Bold(true)
	if on.Sixteen {
		selected = selected.Reverse(true)
	}
	return &Theme{
		Dim:      pick("245", "241", "7", "8"),
		Bold:     plain.Bold(true),
		Accent:   pick("75", "4", "14", "4"),
		Good:     pick("2", "28", "2", ""),
		Warn:     pick("11", "130", "11", "5").Bold(true),
		Bad:      pick("9", "1", "9", "1"),
		Person:   behind("236", "254"),
		Selected: selected,
		Rule:     pick("240", "246", "7", "8"),
		Markdown: Markdown{
			Heading:   pick("14", "25", "14", "4").Bold(true),
			Strong:    plain.Bold(true),
			Emphasis:  plain.Italic(true),
			Struck:    plain.Strikethrough(true),
			Code:      pick("215", "124", "11", "5"),
			CodeBlock: pick("252", "236", "", ""),
			Link:      pick("75", "4", "14", "4").Underline(true),
			Quote:     pick("245", "241", "7", "8").Italic(true),
			Added:     pick("2", "28", "2", "4"),
			Removed:   pick("9", "1", "9", "1"),
			Hunk:      pick("6", "24", "6", "8"),
		},
		Syntax: syntax(pick),
	}
}

// syntax are the colours of code.
func syntax(pick func(dark, light, darkOld, lightOld string) lipgloss.Style) Syntax {
	return Syntax{
		Comment: pick("245", "241", "7", "8"),
		String:  pick("114", "22", "2", "5"),
		Number:  pick("179", "94", "11", ""),
		Keyword: pick("111", "25", "14", "4"),
	}
}
