package pdf

import (
	"strings"
	"testing"
)

// Each operator moves and shows letters as the standard says. Letters of the font are half
// of its size wide.
func TestOperators(t *testing.T) {
	for about, tt := range map[string]struct{ content, want string }{
		"space between letters":           {"/F1 10 Tf 2 Tc (ab) Tj", "a b"},
		"little space between letters":    {"/F1 10 Tf 1 Tc (ab) Tj", "ab"},
		"negative space of a word":        {"/F1 10 Tf -40 Tw (a b) Tj", "a\nb"},
		"space of a word, a letter":       {"/F1 10 Tf -40 Tw (ab) Tj", "ab"},
		"a wide line":                     {"/F1 10 Tf 200 Tz [(a) -100 (b)] TJ", "a b"},
		"the same, not wide":              {"/F1 10 Tf [(a) -100 (b)] TJ", "ab"},
		"a wide line, letters":            {"/F1 10 Tf 200 Tz (a) Tj 1 0 0 1 11 0 Tm (b) Tj", "ab"},
		"a wide line, space":              {"/F1 10 Tf 200 Tz 1 Tc (ab) Tj", "a b"},
		"a wide line, words":              {"/F1 10 Tf 200 Tz -15 Tw (a b) Tj", "a\nb"},
		"back":                            {"/F1 10 Tf [(a) 2000 (b)] TJ", "a\nb"},
		"a leading":                       {"/F1 10 Tf 12 TL (a) Tj T* (b) Tj T* (c) Tj", "a\nb\nc"},
		"a leading by moving":             {"/F1 10 Tf (a) Tj 0 -12 TD (b) Tj T* (c) Tj", "a\nb\nc"},
		"moving sets no leading":          {"/F1 10 Tf (a) Tj 0 -12 Td (b) Tj T* (c) Tj", "a\nbc"},
		"raised":                          {"/F1 10 Tf (a) Tj 8 Ts (b) Tj", "a\n\nb"},
		"lowered":                         {"/F1 10 Tf (a) Tj -8 Ts (b) Tj", "a\nb"},
		"moved from the line's beginning": {"/F1 10 Tf (a) Tj 20 0 Td (b) Tj 20 0 Td (c) Tj", "a b c"},
		"next line":                       {"/F1 10 Tf 12 TL (a) Tj (b) '", "a\nb"},
		"next line with space":            {"/F1 10 Tf 12 TL (a) Tj 0 2 (bc) \"", "a\nb c"},
		"next line with words":            {"/F1 10 Tf 12 TL (a) Tj -40 0 (b c) \"", "a\nb\nc"},
		"next line without a string":      {"/F1 10 Tf 12 TL (a) Tj 0 0 \" (b) Tj", "a\nb"},
		"placed":                          {"/F1 10 Tf (a) Tj 1 0 0 1 0 -12 Tm (b) Tj 0 -12 Td (c) Tj", "a\nb\nc"},
		"placed by too little":            {"/F1 10 Tf (a) Tj 1 0 0 1 0 Tm (b) Tj", "ab"},
		"begun anew":                      {"/F1 10 Tf 0 -100 Td (a) Tj BT (b) Tj", "a\n\nb"},
		"kept and brought back":           {"/F1 10 Tf 12 TL q 99 TL Q (a) Tj T* (b) Tj", "a\nb"},
		"brought back too often":          {"Q Q /F1 10 Tf (a) Tj", "a"},
		"a font without a size":           {"/F1 10 Tf /F2 Tf (a) Tj", "a"},
		"scaled":                          {"2 0 0 2 0 0 cm /F1 5 Tf (a) Tj 3.2 0 Td (b) Tj 3.5 0 Td (c) Tj", "ab c"},
		"scaled by too little":            {"2 0 0 2 0 cm /F1 10 Tf (a) Tj 6 0 Td (b) Tj", "ab"},
		"no string":                       {"/F1 10 Tf 5 Tj (a) Tj", "a"},
		"nothing":                         {"/F1 10 Tf Tj ' \" TJ Td Tf Do Tm cm (a) Tj", "a"},
		"too many operands":               {"/F1 10 Tf " + strings.Repeat("(x) ", 70) + "Tj (b) Tj", "xb"},
		"the operands of another":         {"/F1 10 Tf (a) Tj (b) Tx Tj (c) Tj", "ac"},
		"a picture":                       {"BI /W 1 ID EIx \x00EIx EI\n/F1 10 Tf (a) Tj", "a"},
		"a picture without data":          {"/F1 10 Tf (a) Tj BI (b) Tj", "a"},
		"a picture without end":           {"/F1 10 Tf (a) Tj BI ID (b) Tj", "a"},
		"a picture at the end":            {"/F1 10 Tf (a) Tj BI ID x EI", "a"},
	} {
		if got := read(t, page(raw("", "BT "+tt.content)), Options{}).Body; got != "[page 1]\n"+tt.want {
			t.Errorf("%s: %q, want %q", about, strings.TrimPrefix(got, "[page 1]\n"), tt.want)
		}
	}
}

// A form draws where it is put, with its own resources if it has some, and changes nothing
// for what follows.
func TestForms(t *testing.T) {
	const f2 = "/Resources<</Font<</F2 5 0 R>>>>"
	for about, tt := range map[string]struct{ content, form, extra, want string }{
		"moved":               {"/F1 10 Tf (a) Tj /X Do (c) Tj", "BT /F1 10 Tf (b) Tj", "/Matrix[1 0 0 1 0 -12]", "a\nb\n\nc"},
		"moved by too little": {"/F1 10 Tf (a) Tj /X Do", "BT /F1 10 Tf 5 0 Td (b) Tj", "/Matrix[1 0 0 1 0]", "ab"},
		"its own font":        {"/F1 10 Tf (a) Tj /X Do", "BT /F2 10 Tf 5 0 Td (b) Tj", f2, "ab"},
		"what it keeps":       {"/F1 10 Tf 12 TL (a) Tj /X Do T* (c) Tj", "q q 99 TL BT 0 0 Td Q", "", "a\nc"},
		"what it brings back": {"q /F1 10 Tf 12 TL (a) Tj /X Do T* (c) Tj", "Q Q Q", "", "a\nc"},
		"not by another name": {"/F1 10 Tf (a) Tj /Y Do", "BT 5 0 Td (b) Tj", "", "a"},
		"no name":             {"/F1 10 Tf (a) Tj 5 Do", "BT 5 0 Td (b) Tj", "", "a"},
		"itself, a few times over": {"/F1 10 Tf /X Do", "BT 1 0 0 1 0 0 Tm (b) Tj /X Do", "",
			strings.TrimSpace(strings.Repeat("b", maxForms))},
	} {
		data := page(raw("", "BT "+tt.content), raw("/Subtype/Form"+tt.extra, tt.form))
		if got := read(t, data, Options{}).Body; got != "[page 1]\n"+tt.want {
			t.Errorf("%s: %q, want %q", about, strings.TrimPrefix(got, "[page 1]\n"), tt.want)
		}
	}
	data := page(raw("", "BT /F1 10 Tf (a) Tj /X Do"), raw("/Subtype/Image", "BT /F1 10 Tf 5 0 Td (b) Tj"))
	if got := read(t, data, Options{}).Body; got != "[page 1]\na" {
		t.Errorf("a picture is drawn as a form: %q", got)
	}
}

// The parts of a page's content follow each other, wherever they are cut.
func TestContentInParts(t *testing.T) {
	data := made(root, pages, "<</Type/Page/Contents[4 0 R 9 0 R 6 0 R]>>", raw("", "BT /F1 10 Tf (a)"), plain, raw("", "Tj (b) Tj"))
	if got := read(t, data, Options{}).Body; got != "[page 1]\nab" {
		t.Errorf("%q", got)
	}
}

// Of pages in pages each is read once, with the resources of what it is in unless it has
// its own.
func TestPagesInPages(t *testing.T) {
	font := "/Resources<</Font<</F1 9 0 R>>>>"
	data := made(root, "<</Kids[3 0 R 4 0 R 3 0 R]"+font+">>", "<</Contents 5 0 R>>", "<</Kids[6 0 R 2 0 R]>>",
		raw("", "BT /F1 10 Tf (first) Tj"), "<</Contents 7 0 R/Resources<</Font<</F1 8 0 R>>>>>>", raw("", "BT /F1 10 Tf (\\212) Tj"),
		"<</Type/Font/Subtype/Type1/Encoding/MacRomanEncoding>>", plain)
	if got, want := read(t, data, Options{}), "[page 1]\nfirst\n\n[page 2]\nä"; got.Body != want || got.Pages != 2 {
		t.Errorf("%+v, want %q", got, want)
	}
	deep := strings.Repeat("<</Kids[", maxDepth/2) + "<</X 1>>" + strings.Repeat("]>>", maxDepth/2)
	if got := read(t, made(root, deep), Options{}); got.Pages != 1 {
		t.Errorf("of a page in %d others %d pages are read", maxDepth/2, got.Pages)
	}
	if got := read(t, made(root, "<</Kids["+strings.Repeat("<<>>", maxPages+5)+"]>>"), Options{Pages: 1}); got.Pages != maxPages {
		t.Errorf("%d pages are read, want %d", got.Pages, maxPages)
	}
	// Of several roots the newest is the one, where the file does not say which.
	two := made("<</Type/Catalog/Pages 3 0 R>>", "<</Type/Catalog/Pages 4 0 R>>", "<</Kids[<<>>]>>", "<</Kids[<<>><<>>]>>",
		"<</Type/Other>>")
	if got := read(t, []byte(strings.Replace(string(two), "/Root", "/Boot", 1)), Options{}); got.Pages != 2 {
		t.Errorf("%d pages are read, want those of the newest root", got.Pages)
	}
}
