package e2ee

import (
	"bytes"
	"encoding/json"
	"io"
	"slices"
	"testing"
)

// A file that was changed on its way is an error.
func TestFiles(t *testing.T) {
	t.Parallel()
	sealed, keys := SealFile([]byte("content"))
	if bytes.Contains(sealed, []byte("content")) {
		t.Error("the file is not encrypted")
	}
	said, err := json.Marshal(keys("mxc://test.example/1"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(said, []byte(`"url":"mxc://test.example/1"`)) || !bytes.Contains(said, []byte(`"hashes"`)) {
		t.Errorf("the message says %s", said)
	}
	r, err := OpenFile(said, bytes.NewReader(slices.Clone(sealed)))
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(r); string(got) != "content" {
		t.Errorf("the file is %q", got)
	}
	sealed[0] ^= 1
	if _, err := OpenFile(said, bytes.NewReader(sealed)); err == nil {
		t.Error("a changed file was accepted")
	}
}
