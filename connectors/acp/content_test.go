package acp

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	acp "github.com/coder/acp-go-sdk"

	"daycare/engine/control"
)

// embedded is a text of a resource, linked what only leads to one.
func embedded(uri, text string) acp.ContentBlock {
	return acp.ContentBlock{Resource: &acp.ContentBlockResource{Resource: acp.EmbeddedResourceResource{
		TextResourceContents: &acp.TextResourceContents{Uri: uri, Text: text}}}}
}

func linked(uri string) acp.ContentBlock {
	return acp.ContentBlock{ResourceLink: &acp.ContentBlockResourceLink{Uri: uri}}
}

func blob(uri, data string, kind *string) acp.ContentBlock {
	return acp.ContentBlock{Resource: &acp.ContentBlockResource{Resource: acp.EmbeddedResourceResource{
		BlobResourceContents: &acp.BlobResourceContents{Uri: uri, Blob: data, MimeType: kind}}}}
}

// Each kind of content is part of the message, or a file beside it, or refused with its place.
func TestKindsOfContent(t *testing.T) {
	hi, pdf := base64.StdEncoding.EncodeToString([]byte("hi")), "application/pdf"
	long := strings.Repeat("x", maxInline+1)
	image := func(kind, data string) acp.ContentBlock {
		return acp.ContentBlock{Image: &acp.ContentBlockImage{MimeType: kind, Data: data}}
	}
	for name, tt := range map[string]struct {
		block acp.ContentBlock
		text  string
		file  string // name and content
	}{
		"a text":                     {acp.TextBlock(" hi "), "hi", ""},
		"a file of the workspace":    {linked("file:///w/dir/a.go#L10-20"), "dir/a.go#L10-20", ""},
		"a file elsewhere":           {linked("file:///etc/hosts"), "/etc/hosts", ""},
		"beside the workspace":       {linked("file:///w2/a.go"), "/w2/a.go", ""},
		"an address":                 {linked("https://x/a.go"), "https://x/a.go", ""},
		"no address":                 {linked("%zz"), "%zz", ""},
		"a file without a path":      {linked("file:"), "file:", ""},
		"a text of a file":           {embedded("file:///w/a.go", "one\ntwo\n\n"), "From a.go:\n```\none\ntwo\n```", ""},
		"a text with a fence":        {embedded("file:///w/a.md", "```\nx\n```"), "From a.md:\n````\n```\nx\n```\n````", ""},
		"as long as may be":          {embedded("file:///w/a.go", long[1:]), "From a.go:\n```\n" + long[1:] + "\n```", ""},
		"a longer one":               {embedded("file:///w/a.go", long), "a.go (attached)", "a.go " + long},
		"a longer one without a dot": {embedded("file:///w/Makefile", long), "Makefile (attached)", "Makefile.txt " + long},
		"a longer one of no file":    {embedded("untitled:", long), "untitled: (attached)", "file.txt " + long},
		"an image":                   {image("image/png", hi), "", "image.png hi"},
		"a jpeg":                     {image("image/jpeg", hi), "", "image.jpg hi"},
		"a gif":                      {image("image/gif", hi), "", "image.gif hi"},
		"a webp":                     {image("image/webp", hi), "", "image.webp hi"},
		"of no kind":                 {image("", hi), "", "image hi"},
		"an image that is none":      {image("image/png", "*"), "-", ""},
		"bytes":                      {blob("file:///w/a.bin", hi, nil), "", "a.bin hi"},
		"bytes of a kind":            {blob("file:///w/a", hi, &pdf), "", "a.pdf hi"},
		"bytes of a folder":          {blob("file:///", hi, nil), "", "file hi"},
		"bytes that are none":        {blob("file:///w/a.bin", "*", nil), "-", ""},
		"a sound":                    {acp.ContentBlock{Audio: &acp.ContentBlockAudio{}}, "-", ""},
		"nothing":                    {acp.ContentBlock{}, "-", ""},
		"an empty text":              {acp.TextBlock(" \n"), "-", ""},
	} {
		m, err := compose("/w", []acp.ContentBlock{tt.block})
		file := ""
		for _, f := range m.Files {
			file += f.Name + " " + string(f.Data)
		}
		if tt.text == "-" {
			if err == nil || !strings.Contains(err.Error(), "prompt") {
				t.Errorf("%s: %.80q, %v", name, m.Text, err)
			}
			continue
		}
		if err != nil || m.Text != tt.text || file != tt.file {
			t.Errorf("%s: %.80q, %.40q, %v", name, m.Text, file, err)
		}
	}
	_, err := compose("/w", []acp.ContentBlock{acp.TextBlock("x"), image("image/png", "*")})
	if err == nil || !strings.Contains(fmt.Sprint(err), "prompt[1]") {
		t.Errorf("the second block: %v", err)
	}
}

// Files are bounded together.
func TestFilesOfAPromptAreBounded(t *testing.T) {
	half := strings.Repeat("x", control.MaxFileBytes/2)
	for n, ok := range map[int]bool{2: true, 3: false} {
		var blocks []acp.ContentBlock
		for i := range n {
			blocks = append(blocks, embedded(fmt.Sprintf("file:///w/%d.txt", i), half))
		}
		if m, err := compose("/w", blocks); (err == nil) != ok || ok && len(m.Files) != n {
			t.Errorf("%d halves: %d files, %v", n, len(m.Files), err)
		}
	}
}
