// Package highlight finds comments, strings, numbers and keywords in source text, so that it can
// be coloured. It knows languages from tables of a few lines, not their grammar: where it is wrong,
// a word has another colour, and never another letter.
//
// It goes line by line and carries what continues over line ends from one to the next, so that a
// text that grows is looked at once. Nothing is built before a language is asked for.
package highlight
