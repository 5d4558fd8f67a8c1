package permission

import "cmp"

// A Profile says how much an agent does without asking. It narrows a set and never widens one.
type Profile string

const (
	// ReadOnly reads what the set allows and changes nothing. Calls that would need an
	// approval are refused.
	ReadOnly Profile = "read-only"
	// AskFirst asks before each command and each change of a file.
	AskFirst Profile = "ask"
	// Auto runs commands in a sandbox and changes files in the set without asking; it asks
	// for network access and other folders.
	Auto Profile = "auto"
	// DryRun works on a copy of its folder, which is its working folder. It changes nothing else:
	// calls with an effect outside of the copy are recorded and not made.
	DryRun Profile = "dry-run"
	// Planning is ReadOnly until a plan is approved and then Auto for the rest of that
	// turn.
	Planning Profile = "plan"
)

// Profiles lists all profiles, as they are written in settings.yaml.
var Profiles = []Profile{ReadOnly, AskFirst, Auto, Planning, DryRun}

// Plan is the approval of a plan. It lasts until the end of the turn that carries the plan out.
type Plan struct{}

func (Plan) access() {}

// Message is the permission to write to an agent of another user. It is granted for one exact
// message only.
type Message struct{ Agent string }

func (Message) access() {}

// Tag is @message:agent.
func (m Message) Tag() string { return "@message:" + m.Agent }

// Tag is @plan.
func (Plan) Tag() string { return "@plan" }

// Under returns the set with its profile, or byDefault if it names none.
func (s Set) Under(byDefault Profile) Set {
	s.Profile = cmp.Or(s.Profile, byDefault)
	return s
}

// Changes reports whether the set allows any change: not with a profile that only reads, and not
// before a plan is approved.
func (s Set) Changes() bool {
	return s.Profile != ReadOnly && (s.Profile != Planning || s.Planned)
}
