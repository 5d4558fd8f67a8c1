package prompt

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"daycare/agents/providers"
	"daycare/engine/message"
	"daycare/engine/record"
)

// Of many pictures the newest are shown, the old ones are named, seldom at once, and
// a process that starts anew sends the same.
func TestOldPicturesAreNamed(t *testing.T) {
	pixel := drawn(2, 2)
	src := Sources{File: func(message.File) ([]byte, error) { return pixel, nil }}
	b := NewBuilder(src)
	var said []record.Record
	changed, before := 0, []*providers.Message(nil)
	for i := range 3 * maxShown {
		u := asks(fmt.Sprintf("Picture %d.", i))
		u.Files = []message.File{file(fmt.Sprintf("p%d.png", i), "image/png", int64(len(pixel)))}
		said = append(said, u)
		now := build(t, b, talk(said...)).Messages
		shown := seen(now)
		if len(shown) > maxShown || !shown[len(now)-1] {
			t.Fatalf("after %d pictures %d are shown, the newest: %v", i+1, len(shown), shown[len(now)-1])
		}
		if i+1 <= maxShown && len(shown) != i+1 {
			t.Fatalf("%d of %d are shown although there is room", len(shown), i+1)
		}

		other := len(before) > 0 && !reflect.DeepEqual(before, now[:len(before)])
		if other {
			changed++
		}
		if other || i%7 == 0 { // each reads all the pictures again
			again := build(t, NewBuilder(src), talk(said...)).Messages
			if diff := cmp.Diff(now, again, cmpopts.IgnoreUnexported(providers.Message{})); diff != "" {
				t.Fatalf("made anew, the request is another one:\n%.2000s", diff)
			}
		}

		before = now
		said = append(said, says("Seen."))
	}

	if changed == 0 || changed > 3*maxShown/(maxShown/2) {
		t.Errorf("old pictures were taken out %d times", changed)
	}
	first := before[0].Parts
	if len(first) != 2 || !strings.Contains(first[0].(providers.Text).Text, "p0.png") || first[1] != (providers.Text{Text: gone}) {
		t.Errorf("the first message is %+v", first)
	}
}

// seen is which messages have a picture.
func seen(list []*providers.Message) map[int]bool {
	all := map[int]bool{}
	for i, m := range list {
		for _, p := range m.Parts {
			if _, ok := p.(providers.Image); ok {
				all[i] = true
			}
		}
	}

	return all
}
