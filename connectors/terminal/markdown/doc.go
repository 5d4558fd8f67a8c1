// Package markdown sets Markdown for a terminal: styled lines of a given width.
// It knows what models write: headings, lists, quotes, tables, code and diffs.
package markdown
