package chat

import "testing"

func TestMentioned(t *testing.T) {
	for _, test := range []struct {
		text, rest string
		forUs      bool
	}{
		{"bot: hello", "hello", true}, {"Bot, hello", "hello", true}, {"ask bot!", "ask bot!", true},
		{"robots are many", "robots are many", false}, {"bottle", "bottle", false}, {"@bot x", "x", true}, {"x\nbot\ny", "x\nbot\ny", true},
		{"bot", "bot", true}, {"bo", "bo", false},
	} {
		if rest, forUs := Mentioned(test.text, "bot"); rest != test.rest || forUs != test.forUs {
			t.Errorf("Mentioned(%q) = %q, %v", test.text, rest, forUs)
		}
	}
}

// Without a name nobody is meant.
func TestNobodyIsMentioned(t *testing.T) {
	if _, forUs := Mentioned("a  b", ""); forUs {
		t.Error("the empty name is mentioned")
	}
}
