package permission

import "cmp"

// A Profile says in a word how much an agent does without being asked. It narrows a set
// and never widens one.
type Profile string

const (
	// ReadOnly reads what the set allows and changes nothing. What would need an approval
	// is refused.
	ReadOnly Profile = "read-only"
	// AskFirst asks before each command and each change of a file.
	AskFirst Profile = "ask"
	// Auto runs commands in a sandbox and changes its files without asking; a network and
	// other folders ask.
	Auto Profile = "auto"
	// Planning reads like ReadOnly until a plan is approved; then, for the rest of that
	// turn, it is Auto.
	Planning Profile = "plan"
)

// Profiles are all of them, as settings and people name them.
var Profiles = []Profile{ReadOnly, AskFirst, Auto, Planning}

// Plan is the approval of a plan: it lasts for the turn in which it is carried out.
type Plan struct{}

func (Plan) access() {}

// Message is the right to write to an agent of somebody else. It is given for one exact
// message only.
type Message struct{ Agent string }

func (Message) access() {}

// Tag is @message:agent.
func (m Message) Tag() string { return "@message:" + m.Agent }

// Tag is @plan.
func (Plan) Tag() string { return "@plan" }

// Under is the set with the profile that applies where it names none.
func (s Set) Under(byDefault Profile) Set {
	s.Profile = cmp.Or(s.Profile, byDefault)
	return s
}

// Changes reports whether anything may be changed: not while it only reads, and not
// before its plan is approved.
func (s Set) Changes() bool {
	return s.Profile != ReadOnly && (s.Profile != Planning || s.Planned)
}
