package bench

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
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

func TestPlot(t *testing.T) {
	series := []Series{
		{Name: "turns & replies", Points: []Point{{1, 90}, {8, 610}, {64, 2100}, {512, 2900}}},
		{Name: "disk", Points: []Point{{1, 3000}, {512, 3000}}, Dashed: true},
	}
	for name, chart := range map[string]Chart{
		"loglog.svg": {Title: "Turns <per second>", X: "agents", Y: "1/s", Log: true},
		"linear.svg": {Title: "Turns", X: "agents", Y: "1/s"},
	} {
		var b bytes.Buffer
		if err := Plot(&b, chart, series...); err != nil {
			t.Fatal(err)
		}
		wellFormed(t, b.Bytes())
		golden(t, name, b.Bytes())
	}
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	dec := xml.NewDecoder(bytes.NewReader(svg))
	for {
		if _, err := dec.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
	}
}

func TestPlotEdges(t *testing.T) {
	one := func(x, y float64) []Series { return []Series{{Name: "s", Points: []Point{{x, y}}}} }
	for name, tt := range map[string]struct {
		chart  Chart
		series []Series
		ok     bool
	}{
		"nothing":            {Chart{}, nil, false},
		"one point":          {Chart{}, one(5, 5), true},
		"one point, log":     {Chart{Log: true}, one(5, 5), true},
		"a power of ten":     {Chart{Log: true}, one(10, 1000), true},
		"zero, log":          {Chart{Log: true}, one(0, 1), false},
		"zero":               {Chart{}, one(0, 0), true},
		"negative":           {Chart{}, one(-3, -7), true},
		"no number":          {Chart{}, one(1, math.NaN()), false},
		"infinite":           {Chart{}, one(math.Inf(1), 1), false},
		"more than colours":  {Chart{}, append(one(1, 2), make([]Series, 9)...), true},
		"very small numbers": {Chart{}, one(1e-9, 1e-9), true},
	} {
		var b bytes.Buffer
		err := Plot(&b, tt.chart, tt.series...)
		if (err == nil) != tt.ok {
			t.Errorf("%s: error %v, want ok %v", name, err, tt.ok)
		}
		if bytes.Contains(b.Bytes(), []byte("NaN")) || bytes.Contains(b.Bytes(), []byte("Inf")) {
			t.Errorf("%s: the picture has coordinates that are no numbers", name)
		}
	}
}
