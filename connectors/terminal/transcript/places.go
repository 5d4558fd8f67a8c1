package transcript

import "time"

// A Place is where a conversation can be taken up again.
type Place struct {
	Seq  int64  // of the newest record that stays
	Text string // the message that is said anew, or the name of the mark
	Mark bool
	At   time.Time
}

// Places are the messages of users that began a turn, and the marks, the newest
// first, as far back as this conversation and the pages that are here go.
func (t *Transcript) Places() []Place {
	var list []Place
	for i := len(t.text.blocks) - 1; i >= 0 && !t.text.blocks[i].fresh; i-- {
		switch b := t.text.blocks[i]; {
		case b.gone:
		case b.mark != "":
			list = append(list, Place{Seq: b.Seq, Text: b.mark, Mark: true, At: b.At})
		case b.kind == person && b.before > 0:
			list = append(list, Place{Seq: b.before, Text: b.text, At: b.At})
		}
	}

	return list
}
