package budget

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"daycare/agents/providers"
	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// A Call is one request to a model, as an agent's history has it.
type Call struct {
	At              time.Time
	Agent           string
	Above           []string // its ancestors, the oldest last
	Provider, Model string
	Usage           providers.Usage
	Cost            float64 // US dollars
}

// Missing returns the calls that are not in the usage files in dir: calls of agents whose histories used more
// tokens than the files say. The files may have more than the histories: what was paid for and broke off before
// there was a record.
func Missing(dir string, calls []Call) ([]Call, error) {
	type key struct {
		agent, model string
		tokens       tokens
	}
	written, sum := map[key]int{}, map[string]int64{}
	files, err := disk.Glob(dir, "*.jsonl")
	if err != nil {
		return nil, fmt.Errorf("list usage: %w", err)
	}

	for _, path := range files {
		err := eachLine(path, func(one line) {
			written[key{one.Agent, one.Model, one.Tokens}]++
			sum[one.Agent] += one.Tokens.sum()
		})
		if err != nil {
			return nil, fmt.Errorf("read usage: %w", err)
		}
	}

	used := map[string]int64{}
	for _, c := range calls {
		used[c.Agent] += tokensOf(c.Usage).sum()
	}
	var missing []Call
	for _, c := range calls {
		k := key{c.Agent, c.Model, tokensOf(c.Usage)}
		switch {
		case written[k] > 0:
			written[k]--
		case used[c.Agent] > sum[c.Agent]:
			missing = append(missing, c)
		}
	}

	return missing, nil
}

// Day is the name of the file in which a call at that time is written.
func Day(at time.Time) string { return at.Local().Format(time.DateOnly) + ".jsonl" }

// Add writes calls into the files of their days. No Ledger may be open meanwhile: it
// would not know of them.
func Add(dir string, calls []Call) (err error) {
	var file dayFile
	defer func() { err = errors.Join(err, file.close()) }()
	slices.SortStableFunc(calls, func(a, b Call) int { return a.At.Compare(b.At) })
	for _, c := range calls {
		err := file.append(filepath.Join(dir, Day(c.At)),
			line{At: disk.StampOf(c.At), Agent: c.Agent, Above: c.Above, Provider: c.Provider, Model: c.Model,
				Tokens: tokensOf(c.Usage), Cost: c.Cost, Estimated: c.Usage.Estimated})
		if err != nil {
			return fmt.Errorf("write usage: %w", err)
		}
	}

	return nil
}

// maxLine is the longest line that is read, in bytes; a longer one is skipped as a
// broken one is.
const maxLine = 1 << 20

// eachLine calls fn for the lines of a file that are whole.
func eachLine(path string, fn func(line)) error {
	f, _, err := beneath.OpenOwn(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	for {
		text, err := readLine(r)
		var one line
		if json.Unmarshal(text, &one) == nil && one.Agent != "" { // else torn, or a user's own words
			fn(one)
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine returns the next line, empty for one that is too long.
func readLine(r *bufio.Reader) (text []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(text)+len(part) > maxLine; long {
			text = nil
		} else {
			text = append(text, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
	}
}
