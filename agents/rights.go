package agents

import (
	"errors"
	"fmt"
	"strings"

	"daycare/engine/crash"
	"daycare/engine/disk"
	"daycare/engine/inbox"
	"daycare/engine/message"
	"daycare/engine/permission"
	"daycare/engine/record"
	"daycare/tools"
)

// owner is who may answer a request of this agent in a chat.
func (a *agent) owner() permission.Owner {
	if a.Overseer != nil {
		return a.Overseer.Owner()
	}
	d := a.Meta.Descriptor
	return permission.Owner{Connector: d.Connector, UserID: d.UserID}
}

// note tells the agent of the person who answers. The request stands without it, so
// a failure is only logged.
func (a *agent) note(key, text string) {
	if a.Overseer == nil {
		return
	}
	if err := a.Overseer.Note(key, text); err != nil {
		a.log.Warn("the person's agent was not told of a request", "key", key, "err", err)
	}
}

// noteRequest tells the agent of the person who is asked.
func (a *agent) noteRequest(token string, need permission.Request) {
	a.note("ask:"+token, fmt.Sprintf("Agent %s (id: %s) asks the person to allow %s (%s). Reason: %s. The request is "+
		"%s; the answer is the person's, not yours.",
		a.Meta.Name, a.ID, need.Tag, need.Detail, need.Reason, token))
}

// noteDecision tells the agent of the person who answered.
func (a *agent) noteDecision(it inbox.Item) {
	a.note("decided:"+it.Token, fmt.Sprintf("The request %s of agent %s for %s was answered by %s: %s.", it.Token,
		a.Meta.Name, it.Tag, it.By, it.Decision))
}

// change is what a decision does to state.json; nil: nothing. A right that was asked
// for as such is widened; a decision on one exact call holds for exactly that call.
func (a *agent) change(it inbox.Item) func(*record.State) {
	if _, budget := permission.BudgetOf(it.Tag); budget {
		return nil
	}
	switch permission.Decision(it.Decision) {
	case permission.Profiled:
		return func(s *record.State) { s.Permissions.Profile = permission.Profile(it.Tag) }
	case permission.Revoked:
		if crash.Bug("revokelost") {
			return nil
		}
		return func(s *record.State) {
			if less, err := s.Permissions.Revoke(it.Tag); err == nil {
				s.Permissions = less
			}
		}
	case permission.Prefix:
		return grants(permission.Grant{Tag: it.Tag, At: disk.StampOf(crash.Now()), By: it.By, Token: it.Token, Scripts: it.Scripts})
	case permission.Always:
		if crash.Bug("alwayslost") {
			return nil
		}
		grant := permission.Grant{Tag: it.Tag, At: disk.StampOf(crash.Now()), By: it.By, Token: it.Token, SHA256: it.SHA256}
		if permission.IsGeneral(a.ID, it.Tag, it.SHA256) {
			grant.SHA256, grant.Scripts = "", it.Scripts
		}
		return grants(grant)
	}
	return nil
}

// grants is the change that gives a right.
func grants(g permission.Grant) func(*record.State) {
	return func(s *record.State) {
		if more, err := s.Permissions.Grant(g); err == nil {
			s.Permissions = more
		}
	}
}

// knowFolders pins the folders of rights that were never pinned.
func (a *agent) knowFolders(set permission.Set) {
	if a.Folders == nil {
		return
	}
	if err := a.Folders.Know(set); err != nil {
		a.log.Error("folders of the agent are not pinned on disk", "err", err)
	}
}

// giveFolders pins folders as they are now: their owner gave them, perhaps again.
func (a *agent) giveFolders(given ...permission.Access) {
	for _, access := range given {
		if a.Folders == nil {
			return
		}
		if err := a.Folders.Give(access); err != nil {
			a.log.Error("folder is not pinned on disk", "right", access.Tag(), "err", err)
		}
	}
}

// rightGiven is the right that a person's decision gave; nil: none. What another agent
// shares is what that one holds, with its folder as it was given to it.
func rightGiven(it inbox.Item) permission.Access {
	if permission.Decision(it.Decision) != permission.Always || strings.HasPrefix(it.By, "agent ") {
		return nil
	}
	access, err := permission.Parse(it.Tag)
	if err != nil {
		return nil
	}
	return access
}

// access is what the agent may do now: what state.json says, less what was taken
// away since the turn began, and what was allowed once in this turn.
func (a *agent) access() (permission.Set, error) {
	set := a.state.Permissions.Under(a.Settings.Profile)
	for _, h := range a.Inbox.Open() {
		if h.Kind != message.Permission {
			continue
		}
		// The item waits for the end of the turn, or for a state.json that can be
		// written; its effect does not.
		it, err := a.Inbox.Read(h.ID)
		if errors.Is(err, inbox.ErrUnknown) {
			continue // dropped meanwhile
		}
		if err != nil {
			return permission.Set{}, fmt.Errorf("read decision: %w", err)
		}
		switch it.Decision {
		case string(permission.Profiled):
			set.Profile = permission.Profile(it.Tag)
			set = set.Under(a.Settings.Profile)
		case string(permission.Revoked):
			if less, err := set.Revoke(it.Tag); err == nil {
				set = less
			}
		}
	}
	open := a.history.Obligations().Turn
	if open == nil {
		return set, nil
	}
	for _, c := range open.Worked {
		tool, _, ok := a.Tools.Get(c.Name)
		w, widens := tool.(tools.Widens)
		if !ok || !widens {
			continue
		}
		if more, err := set.Grant(permission.Grant{Tag: w.Widens(tools.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})}); err == nil {
			set = more
		}
	}
	return set, nil
}
