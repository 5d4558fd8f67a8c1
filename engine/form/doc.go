// Package form is the one reader of what users edit: YAML, JSON, lines of JSON and the
// front matter of Markdown become a Go struct, and findings with line and column.
//
// The struct is the form. The json tag is the key; the others say what is allowed:
//
//	check:"required"     the key must be there, and its text must not be empty
//	check:"id,…"         a text of some kind: see texts
//	check:"off"          of a duration: 0 is never
//	check:"open"         of a list of structs: other readers read its other keys
//	allow:"a|b"          one of these texts; with a leading | it may be empty
//	pattern:"^[a-z]+$"   a text that fits, if it is not empty
//	min:"1" max:"1000"   bounds of a number or a duration
//	short:"command"      of a struct: a single text is short for this key of it
//
// engine/form/schema makes a JSON Schema of the same tags.
//
// A package that owns a kind of file has a Kind, which says how findings are called. It
// reads the text with one of its methods, has Read fill the struct, and adds what tags
// cannot say with Bad and Tell, which find the place of a key by its path.
package form
