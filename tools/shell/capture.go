package shell

import (
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"daycare/tools"
)

const (
	// maxOutput is how many bytes of output a result holds, half of it from the
	// beginning and half from the end. What is said beside it fits into the rest.
	maxOutput = tools.MaxOutput - 1_000
	half      = maxOutput / 2
	// maxSpill is how much of long output goes to a file, in bytes.
	maxSpill = 64 << 20
	// progressEvery is the shortest time between two reports to watchers.
	progressEvery = 100 * time.Millisecond
	// maxProgress is how much one report contains at most, in bytes.
	maxProgress = 4096
)

// capture takes the output of a command, of whatever length, into bounded
// memory. Only one goroutine writes to it.
type capture struct {
	head  []byte
	tail  []byte // ring of half bytes, once it is full
	at    int    // where the ring begins
	total int64

	progress func(string)
	told     time.Time
	pending  []byte // not told yet

	dir   string // "" keeps no file
	file  *os.File
	sum   hash.Hash
	kept  int64
	saved string // where the file is, once it has its name
}

func newCapture(dir string, progress func(string)) *capture {
	return &capture{dir: dir, progress: progress, head: make([]byte, 0, half)}
}

// Write never fails: a command is not ended because its output cannot be kept.
func (c *capture) Write(p []byte) (int, error) {
	c.total += int64(len(p))
	c.report(p)
	rest := p
	if room := half - len(c.head); room > 0 {
		n := min(room, len(rest))
		c.head, rest = append(c.head, rest[:n]...), rest[n:]
	}

	c.spill(p)
	c.ring(rest)

	return len(p), nil
}

func (c *capture) ring(p []byte) {
	if len(p) > half {
		p = p[len(p)-half:]
	}
	if room := half - len(c.tail); room > 0 {
		n := min(room, len(p))
		c.tail, p = append(c.tail, p[:n]...), p[n:]
	}

	for len(p) > 0 {
		n := copy(c.tail[c.at:], p)
		c.at, p = (c.at+n)%half, p[n:]
	}
}

// spill writes long output to a file too. It begins when the head is full, so
// that short output makes none.
func (c *capture) spill(p []byte) {
	if c.dir == "" || c.total <= maxOutput && c.file == nil || c.kept >= maxSpill {
		return
	}
	if c.file == nil {
		if !c.begin(len(p)) {
			return
		}
	}
	c.keep(p)
}

// begin opens the file and writes what came before the last n bytes, which head
// and ring still hold whole.
func (c *capture) begin(n int) bool {
	err := os.MkdirAll(c.dir, 0o700)
	if err == nil {
		c.file, err = os.CreateTemp(c.dir, ".tmp-output-")
	}
	if err != nil {
		c.dir = "" // the result says that the middle is gone
		return false
	}

	c.sum = sha256.New()
	before := c.total - int64(n)
	c.keep(c.head[:min(int64(len(c.head)), before)])
	if len(c.tail) > 0 {
		c.keep(c.tail)
	}

	return true
}

func (c *capture) keep(p []byte) {
	p = p[:min(int64(len(p)), maxSpill-c.kept)]
	n, err := c.file.Write(p)
	c.sum.Write(p[:n])
	c.kept += int64(n)
	if err != nil {
		c.discard()
	}
}

// discard gives the file up.
func (c *capture) discard() {
	if c.file != nil {
		c.file.Close()
		os.Remove(c.file.Name()) // nothing refers to it
	}
	c.file, c.dir = nil, ""
}

// tell hands output on to users, not too often: what comes between is joined
// and, if it is much, shortened to its end.
func (c *capture) report(p []byte) {
	if c.progress == nil {
		return
	}
	c.pending = append(c.pending, p[max(0, len(p)-maxProgress):]...)
	if over := len(c.pending) - maxProgress; over > 0 {
		c.pending = append(c.pending[:0], c.pending[over:]...)
	}
	if time.Since(c.told) >= progressEvery {
		c.flush()
	}
}

func (c *capture) flush() {
	if len(c.pending) == 0 {
		return
	}

	// A character may be cut at the end; it is reported with what follows.
	n := len(c.pending)
	for i := 1; i <= min(utf8.UTFMax-1, n); i++ {
		if b := c.pending[n-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(c.pending[n-i:]) {
				n -= i
			}
			break
		}
	}

	c.progress(strings.ToValidUTF8(string(c.pending[:n]), "\uFFFD"))
	c.pending = append(c.pending[:0], c.pending[n:]...)
	c.told = time.Now()
}

// finish tells the rest and gives the file its name, the hash of its content.
func (c *capture) finish() {
	if c.progress != nil {
		c.flush()
	}
	if c.file == nil {
		return
	}

	name := filepath.Join(c.dir, hex.EncodeToString(c.sum.Sum(nil)))
	err := c.file.Close()
	if err == nil {
		err = os.Rename(c.file.Name(), name)
	}
	if err != nil {
		os.Remove(c.file.Name()) // the result says that the middle is gone
		return
	}

	c.saved = name
}

// text is what the result holds. whole is nil unless something had to be left out.
func (c *capture) text() (text string, whole *tools.Whole) {
	head := strings.ToValidUTF8(string(c.head), "\uFFFD")
	end := append(append([]byte(nil), c.tail[c.at:]...), c.tail[:c.at]...)
	left := c.total - int64(len(c.head)+len(end))
	if left == 0 {
		return strings.ToValidUTF8(string(c.head)+string(end), "\uFFFD"), nil
	}

	whole = &tools.Whole{Bytes: c.total}
	if c.saved != "" {
		whole.Blob, whole.Kept = filepath.Base(c.saved), c.kept
	}

	return whole.Shorten(head, strings.ToValidUTF8(string(end), "\uFFFD"), left), whole
}
