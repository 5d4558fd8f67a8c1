package fetch

import (
	"context"
	"fmt"
	"net/http"

	"daycare/engine/permission"
	"daycare/tools"
	"daycare/tools/pdf"
)

// document gives the text of a PDF from a page on (0: the first).
func document(ctx context.Context, resp *http.Response, body []byte, from int) tools.Result {
	head := fmt.Sprintf("%s\n%s, application/pdf", resp.Request.URL, resp.Status)
	if len(body) > maxPDF {
		return tools.Errorf("%s\n[more than %d MB: the PDF is too large to be read]", head, maxPDF>>20)
	}
	text, err := pdf.Read(ctx, body, pdf.Options{First: from, MaxChars: maxText})
	switch {
	case ctx.Err() != nil:
		return failed(ctx, permission.Set{}, ctx.Err())
	case err != nil:
		return tools.Errorf("%s, %d bytes\n[the PDF cannot be read: %v]", head, len(body), err)
	case text.Last < text.First:
		return tools.Errorf("%s\n[there is no page %d: it has %d pages]", head, text.First, text.Pages)
	case text.Empty:
		return tools.Errorf("%s\n[there is no text on its %d pages: they are pictures, a scan perhaps]", head, text.Last-text.First+1)
	}

	head += fmt.Sprintf(", %d pages", text.Pages)
	if text.First > 1 {
		head += fmt.Sprintf(", from page %d", text.First)
	}
	if text.Next > 0 {
		text.Body += fmt.Sprintf("\n\n[pages %d-%d of %d; continue with page %d]", text.First, text.Last, text.Pages, text.Next)
	}

	return tools.Result{Text: head + "\n\n" + text.Body}
}
