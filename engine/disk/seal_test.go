package disk

import (
	"strings"
	"testing"
)

func TestSeal(t *testing.T) {
	const body = `{"seq":1,"text":"ä"`
	line := Seal([]byte("before\n"+body), len("before\n"))[len("before\n"):]
	if want := body + `,"crc":"85d66ce8"}`; string(line) != want {
		t.Fatalf("sealed: %s, want %s", line, want)
	}
	if !Sealed(line) {
		t.Error("a sealed line does not count as sealed")
	}
	if n := testing.AllocsPerRun(10, func() { Sealed(line) }); n > 0 {
		t.Errorf("to look at a seal allocates %v times", n)
	}

	for name, other := range map[string]string{
		"empty": "", "only a seal": string(Seal(nil, 0)), "without": body + "}", "shorter": string(line[1:]),
		"another text":        strings.Replace(string(line), "ä", "a", 1),
		"another checksum":    strings.Replace(string(line), "85d6", "85d7", 1),
		"in capitals":         strings.Replace(string(line), "85d66ce8", "85D66CE8", 1),
		"another name":        strings.Replace(string(line), "crc", "crd", 1),
		"without a brace":     strings.TrimSuffix(string(line), "}") + " ",
		"something behind it": string(line) + " ",
	} {
		if Sealed([]byte(other)) {
			t.Errorf("%s: %s counts as sealed", name, other)
		}
	}
}
