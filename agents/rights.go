package agents

import (
	"errors"
	"fmt"
	"strings"

	"daycare/engine/changes"
	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// change is what a decision does to state.json; nil: nothing. A right that was asked
// for as such is widened; a decision on one exact call holds for exactly that call.
func change(agent string, it inbox.Item) func(*record.State) {
	if _, budget := permission.BudgetOf(it.Tag); budget {
		return nil
	}
	switch permission.Decision(it.Decision) {
	case permission.Profiled, permission.Revoked:
		if crash.Bug("revokelost") && it.Decision == string(permission.Revoked) {
			return nil
		}
		return func(s *record.State) { s.Permissions = decided(s.Permissions, it) }
	case permission.Prefix:
		return grants(permission.Grant{Tag: it.Tag, At: disk.StampOf(crash.Now()), By: it.By, Token: it.Token, Scripts: it.Scripts})
	case permission.Always:
		if crash.Bug("alwayslost") {
			return nil
		}
		grant := permission.Grant{Tag: it.Tag, At: disk.StampOf(crash.Now()), By: it.By, Token: it.Token, SHA256: it.SHA256}
		if permission.IsGeneral(agent, it.Tag, it.SHA256) {
			grant.SHA256, grant.Scripts = "", it.Scripts
		}
		return grants(grant)
	}

	return nil
}

// decided is a set after a decision that takes effect before it is recorded.
func decided(s permission.Set, it inbox.Item) permission.Set {
	return s.After(permission.Decision(it.Decision), it.Tag, it.Text)
}

// rights are what the agent may do.
type rights struct {
	journal *journal
	box     inbox.Mailbox // may have decisions that are not recorded yet
	jobs    Jobs
}

// grants is the change that gives a right.
func grants(g permission.Grant) func(*record.State) {
	return func(s *record.State) {
		if more, err := s.Permissions.Grant(g); err == nil {
			s.Permissions = more
		}
	}
}

// rightGiven is the right that a user's decision gave; nil: none. What another agent
// shares is what that one holds, with its folder as it was given to it.
func rightGiven(it inbox.Item) permission.Access {
	if permission.Decision(it.Decision) != permission.Always || strings.HasPrefix(it.By, "agent ") {
		return nil
	}
	access, _ := permission.Parse(it.Tag) // nil for what is no tag

	return access
}

// access is what the agent may do now: what state.json says, less what was taken
// away since the turn began, and what was allowed once in this turn.
func (r *rights) access(s *self) (permission.Set, error) {
	set := s.state.Permissions.Under(s.settings.Profile)
	for _, h := range r.box.Open() {
		if h.Kind != message.Permission {
			continue
		}

		// The item waits for the end of the turn, or for a state.json that can be
		// written; its effect does not.
		it, err := r.box.Read(h.ID)
		if errors.Is(err, inbox.ErrUnknown) {
			continue // dropped meanwhile
		}
		if err != nil {
			return permission.Set{}, fmt.Errorf("read decision: %w", err)
		}

		set = decided(set, it).Under(s.settings.Profile)
	}

	if _, ok := changes.Of(set.WorkingDir); set.Profile == permission.DryRun && !ok {
		set.Profile = permission.ReadOnly // there is no copy, or not any more
	}

	open := r.journal.history.Obligations().Turn
	if open == nil {
		return set, nil
	}

	for _, c := range open.Worked {
		tool, _, ok := s.tools.Get(c.Name)
		w, widens := tool.(tools.Widens)
		if !ok || !widens {
			continue
		}
		tag := w.Widens(tools.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments, Access: set}) // paths in it may be relative
		if right, err := permission.Parse(tag); err != nil || set.Allows(right) {
			continue // what it had anyway: its user was not asked, and named nothing
		}
		if more, err := set.Grant(permission.Grant{Tag: tag}); err == nil {
			set = more
		}
	}

	return set, nil
}

// narrowed ends what runs by a right that was taken back.
func (r *rights) narrowed(s *self) {
	now, err := r.access(s)
	if err != nil { // whoever took the right back has ended them already
		r.journal.log.Warn("cannot check what still runs under a revoked permission", "err", err)
		return
	}
	r.jobs.Narrowed(now)
}
