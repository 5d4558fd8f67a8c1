package shell

import (
	"bytes"
	"os"
	"testing"
	"time"
)

// TestWhatIsInAPipeIsReadWhenTheTimeIsUp: what holds the pipe open is not waited for, what it holds is read.
func TestWhatIsInAPipeIsReadWhenTheTimeIsUp(t *testing.T) {
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close() // what is left of a command
	for _, want := range [][]byte{[]byte("fine\n"), bytes.Repeat([]byte("x"), 65_000), nil} {
		if _, err := write.Write(want); err != nil {
			t.Fatal(err)
		}
		read.SetReadDeadline(time.Now())
		if _, err := read.Read(make([]byte, 1)); !os.IsTimeout(err) {
			t.Fatalf("a read after the time: %v", err)
		}

		var got bytes.Buffer
		remaining(&got, read)
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%d bytes, want %d", got.Len(), len(want))
		}
	}
}
