package files

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"daycare/engine/beneath"
	"daycare/engine/message"
	"daycare/tools"
	"daycare/tools/pdf"
)

// Bounds of one read (behaviour 3.8).
const (
	maxReadLines = 2000
	maxReadBytes = 50 << 10
	// maxReadNote is room for the line that says where to continue.
	maxReadNote = 200
	// maxLine is how many bytes of one line are shown: more is no text that
	// anybody reads.
	maxLine = 2000
	// maxImage is what vendors take of one picture, in bytes.
	maxImage = 5 << 20
	// sniff is how much of a file is looked at to tell what it is.
	sniff = 8000
)

type readArgs struct {
	Path   string `json:"path"`
	Offset number `json:"offset"`
	Limit  number `json:"limit"`
}

func read(ctx context.Context, r *reach, a readArgs) (tools.Result, error) {
	p, err := r.file(a.Path, false)
	if err != nil {
		return tools.Result{}, err
	}
	defer p.close()
	f, err := p.open()
	if err != nil {
		return tools.Result{}, fmt.Errorf("read %s: %s", r.shown(p.abs), plain(err))
	}
	defer f.Close()
	r.note(p, p.info)
	in := bufio.NewReaderSize(f, 64<<10)
	head, err := in.Peek(sniff)
	if err != nil && err != io.EOF {
		return tools.Result{}, fmt.Errorf("read %s: %s", r.shown(p.abs), plain(err))
	}
	if kind := imageType(head); kind != "" {
		return r.image(p, f, kind)
	}
	if pdf.Is(head) {
		return r.document(ctx, p, f, int(a.Offset))
	}
	if isBinary(head) {
		return tools.Errorf("%s is a binary file of %s; it cannot be read as text", r.shown(p.abs), size(p.info.Size())), nil
	}

	return readText(ctx, r.shown(p.abs), in, max(int(a.Offset), 1), int(a.Limit))
}

// readText shows lines from offset on and says how to continue where it stops.
func readText(ctx context.Context, name string, in *bufio.Reader, offset, limit int) (tools.Result, error) {
	if limit <= 0 || limit > maxReadLines {
		limit = maxReadLines
	}
	var b strings.Builder
	line, last, full := 0, 0, false
	for {
		if line%1000 == 0 && ctx.Err() != nil {
			return tools.Result{}, ctx.Err()
		}
		text, cut, err := readLine(in)
		if err == io.EOF {
			break
		}
		if err != nil {
			return tools.Result{}, fmt.Errorf("read %s: %s", name, plain(err))
		}
		line++
		if line < offset || full {
			continue // to the end, for the number of lines
		}

		shown := fmt.Sprintf("%d\t%s\n", line, strings.ToValidUTF8(string(text), "\uFFFD"))
		if cut > 0 {
			shown = fmt.Sprintf("%d\t%s [… %d bytes more in this line]\n", line, strings.ToValidUTF8(string(text), "\uFFFD"), cut)
		}
		if line-offset >= limit || b.Len()+len(shown) > maxReadBytes {
			full = true
			continue
		}

		b.WriteString(shown)
		last = line
	}

	switch {
	case line == 0:
		return tools.Result{Text: fmt.Sprintf("[%s is empty]", name)}, nil
	case last == 0:
		return tools.Errorf("%s has %d lines; offset %d is behind its end", name, line, offset), nil
	case full:
		fmt.Fprintf(&b, "[lines %d-%d of %d; continue with offset %d]\n", offset, last, line, last+1)
	}

	return tools.Result{Text: b.String()}, nil
}

// readLine reads one line without its end. Of a line longer than maxLine it
// returns the beginning and how much it cut.
func readLine(in *bufio.Reader) (line []byte, cut int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull && err != io.EOF {
			return nil, 0, err
		}
		if err == io.EOF && len(part) == 0 && len(line) == 0 {
			return nil, 0, io.EOF
		}

		keep := part
		if err == nil {
			keep = bytes.TrimSuffix(bytes.TrimSuffix(keep, []byte("\n")), []byte("\r"))
		}
		room := min(maxLine-len(line), len(keep))
		line, cut = append(line, keep[:room]...), cut+len(keep)-room
		if err != bufio.ErrBufferFull {
			return line, cut, nil
		}
	}
}

func isBinary(head []byte) bool { return bytes.IndexByte(head, 0) >= 0 }

// imageType tells the pictures that models can see by their first bytes.
func imageType(head []byte) string {
	switch {
	case bytes.HasPrefix(head, []byte("\x89PNG\r\n\x1a\n")):
		return "image/png"
	case bytes.HasPrefix(head, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(head, []byte("GIF87a")), bytes.HasPrefix(head, []byte("GIF89a")):
		return "image/gif"
	case len(head) >= 12 && string(head[:4]) == "RIFF" && string(head[8:12]) == "WEBP":
		return "image/webp"
	}

	return ""
}

// image returns a picture as a block. Its bytes are not put into the result:
// history must not hold them.
func (r *reach) image(p *place, f *os.File, kind string) (tools.Result, error) {
	name := r.shown(p.abs)
	if p.info.Size() > maxImage {
		return tools.Errorf("%s is an image of %s; at most %s can be looked at: make it smaller first", name,
			size(p.info.Size()), size(maxImage)), nil
	}

	data, err := allOf(f, name, maxImage)
	if err != nil {
		return tools.Result{}, err
	}
	file, err := r.keep(p, kind, data)

	return tools.Result{Text: fmt.Sprintf("%s: %s, %s", name, kind, size(file.Size)),
		Blocks: []tools.Block{{Type: "image", File: &file}}}, err
}

// allOf is the content of a file of at most limit bytes.
func allOf(f *os.File, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %s", name, plain(err))
	}
	if int64(len(data)) > limit {
		return nil, beneath.ErrRace
	}

	return data, nil
}

// keep makes an attachment of what was read.
func (r *reach) keep(p *place, kind string, data []byte) (file message.File, err error) {
	sum := sha256.Sum256(data)
	file = message.File{ID: hex.EncodeToString(sum[:12]), Name: filepath.Base(p.abs), MimeType: kind, Size: int64(len(data)), Path: p.real}
	if r.Keep != nil {
		if file, err = r.Keep(file.Name, kind, data); err != nil {
			return file, fmt.Errorf("keep %s: %w", r.shown(p.abs), err)
		}
	}

	return file, nil
}

// readAll reads a whole text file of at most limit bytes.
func readAll(p *place, name string, limit int64) ([]byte, error) {
	if p.info.Size() > limit {
		return nil, fmt.Errorf("%s has %s; this tool takes at most %s", name, size(p.info.Size()), size(limit))
	}
	f, err := p.open()
	if err != nil {
		return nil, fmt.Errorf("read %s: %s", name, plain(err))
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %s", name, plain(err))
	}
	if int64(len(data)) > limit {
		return nil, errors.New("the file is growing; try again")
	}

	return data, nil
}

// size is a number of bytes for users.
func size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000_000:
		return fmt.Sprintf("%.1f KB", float64(n)/1000)
	case n < 1000_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}

	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
