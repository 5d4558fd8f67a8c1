// Package theme is the look of the full-screen terminal UI: one set of styles for
// dark backgrounds and one for light ones. What a style says is never said by
// colour alone, so that nothing is lost under NO_COLOR.
package theme

import "charm.land/lipgloss/v2"

// A Theme is made once for a background and not changed after.
type Theme struct {
	Dark bool

	Dim    lipgloss.Style // what may be overlooked
	Bold   lipgloss.Style
	Accent lipgloss.Style // names, keys, what is under the cursor
	Good   lipgloss.Style
	Warn   lipgloss.Style // needs you
	Bad    lipgloss.Style

	Person   lipgloss.Style // what people wrote
	Selected lipgloss.Style // a row under the cursor
	Bar      lipgloss.Style // head line
	Rule     lipgloss.Style // lines between areas

	Markdown
}

// Markdown is the part of a theme that text is set with.
type Markdown struct {
	Heading, Strong, Emphasis, Struck lipgloss.Style
	Code, CodeBlock, Link, Quote      lipgloss.Style
	Added, Removed, Hunk              lipgloss.Style // of diffs
}

// New makes the theme for a dark or light background. Colours with a meaning are
// of the terminal's own sixteen, so that they fit the palette a person chose; only
// greys are fixed.
func New(dark bool) *Theme {
	pick := func(onDark, onLight string) lipgloss.Style {
		if dark {
			return lipgloss.NewStyle().Foreground(lipgloss.Color(onDark))
		}
		return lipgloss.NewStyle().Foreground(lipgloss.Color(onLight))
	}
	back := func(onDark, onLight string) lipgloss.Style {
		if dark {
			return lipgloss.NewStyle().Background(lipgloss.Color(onDark))
		}
		return lipgloss.NewStyle().Background(lipgloss.Color(onLight))
	}
	plain := lipgloss.NewStyle()
	return &Theme{
		Dark:     dark,
		Dim:      pick("245", "243"),
		Bold:     plain.Bold(true),
		Accent:   pick("12", "4"),
		Good:     pick("2", "28"),
		Warn:     pick("11", "130").Bold(true),
		Bad:      pick("9", "1"),
		Person:   back("236", "254"),
		Selected: back("238", "252").Bold(true),
		Bar:      back("235", "255"),
		Rule:     pick("240", "248"),
		Markdown: Markdown{
			Heading:   pick("14", "25").Bold(true),
			Strong:    plain.Bold(true),
			Emphasis:  plain.Italic(true),
			Struck:    plain.Strikethrough(true),
			Code:      pick("215", "124"),
			CodeBlock: pick("252", "236"),
			Link:      pick("12", "4").Underline(true),
			Quote:     pick("245", "243").Italic(true),
			Added:     pick("2", "28"),
			Removed:   pick("9", "1"),
			Hunk:      pick("6", "30"),
		},
	}
}
