package control

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"daycare/engine/beneath"
	"daycare/engine/cuid"
	"daycare/engine/disk"
	"daycare/engine/message"
	"daycare/engine/permission"
)

// A FileStore keeps attachments in .daycare/files: the content as <id>__<name>
// and its FileReference as <id>.json. Both are durable when Put returns; the
// reference is written last, so a file without one is what a crash left.
type FileStore struct {
	root    string // the .daycare directory, absolute
	vol     *disk.Volume
	folders *permission.Folders // where agents write
	copies  Copies              // nil: no other machine needs them
}

// Copies keep attachments for other machines, by name.
type Copies interface {
	// Keep keeps a content; a name has one content for ever.
	Keep(name string, data []byte) error
	// Fetch returns what any machine kept; ok is false if none did.
	Fetch(name string) (data []byte, ok bool, err error)
}

// Share has other machines get what is stored, and this one what they store. It is called
// before the store is used.
func (s *FileStore) Share(c Copies) { s.copies = c }

// NewFileStore returns the store of a .daycare directory. With a nil volume nothing is written.
// folders say where agents can write, and so may have put a link to something else.
func NewFileStore(root string, vol *disk.Volume, folders *permission.Folders) (*FileStore, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", root, err)
	}

	return &FileStore{root: abs, vol: vol, folders: folders}, nil
}

// Recover removes what a crash left half written. The caller must hold the lock of the directory.
func (s *FileStore) Recover() error {
	if err := s.vol.MkdirAll(s.dir()); err != nil {
		return fmt.Errorf("make %s: %w", s.dir(), err)
	}
	return errors.Join(s.vol.Recover(s.dir()), s.vol.Settle(s.dir()))
}

func (s *FileStore) dir() string { return filepath.Join(s.root, "files") }

// reference is the FileReference on disk. The path is not in it: a workspace may
// be moved.
type reference struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"`
}

// Put stores the content of r, at most MaxFileBytes.
func (s *FileStore) Put(name string, r io.Reader) (message.File, error) {
	return s.put(cuid.New(), name, r)
}

// Keep is Put with a given id: if a file is already stored under it, that one is returned.
func (s *FileStore) Keep(id, name string, r io.Reader) (message.File, error) {
	if kept, err := s.Get(id); err == nil {
		return kept, nil
	}
	if !isID(id) {
		return message.File{}, fmt.Errorf("%w: %q is not an id", ErrNoFile, id)
	}

	return s.put(id, name, r)
}

func (s *FileStore) put(id, name string, r io.Reader) (message.File, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return message.File{}, fmt.Errorf("read file %s: %w", name, err)
	}
	if len(content) > MaxFileBytes {
		return message.File{}, fmt.Errorf("%w: over %d bytes", ErrFileTooLarge, MaxFileBytes)
	}
	if err := s.vol.MkdirAll(s.dir()); err != nil {
		return message.File{}, fmt.Errorf("make %s: %w", s.dir(), err)
	}

	name = cleanName(name)
	ref := reference{ID: id, Name: name, MimeType: mimeOf(name, content), Size: int64(len(content))}
	if err := s.vol.WriteFile("files.content", s.path(ref), content); err != nil {
		return message.File{}, fmt.Errorf("save file %s: %w", name, err)
	}

	line, err := json.MarshalIndent(ref, "", "  ")
	if err != nil {
		return message.File{}, fmt.Errorf("encode reference of %s: %w", name, err)
	}
	if s.copies != nil { // before the reference: what has one is kept
		if err := errors.Join(s.copies.Keep(copyOf(id, "content"), content), s.copies.Keep(copyOf(id, "reference"), line)); err != nil {
			return message.File{}, fmt.Errorf("save file %s: %w", name, err)
		}
	}
	if err := s.vol.WriteFile("files.reference", filepath.Join(s.dir(), ref.ID+".json"), append(line, '\n')); err != nil {
		return message.File{}, fmt.Errorf("save reference of %s: %w", name, err)
	}

	return s.file(ref), nil
}

// Adopt stores a copy of a regular file. Files in .daycare (settings, secrets, other agents'
// histories) are refused, so that nobody can be talked into sending them.
func (s *FileStore) Adopt(path string) (message.File, error) {
	return s.AdoptAs(cuid.New(), "", path)
}

// AdoptAs is Adopt with a given id: if a file is already stored under it, it is not copied again.
// name "": the name of the file.
func (s *FileStore) AdoptAs(id, name, path string) (message.File, error) {
	if kept, err := s.Get(id); err == nil {
		return kept, nil
	}
	invalid := func(reason string) (message.File, error) {
		return message.File{}, &Invalid{Field: "path", Reason: reason}
	}
	unreadable := func(err error) (message.File, error) {
		if disk.Transient(err) && !errors.Is(err, fs.ErrPermission) {
			return message.File{}, fmt.Errorf("read file %s: %w", path, err)
		}
		return message.File{}, &Invalid{Field: "path", Reason: bare(err), Err: err}
	}
	if !filepath.IsAbs(path) {
		return invalid("is not absolute")
	}
	if path = filepath.Clean(path); s.folders.Writable(path) {
		content, err := s.shared(path)
		if err != nil {
			return invalid(bare(err))
		}
		return s.put(id, cmp.Or(name, filepath.Base(path)), bytes.NewReader(content))
	}

	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return unreadable(err)
	}
	if root, err := filepath.EvalSymlinks(s.root); err == nil && inside(root, real) && !inside(filepath.Join(root, "files"), real) {
		return invalid("is in .daycare, whose files cannot be sent")
	}

	f, _, err := beneath.OpenOwn(real)
	if err != nil {
		return unreadable(err)
	}
	defer f.Close()

	return s.put(id, cmp.Or(name, filepath.Base(path)), f)
}

// shared reads a file from where agents write: a link that one of them made to a file
// of its reader is not followed.
func (s *FileStore) shared(path string) ([]byte, error) {
	dir, real, err := s.folders.Open(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if root, err := filepath.EvalSymlinks(s.root); err == nil && inside(root, real) && !inside(filepath.Join(root, "files"), real) {
		return nil, errors.New("is in .daycare, whose files cannot be sent")
	}

	content, _, err := beneath.Read(dir, filepath.Base(path), MaxFileBytes)
	switch {
	case errors.Is(err, beneath.ErrTooLarge):
		err = ErrFileTooLarge
	case errors.Is(err, beneath.ErrLink):
		err = fmt.Errorf("%w, because agents can write in its folder; name the file that it links to", beneath.ErrLink)
	}

	return content, err
}

// Read returns the content of a stored file, wherever the workspace was when it was stored.
func (s *FileStore) Read(f message.File) ([]byte, error) {
	dir, name := filepath.Split(f.Path)
	if filepath.Base(dir) != "files" || !strings.HasPrefix(name, f.ID+"__") {
		return nil, fmt.Errorf("%w: %s", ErrNoFile, f.Path)
	}

	return beneath.ReadFile(s.root, filepath.Join("files", name), MaxFileBytes)
}

// isID keeps what is looked up to names that Put makes.
func isID(s string) bool {
	return len(s) >= 24 && len(s) <= 32 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

// Get returns a stored file by its id. Errors: ErrNoFile.
func (s *FileStore) Get(id string) (message.File, error) {
	if !isID(id) {
		return message.File{}, fmt.Errorf("%w: %q is not an id", ErrNoFile, id)
	}
	data, err := beneath.ReadFile(s.root, filepath.Join("files", id+".json"), maxReference)
	if errors.Is(err, fs.ErrNotExist) && s.copies != nil {
		data, err = s.fetch(id)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return message.File{}, fmt.Errorf("%w: %s", ErrNoFile, id)
	}
	if err != nil {
		return message.File{}, fmt.Errorf("read reference: %w", err)
	}

	var ref reference
	if err := json.Unmarshal(data, &ref); err != nil {
		return message.File{}, fmt.Errorf("decode reference of file %s: %w", id, err)
	}
	ref.ID, ref.Name = id, cleanName(ref.Name) // a user may have edited it

	return s.file(ref), nil
}

// copyOf is the name under which a part of a stored file is kept for other machines.
func copyOf(id, part string) string { return "file." + id + "." + part }

// fetch stores here what another machine stored, and returns its reference. Errors:
// fs.ErrNotExist.
func (s *FileStore) fetch(id string) ([]byte, error) {
	line, ok, err := s.copies.Fetch(copyOf(id, "reference"))
	var content []byte
	if err == nil && ok {
		content, ok, err = s.copies.Fetch(copyOf(id, "content"))
	}
	if err == nil && !ok {
		err = fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	var ref reference
	if err := json.Unmarshal(line, &ref); err != nil {
		return nil, fmt.Errorf("decode reference of file %s: %w", id, err)
	}

	ref.ID, ref.Name = id, cleanName(ref.Name)
	if err := s.vol.MkdirAll(s.dir()); err != nil {
		return nil, fmt.Errorf("make %s: %w", s.dir(), err)
	}
	if err := s.vol.WriteFile("files.content", s.path(ref), content); err != nil {
		return nil, fmt.Errorf("save file %s: %w", ref.Name, err)
	}
	if err := s.vol.WriteFile("files.reference", filepath.Join(s.dir(), id+".json"), append(line, '\n')); err != nil {
		return nil, fmt.Errorf("save reference of %s: %w", ref.Name, err)
	}

	return line, nil
}

func (s *FileStore) path(ref reference) string {
	return filepath.Join(s.dir(), ref.ID+"__"+ref.Name)
}

func (s *FileStore) file(ref reference) message.File {
	return message.File{ID: ref.ID, Name: ref.Name, MimeType: ref.MimeType, Size: ref.Size, Path: s.path(ref)}
}

// maxReference bounds a reference, in bytes.
const maxReference = 64 << 10

// maxName bounds a kept file's name, in bytes: with id and "__" it has to fit
// into the 255 of common file systems.
const maxName = 120

// cleanName makes a name that is one path element and can be shown.
func cleanName(name string) string {
	name = filepath.Base(strings.ReplaceAll(strings.ToValidUTF8(name, "_"), `\`, "/"))
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || !unicode.IsPrint(r) || r == '/' || r == ':' {
			return '_'
		}
		return r
	}, name)
	name = strings.TrimLeft(name, ". ")
	if len(name) > maxName {
		ext := filepath.Ext(name)
		if len(ext) > 16 {
			ext = ""
		}
		stem := name[:maxName-len(ext)]
		for !utf8.ValidString(stem) {
			stem = stem[:len(stem)-1]
		}
		name = stem + ext
	}
	if name == "" {
		return "file"
	}

	return name
}

// mimeOf looks at the content first: a name is only what someone said.
func mimeOf(name string, content []byte) string {
	found := http.DetectContentType(content)
	if found == "application/octet-stream" || strings.HasPrefix(found, "text/plain") {
		if byName := mime.TypeByExtension(filepath.Ext(name)); byName != "" {
			return byName
		}
	}

	return found
}

func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// bare is the reason in a file error, without the operation and the path.
func bare(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}

	return err.Error()
}

// Refer writes the FileReference of a stored file that has none because of a crash or accident.
// content is the name of the file, <id>__<name>.
func Refer(vol *disk.Volume, root, content string) error {
	id, name, ok := strings.Cut(content, "__")
	if !ok || !isID(id) {
		return fmt.Errorf("%s does not have a name of the form <id>__<name>", content)
	}
	dir := filepath.Join(root, "files")
	path := filepath.Join(dir, content)
	info, err := os.Lstat(path)
	if err != nil {
		return fmt.Errorf("make reference of %s: %w", content, err)
	}
	if !info.Mode().IsRegular() || info.Size() > MaxFileBytes {
		return fmt.Errorf("%s is not a regular file of at most %d bytes", path, MaxFileBytes)
	}

	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("make reference of %s: %w", content, err)
	}
	line, err := json.MarshalIndent(reference{ID: id, Name: name, MimeType: mimeOf(name, data), Size: int64(len(data))}, "", "  ")
	if err != nil {
		return fmt.Errorf("encode reference of %s: %w", content, err)
	}

	return vol.WriteFile("files.reference", filepath.Join(dir, id+".json"), append(line, '\n'))
}
