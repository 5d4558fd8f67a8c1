package files

import "testing"

// What a model is told of the tools is sent with every call of it.
func TestSpecsAreShort(t *testing.T) {
	n := 0
	for _, tool := range New(Options{}) {
		s := tool.Spec()
		n += len(s.Name) + len(s.Description) + len(s.Schema)
	}
	if n/4 > 600 {
		t.Errorf("the tools' descriptions cost about %d tokens; allowed are 600", n/4)
	}
}
