package cuid

import (
	"regexp"
	"testing"
)

func TestIDsAreOfTheirFormAndDiffer(t *testing.T) {
	form := regexp.MustCompile(`^[a-z][a-z0-9]{23}$`)
	seen := map[string]bool{}
	for range 10_000 {
		id := New()
		if !form.MatchString(id) {
			t.Fatal(id)
		}
		if seen[id] {
			t.Fatal("twice:", id)
		}
		seen[id] = true
	}
}

// Each character of an alphabet comes as often as the others, in each place: 36,000 ids have it 1,000 times,
// give or take six standard deviations.
func TestEachCharacterComesAsOften(t *testing.T) {
	var count [length]map[byte]int
	for i := range count {
		count[i] = map[byte]int{}
	}
	for range 36_000 {
		for i, c := range []byte(New()) {
			count[i][c]++
		}
	}
	for i := range count {
		set, want := digits, 1000
		if i == 0 {
			set, want = letters, 36_000/26
		}
		if len(count[i]) != len(set) {
			t.Errorf("place %d has %d characters of %d", i, len(count[i]), len(set))
		}
		for c, n := range count[i] {
			if n < want-250 || n > want+250 {
				t.Errorf("place %d: %c %d times, want about %d", i, c, n, want)
			}
		}
	}
}

func TestAnIDIsOneAllocation(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { New() }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
