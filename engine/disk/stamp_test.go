package disk

import (
	"encoding/json"
	"testing"
	"time"
)

// A time is written in UTC with three decimals whatever it was, and read as it is.
func TestStamp(t *testing.T) {
	east := time.FixedZone("", 2*60*60)
	for _, at := range []time.Time{
		time.Date(2026, 11, 20, 20, 22, 0, 0, east), time.Date(2026, 11, 20, 18, 22, 0, 999_999, time.UTC),
	} {
		got, err := json.Marshal(StampOf(at))
		if err != nil || string(got) != `"2026-11-20T18:22:00.000Z"` {
			t.Errorf("%v is written %s, %v", at, got, err)
		}
	}

	if _, err := json.Marshal(Stamp{time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil {
		t.Error("a year of five digits is no RFC 3339, and was written")
	}
	var read Stamp
	if err := json.Unmarshal([]byte(`"2026-11-20T20:22:00+02:00"`), &read); err != nil ||
		!read.Equal(time.Date(2026, 11, 20, 18, 22, 0, 0, time.UTC)) {
		t.Errorf("read %v, %v", read, err)
	}

	was := read
	for _, text := range []string{`"9999-12-31T23:59:59-05:00"`, `"0000-01-01T00:00:00+01:00"`, `"yesterday"`, `7`} {
		var word string
		if json.Unmarshal([]byte(text), &read) == nil || read != was ||
			json.Unmarshal([]byte(text), &word) == nil && read.UnmarshalText([]byte(word)) == nil {
			t.Errorf("%s is read as %v", text, read)
		}
	}
	for _, text := range []string{`null`, `"9999-12-31T23:59:59Z"`, `"0000-01-01T00:00:00Z"`} {
		if err := json.Unmarshal([]byte(text), &read); err != nil {
			t.Errorf("%s: %v", text, err)
		} else if _, err := json.Marshal(read); err != nil {
			t.Errorf("%s cannot be written again: %v", text, err)
		}
	}
}
