package movein

// An item is one thing that a home has: a file of the prompt, a skill, a task, a conversation.
type item struct {
	what string // in a word
	from string // where it is in the home
	note string // about what is taken
	skip string // why it is not taken; "": it is
	put  placer // what becomes of it here; nil with skip
}

// A placer is what becomes of an item in this workspace.
type placer interface {
	// look finds out where the item would go, and whether it is there already.
	look(w *here) spot
	// place puts it there, as a whole or not at all. at is what look found.
	place(w *here, at spot) error
}

// A spot is where an item goes.
type spot struct {
	to    string // relative to .daycare
	there bool   // it is there already
	why   string // why it is not taken; "": it is
}

// The states of a Row.
const (
	stateNew     = "new"     // would be taken
	stateTaken   = "taken"   // was taken
	stateThere   = "there"   // is here already
	stateSkipped = "skipped" // is not taken
	stateFailed  = "failed"  // could not be imported
)

// A Row tells what becomes of an item.
type Row struct {
	What  string `json:"what"`
	From  string `json:"from"` // relative to the home
	To    string `json:"to,omitempty"`
	State string `json:"state"` // new, taken, there, skipped or failed
	Why   string `json:"why,omitempty"`
}

// plan finds out what becomes of the items, and changes nothing.
func plan(w *here, items []*item) []Row {
	rows := make([]Row, len(items))
	for n, i := range items {
		rows[n] = Row{What: i.what, From: i.from, State: stateSkipped, Why: i.skip}
		if i.put == nil {
			continue
		}
		at := i.put.look(w)
		rows[n].To, rows[n].State, rows[n].Why = at.to, stateNew, i.note

		switch {
		case at.why != "":
			rows[n].State, rows[n].Why = stateSkipped, at.why
		case at.there:
			rows[n].State, rows[n].Why = stateThere, ""
		default:
			w.planned[at.to] = i
		}
	}

	return rows
}

// carryOut places what plan said is new. What cannot be placed is a row that says why; the
// others are placed all the same, unless the disk has no room or failed.
func carryOut(w *here, items []*item, rows []Row) error {
	clear(w.planned)
	for n, i := range items {
		if rows[n].State != stateNew {
			continue
		}
		at := i.put.look(w)
		err := i.put.place(w, at)
		rows[n].To = at.to
		if err == nil {
			rows[n].State = stateTaken
			continue
		}

		rows[n].State, rows[n].Why = stateFailed, err.Error()
		if final(err) {
			return err
		}
	}

	return nil
}
