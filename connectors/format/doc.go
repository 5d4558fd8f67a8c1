// Package format fits Markdown to chat platforms. It is pure: text in, text out.
package format
