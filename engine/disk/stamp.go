package disk

import (
	"errors"
	"time"
)

// A Stamp is a time as it is written in files: RFC 3339, UTC, always three decimals, so
// that lines sorted as text are sorted by time. What users write may be any RFC 3339.
type Stamp struct{ time.Time }

// StampLayout is how a Stamp is written.
const StampLayout = "2006-01-02T15:04:05.000Z"

// StampOf returns t as it is written in a file.
func StampOf(t time.Time) Stamp { return Stamp{t.UTC().Truncate(time.Millisecond)} }

// MarshalJSON writes milliseconds also where they are 0.
func (s Stamp) MarshalJSON() ([]byte, error) {
	t := s.UTC()
	if y := t.Year(); y < 0 || y > 9999 {
		return nil, errors.New("year is out of range")
	}
	return t.AppendFormat(nil, `"`+StampLayout+`"`), nil
}
