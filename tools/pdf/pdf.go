package pdf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Errors of Read, beside those of the context.
var (
	ErrNoPDF     = errors.New("it is not a PDF")
	ErrEncrypted = errors.New("it is encrypted")
	ErrDamaged   = errors.New("it is damaged: it has no pages")
	ErrTooLarge  = errors.New("it takes too much work to read")
)

// Bounds of one Read.
const (
	maxUnpacked = 48 << 20  // bytes of streams
	maxWork     = 256 << 20 // bytes looked at, and valueWork for each value
	valueWork   = 16
	filterWork  = 2 << 10 // for undoing a filter of a stream, beside its bytes
	maxStands   = 512     // bytes of the text that one code stands for (PDF 32000-1, 9.10.3)
	maxObjects  = 1 << 20
	maxPages    = 20_000
	maxKept     = 200_000 // values in one value
	maxDepth    = 64      // of values in values, pages in pages
	maxForms    = 8       // of forms in forms
)

// Options say which part of a file is wanted.
type Options struct {
	First    int // the first page, from 1; 0 is 1
	Pages    int // how many pages at most; 0: all
	MaxChars int // characters of text at most, in whole pages if more than one; 0: no limit
}

// A Text is what was read.
type Text struct {
	Pages       int    // in the file
	First, Last int    // the pages that Body shows; Last < First: none
	Body        string // each page begins with a line "[page N]"
	Empty       bool   // none of these pages has text: they are pictures
	Next        int    // the page to continue with; 0: there are no more
}

// Is reports whether a file that begins with head is a PDF. Some have a few bytes
// before their mark.
func Is(head []byte) bool {
	return bytes.Contains(head[:min(len(head), 1024)], []byte("%PDF-"))
}

// Read gives the text of data, a whole PDF file.
func Read(ctx context.Context, data []byte, o Options) (Text, error) {
	return (&file{left: newMeter(ctx), data: data}).all(o)
}

func (f *file) all(o Options) (Text, error) {
	if !Is(f.data) {
		return Text{}, ErrNoPDF
	}
	f.scan()
	if f.left.err != nil {
		return Text{}, f.left.err
	}
	if f.trailer["Encrypt"] != nil {
		return Text{}, ErrEncrypted
	}

	pages := f.pages()
	if f.left.err != nil {
		return Text{}, f.left.err
	}
	if len(pages) == 0 {
		return Text{}, ErrDamaged
	}

	t := Text{Pages: len(pages), First: max(o.First, 1), Empty: true}
	t.Last = t.First - 1
	var b strings.Builder
	letters := 0
	for t.Next == 0 && t.Last < len(pages) && (o.Pages <= 0 || t.Last-t.First+1 < o.Pages) {
		text := f.text(pages[t.Last])
		more := t.Last >= t.First // what was read before is worth showing
		if f.left.err == ErrTooLarge && more {
			t.Next = t.Last + 1
			break
		}
		if f.left.err != nil {
			return Text{}, f.left.err
		}
		letters += utf8.RuneCountInString(text)
		long := o.MaxChars > 0 && letters > o.MaxChars
		if long && more {
			t.Next = t.Last + 1
			break
		}
		t.Last++
		t.Empty = t.Empty && text == ""
		switch {
		case long:
			text = string([]rune(text)[:o.MaxChars]) + "\n[the rest of this page is left out]"
			t.Next = t.Last + 1
		case text == "":
			text = "[no text on this page]"
		}
		fmt.Fprintf(&b, "[page %d]\n%s\n\n", t.Last, text)
	}
	if t.Next == 0 {
		t.Next = t.Last + 1
	}
	if t.Next > len(pages) {
		t.Next = 0
	}
	t.Body = strings.TrimRight(b.String(), "\n")
	return t, nil
}

// pages lists the pages in their order, with what they inherit.
func (f *file) pages() []dict {
	root, _ := f.get(f.trailer["Root"]).(dict)
	if root == nil || f.get(root["Pages"]) == nil {
		root = f.catalog()
	}
	var list []dict
	seen := map[int]bool{}
	var walk func(v any, resources any, depth int)
	walk = func(v any, resources any, depth int) {
		if r, ok := v.(ref); ok {
			if seen[int(r)] {
				return
			}
			seen[int(r)] = true
		}

		node, _ := f.get(v).(dict)
		if node == nil || depth > maxDepth || len(list) >= maxPages || f.left.err != nil {
			return
		}
		if r := node["Resources"]; r != nil {
			resources = r
		}

		kids, inner := f.get(node["Kids"]).([]any)
		if !inner {
			page := dict{"Contents": node["Contents"], "Resources": resources}
			list = append(list, page)
			return
		}

		for _, kid := range kids {
			walk(kid, resources, depth+1)
		}
	}
	walk(root["Pages"], nil, 0)

	return list
}
