package budget

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"daycare/engine/beneath"
	"daycare/engine/disk"
)

// sumsFile keeps what the files of past days add up to, so that a start reads the
// newest alone. It is made again whenever it cannot be used.
const sumsFile = "sums.json"

// sums are amounts added up.
type sums struct {
	Total  Amount            `json:"total"`
	Days   map[string]Amount `json:"days"`
	Agents map[string]Amount `json:"agents"` // of an agent and all below it
}

func newSums() sums { return sums{Days: map[string]Amount{}, Agents: map[string]Amount{}} }

func (s *sums) add(family []string, a Amount, day string) {
	s.Total = s.Total.plus(a)
	s.Days[day] = s.Days[day].plus(a)
	for _, agent := range family {
		s.Agents[agent] = s.Agents[agent].plus(a)
	}
}

// kept is what sumsFile holds: the sums of the files that it names, as they were.
type kept struct {
	sums
	Files    map[string]seen `json:"files"`
	Calendar calendar        `json:"calendar"`
}

// seen tells whether a file is still the one that was added up.
type seen struct {
	Size     int64     `json:"size"`
	Modified time.Time `json:"modified"`
}

// addUp adds up the usage files of all days but one, mostly by what is kept, and keeps
// that. What cannot be read is reported and left out.
func (o Options) addUp(day string) kept {
	k := o.load()
	files, err := disk.Glob(o.Dir, "*.jsonl")
	if err != nil {
		o.Log.Warn("cannot list usage files, so budgets treat what they record as unspent\n"+
			"once they are readable: daycare doctor --fix", "err", err)
	}
	if !k.holds(files, day) {
		k = kept{sums: newSums(), Files: map[string]seen{}, Calendar: k.Calendar}
	}

	for _, path := range files {
		name := filepath.Base(path)
		if _, done := k.Files[name]; done || name == day+".jsonl" {
			continue
		}
		if info, err := os.Stat(path); err == nil {
			k.Files[name] = seen{info.Size(), info.ModTime()}
		}
		o.read(&k.sums, path)
	}

	return k
}

// holds reports whether the files that were added up are still what they were.
func (k kept) holds(files []string, day string) bool {
	if k.Files == nil || k.Days == nil || k.Agents == nil {
		return false
	}
	there := 0
	for _, path := range files {
		was, ok := k.Files[filepath.Base(path)]
		if !ok {
			continue
		}
		there++
		info, err := os.Stat(path)
		if err != nil || info.Size() != was.Size || !info.ModTime().Equal(was.Modified) || filepath.Base(path) == day+".jsonl" {
			return false
		}
	}

	return there == len(k.Files)
}

func (o Options) load() (k kept) {
	data, err := beneath.Whole(filepath.Join(o.Dir, sumsFile))
	if err == nil {
		err = json.Unmarshal(data, &k)
	}
	if err != nil {
		k = kept{}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("cannot read spending totals; adding them up again", "file", sumsFile, "err", err)
	}

	return k
}

func (o Options) save(k kept) {
	data, err := json.Marshal(k)
	if err == nil {
		err = o.Volume.WriteDraft("usage", filepath.Join(o.Dir, sumsFile), append(data, '\n'))
	}
	if err != nil {
		o.Log.Warn("cannot save spending totals; the next start adds them up again", "err", err)
	}
}

// read adds the lines of a file. Usage files are a cache: one that is broken costs
// what it said, and keeps nothing from starting.
func (o Options) read(to *sums, path string) {
	err := eachLine(path, func(one line) {
		day := one.At.In(o.Now().Location()).Format(time.DateOnly)
		to.add(append([]string{one.Agent}, one.Above...), one.amount(), day)
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Log.Warn("cannot read a usage file, so budgets treat what it records as unspent\nonce it is readable: daycare doctor --fix",
			"file", path, "err", err)
	}
}

// A calendar says what the day's budget is charged with. The clock of a machine can be
// wrong: a day that it shows again, and one before it, is not granted a second budget.
type calendar struct {
	Day   string `json:"day"`
	Extra Amount `json:"extra"` // spent under another date and charged to this day
	Past  []stay `json:"past"`  // days that were left, oldest first
}

// A stay is a day that was active and was left: what was charged to it beside its
// own, and all that was ever spent until then.
type stay struct {
	Day   string `json:"day"`
	Extra Amount `json:"extra"`
	Total Amount `json:"total"`
}

// maxPast bounds the days that are remembered as left.
const maxPast = 32

// turn makes another day the current one. total is all that was ever spent, today what
// was charged to the day that is left.
func (c *calendar) turn(day string, total, today Amount) {
	left, extra := stay{c.Day, c.Extra, total}, Amount{}
	if day < c.Day {
		extra = today // the clock went back to a day that nothing is known of
	}
	if i := slices.IndexFunc(c.Past, func(s stay) bool { return s.Day == day }); i >= 0 {
		extra = c.Past[i].Extra.plus(total.minus(c.Past[i].Total)) // what was spent since it was left
		c.Past = slices.Delete(c.Past, i, i+1)
	}

	c.Day, c.Extra, c.Past = day, extra, append(c.Past, left)
	c.Past = c.Past[max(0, len(c.Past)-maxPast):]
}
