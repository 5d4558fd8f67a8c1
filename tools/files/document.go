package files

import (
	"context"
	"fmt"
	"os"

	"daycare/tools"
	"daycare/tools/pdf"
)

// Bounds of one PDF.
const (
	maxPDF = 20 << 20 // bytes that are looked at at all
	// maxShown and maxPages are what vendors take as a document, in bytes and pages: one
	// that they refuse would be refused at every later call, too.
	maxShown = 10 << 20
	maxPages = 100
	// maxPDFText is how many characters of text are shown at once.
	maxPDFText = tools.MaxOutput - 1_000
)

// document returns a PDF as a block, with its text for models that take no documents.
// From a later page on, or where it is too large for a model, it is the text alone.
func (r *reach) document(ctx context.Context, p *place, f *os.File, first int) (tools.Result, error) {
	name := r.shown(p.abs)
	if p.info.Size() > maxPDF {
		return tools.Errorf("%s is a PDF of %s; at most %s can be read", name, size(p.info.Size()), size(maxPDF)), nil
	}
	data, err := allOf(f, name, maxPDF)
	if err != nil {
		return tools.Result{}, err
	}

	text, err := pdf.Read(ctx, data, pdf.Options{First: first, MaxChars: maxPDFText})
	switch {
	case ctx.Err() != nil:
		return tools.Result{}, ctx.Err()
	case err != nil:
		return tools.Errorf("%s is a PDF that cannot be read: %v", name, err), nil
	case text.Last < text.First:
		return tools.Errorf("%s has %d pages; offset %d is behind its end", name, text.Pages, first), nil
	}

	head := fmt.Sprintf("%s: application/pdf, %s, %d pages", name, size(int64(len(data))), text.Pages)
	body := text.Body
	if text.Empty {
		body = fmt.Sprintf("[no text on pages %d-%d: they are pictures, a scan perhaps]", text.First, text.Last)
	}
	if text.Next > 0 {
		body += fmt.Sprintf("\n[pages %d-%d of %d; continue with offset %d]", text.First, text.Last, text.Pages, text.Next)
	}
	if first > 1 || len(data) > maxShown || text.Pages > maxPages {
		return tools.Result{Text: head + "; its text:\n" + body}, nil
	}

	file, err := r.keep(p, "application/pdf", data)
	return tools.Result{Text: head, Blocks: []tools.Block{{Type: "document", File: &file, Text: body}}}, err
}
