package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// here reads a file; nil: it does not exist. ok is false for one that is not shared as it is now: a
// link of the user, or one that is too large.
func (s *sharing) here(name string) (data []byte, ok bool, err error) {
	data, info, err := s.read(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, true, nil
	case errors.Is(err, beneath.ErrLink):
		return nil, false, nil
	case errors.Is(err, beneath.ErrTooLarge):
		s.log.Warn("a file is too large for other machines to have it", "file", name, "bytes", info.Size(), "most", sharedMost)
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}

	return append([]byte{}, data...), true, nil
}

// read reads a file that no link and nothing else of the user leads to: beneath.ErrLink.
func (s *sharing) read(name string) ([]byte, fs.FileInfo, error) {
	parts := strings.Split(name, "/")
	for i := range parts {
		info, err := os.Lstat(s.path(path.Join(parts[:i+1]...)))
		if last := i == len(parts)-1; err == nil && (last && !info.Mode().IsRegular() || !last && !info.IsDir()) {
			err = beneath.ErrLink
		}
		if err != nil {
			return nil, nil, err
		}
	}

	return beneath.Own(s.path(name), sharedMost)
}

// give writes a file of this machine into the bucket; nil: it was removed.
func (s *sharing) give(ctx context.Context, name string, data []byte, there shared, known bool) error {
	ctx, cancel := context.WithTimeout(ctx, keptFor)
	defer cancel()
	kv, key := s.keep.handles.files, sharedKey(name)
	var err error
	f := shared{}
	switch {
	case data == nil:
		f.revision = there.revision
		err = kv.Delete(ctx, key, jetstream.LastRevision(there.revision))
	default:
		f.SHA, f.Data = sum(data), data
		if len(data) > inlineMost {
			if err := s.keep.put(ctx, f.SHA, data); err != nil {
				return err
			}
			f.Object, f.Data = true, nil
		}
		if !slices.Contains(s.offered[name], f.SHA) {
			s.offered[name] = append(s.offered[name], f.SHA)
		}
		if known && there.SHA != "" {
			f.revision, err = kv.Update(ctx, key, jsonOf(f), there.revision)
		} else {
			f.revision, err = kv.Create(ctx, key, jsonOf(f))
		}
	}
	if err != nil {
		return fmt.Errorf("share %s: %w", name, err) // it was changed there, which is heard of, or no server answers
	}

	s.gave(name, f)
	s.agreedOn(name, f.SHA)

	return nil
}

// content is that of a file in the bucket.
func (s *sharing) content(ctx context.Context, f shared) ([]byte, error) {
	data := f.Data
	if f.Object {
		ctx, cancel := context.WithTimeout(ctx, keptFor)
		defer cancel()
		var err error
		if data, err = s.keep.get(ctx, f.SHA); err != nil {
			return nil, err
		}
	}
	if sum(data) != f.SHA {
		return nil, fmt.Errorf("%w: another checksum", errDamaged)
	}

	return data, nil
}

// adopt writes a file of the bucket here, in the place of data, or removes it.
func (s *sharing) adopt(ctx context.Context, name string, data []byte, there shared) error {
	if there.SHA == "" {
		if s.Leaving != nil {
			s.Leaving(name)
		}
		if err := s.publish(name, nil, data); err != nil {
			return err
		}
		s.tidy(name)
		s.agreedOn(name, "")
		return nil
	}

	content, err := s.content(ctx, there)
	if err == nil {
		err = s.vol.MkdirAll(filepath.Dir(s.path(name)))
	}
	if err == nil {
		err = s.publish(name, content, data)
	}
	if err != nil {
		return err
	}
	s.agreedOn(name, there.SHA)
	if s.Changed != nil {
		s.Changed(name)
	}

	return nil
}

func (s *sharing) path(name string) string { return filepath.Join(s.root, filepath.FromSlash(name)) }

// publish puts content (nil: nothing) in the place of base. What was saved in between stays, and is looked at again:
// ErrChanged. Nothing is appended to a ledger in between.
func (s *sharing) publish(name string, content, base []byte) (err error) {
	release := s.vol.Turn(s.path(name))
	defer release()
	if content == nil {
		return s.vol.Withdraw("commons", s.path(name), base)
	}
	_, err = s.vol.Exchange("commons", s.path(name), content, base)

	return err
}

// tidy removes the folders that a removed file leaves empty.
func (s *sharing) tidy(name string) {
	for dir := filepath.ToSlash(filepath.Dir(filepath.FromSlash(name))); strings.Contains(dir, "/"); {
		if left, err := disk.Glob(filepath.Join(s.root, filepath.FromSlash(dir)), "*"); err != nil || len(left) > 0 {
			return
		}
		if err := s.vol.Remove("commons", filepath.Join(s.root, filepath.FromSlash(dir))); err != nil {
			return
		}
		dir = filepath.ToSlash(filepath.Dir(filepath.FromSlash(dir)))
	}
}

// merge gives a ledger that was continued on two machines the lines of both.
func (s *sharing) merge(ctx context.Context, name string, data []byte, there shared) error {
	theirs, err := s.content(ctx, there)
	if err != nil {
		return err
	}
	all := united(theirs, data, s.base[name])
	if !bytes.Equal(all, data) {
		if err := s.publish(name, all, data); err != nil {
			return err
		}
	}
	if err := s.give(ctx, name, all, there, true); err != nil {
		return err
	}
	if s.Changed != nil {
		s.Changed(name)
	}

	return nil
}

// united are the lines of two versions of a ledger. Those that only ours has come after the line that they
// follow there: what a machine wrote before it was replaced is before what its successor wrote, whatever their clocks say.
// base is the SHA-256 of what both were: what one of them has rotated away since does not come back.
func united(theirs, ours []byte, base string) []byte {
	was := append(beginning(theirs, base), beginning(ours, base)...)
	one, other := linesOf(theirs), linesOf(ours)
	one, other = without(one, was, other), without(other, was, one)
	place := map[string]int{} // of a line of theirs
	for i, line := range one {
		place[string(line)] = i + 1
	}
	after := map[int][][]byte{}
	at := 0
	for _, line := range other {
		if i, ok := place[string(line)]; ok {
			at = max(at, i)
		} else {
			after[at] = append(after[at], line)
		}
	}

	all := after[0]
	for i, line := range one {
		all = append(append(all, line), after[i+1]...)
	}

	return append(bytes.Join(all, []byte{'\n'}), '\n')
}

func linesOf(text []byte) [][]byte {
	return slices.DeleteFunc(bytes.Split(text, []byte{'\n'}), func(line []byte) bool { return len(line) == 0 })
}

// beginning are the lines of a ledger up to where it was, by its SHA-256; none if it was not continued, but replaced.
func beginning(text []byte, base string) [][]byte {
	h := sha256.New()
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		h.Write(text[at:end])
		if at = end; hex.EncodeToString(h.Sum(nil)) == base {
			return linesOf(text[:at])
		}
	}

	return nil
}

// without is a version without the lines that both were, and the other one has no more.
func without(version, was, other [][]byte) [][]byte {
	gone := map[string]bool{}
	for _, line := range was {
		gone[string(line)] = true
	}
	for _, line := range other {
		delete(gone, string(line))
	}

	return slices.DeleteFunc(slices.Clone(version), func(line []byte) bool { return gone[string(line)] })
}

// putAside keeps a version of a file that is replaced.
func (s *sharing) putAside(name string, data []byte) error {
	kept := name + ".conflict-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := s.vol.WriteFile("commons", s.path(kept), data); err != nil {
		return err
	}
	s.log.Warn("a file was changed on two machines at once; the other machine's version applies", "file", name, "kept", kept)

	return nil
}
