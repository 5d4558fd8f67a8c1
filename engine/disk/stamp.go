package disk

import (
	"errors"
	"fmt"
	"time"
)

// A Stamp is a time as it is written in files: RFC 3339, UTC, always three decimals, so
// that lines sorted as text are sorted by time. What users write may be any RFC 3339.
type Stamp struct{ time.Time }

// StampLayout is how a Stamp is written.
const StampLayout = "2006-01-02T15:04:05.000Z"

// StampOf returns t as it is written in a file.
func StampOf(t time.Time) Stamp { return Stamp{t.UTC().Truncate(time.Millisecond)} }

// errYear: RFC 3339 has four digits for a year.
var errYear = errors.New("year is out of range")

func (s Stamp) writable() bool { return s.UTC().Year() >= 0 && s.UTC().Year() <= 9999 }

// MarshalJSON writes milliseconds also where they are 0.
func (s Stamp) MarshalJSON() ([]byte, error) {
	if !s.writable() {
		return nil, errYear
	}
	return s.UTC().AppendFormat(nil, `"`+StampLayout+`"`), nil
}

// UnmarshalJSON refuses a time that could not be written again: in UTC, the end of the year 9999
// may be in the next.
func (s *Stamp) UnmarshalJSON(data []byte) error {
	read := *s
	if err := read.Time.UnmarshalJSON(data); err != nil {
		return err
	}
	if !read.writable() {
		return errYear
	}

	*s = read
	return nil
}

// UnmarshalText is UnmarshalJSON without the quotes.
func (s *Stamp) UnmarshalText(data []byte) error {
	return s.UnmarshalJSON(fmt.Appendf(nil, "%q", data))
}
