package bench

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata anew from what the code gives now")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := errors.Join(os.MkdirAll("testdata", 0o755), os.WriteFile(path, got, 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}

	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (-update makes it)", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs; if that is meant, run the test with -update (-want +got):\n%s", path, diff)
	}
}

func sampleRows() []Row {
	return []Row{
		{Name: "disk: durable appends", Value: 4123.4, Unit: "1/s", Note: "8 files"},
		Against("turns", 1612.07, "1/s", 4123.4, "3 appends each"),
		Against("first token, p99", 0.0123, "ms", 0, ""),
		{Name: "idle agents — größte", Value: 12, Unit: "MiB"},
	}
}

func TestPrint(t *testing.T) {
	var text, lines bytes.Buffer
	if err := errors.Join(Print(&text, sampleRows()), PrintJSON(&lines, sampleRows())); err != nil {
		t.Fatal(err)
	}
	golden(t, "rows.txt", text.Bytes())
	golden(t, "rows.jsonl", lines.Bytes())
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	r, err := Disk(t.Context(), dir, 3, 50*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if r.Files != 3 || r.Appends < 3 || r.Rate() <= 0 || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("Disk = %+v (%.0f/s): figures are missing or contradict each other", r, r.Rate())
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("Disk left %v behind (%v)", left, err)
	}
}

func TestDiskRefuses(t *testing.T) {
	if _, err := Disk(t.Context(), t.TempDir(), 0, time.Second); err == nil {
		t.Error("0 files: no error")
	}
	if _, err := Disk(t.Context(), filepath.Join(t.TempDir(), "none"), 1, time.Second); err == nil {
		t.Error("a folder that is not there: no error")
	}
}

func TestDiskStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	if _, err := Disk(ctx, t.TempDir(), 2, time.Hour); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("went on for %v after its context had ended", took)
	}
}

func TestWriteCSV(t *testing.T) {
	var b bytes.Buffer
	err := WriteCSV(&b, Series{Name: "turns, 1/s", By: "agents", Points: []Point{{1, 90}, {8, 610.25}, {100_000, 2900}}},
		Series{Name: "missing"}, Series{Name: `"disk"`, By: "agents", Points: []Point{{1, 3000}, {512, 0.000001}}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "curves.csv", b.Bytes())

	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil || len(rows) != 6 || rows[1][0] != "turns, 1/s" || rows[4][0] != `"disk"` {
		t.Errorf("read again: %q, %v", rows, err)
	}
}

func TestWriteCSVFails(t *testing.T) {
	for name, series := range map[string][]Series{"no series": nil, "no points": {{Name: "a"}, {Name: "b"}}} {
		var b bytes.Buffer
		if err := WriteCSV(&b, series...); !errors.Is(err, errNoPoints) || b.Len() > 0 {
			t.Errorf("%s: error %v, written %q", name, err, b.String())
		}
	}
	some := Series{Name: "a", Points: []Point{{1, 1}}}
	if err := writeCurves(filepath.Join(t.TempDir(), "missing", "a.csv"), some); err == nil {
		t.Error("a folder that does not exist: no error")
	}
	if err := WriteCSV(fullDisk{}, some); err == nil {
		t.Error("a full disk: no error")
	}
}

// fullDisk refuses every write.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("full") }
