package a2a

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"

	sdk "github.com/a2aproject/a2a-go/v2/a2a"

	"daycare/engine/event"
)

// cardVersion is the version of what agents do here: with one connector all cards change together.
const cardVersion = "1"

// serveCard sends the card of an agent. It is for those who have a token, as everything is.
func (c *Connector) serveCard(w http.ResponseWriter, r *http.Request, listed Published, a event.Agent) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "a card is read with GET", http.StatusMethodNotAllowed)
		return
	}
	data, err := json.Marshal(newCard(listed, a, base(r, a)))
	if err != nil {
		fail(w, err)
		return
	}

	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store") // it follows the settings
	_, _ = w.Write(data)                        // the client is gone; nobody is left to tell
}

// base is the address of an agent as the client reaches it. The listeners know its Host.
func base(r *http.Request, a event.Agent) string {
	u := url.URL{Scheme: "http", Host: r.Host, Path: Prefix + a.ID}
	if r.TLS != nil {
		u.Scheme = "https"
	}

	return u.String()
}

func newCard(listed Published, a event.Agent, base string) *sdk.AgentCard {
	const token sdk.SecuritySchemeName = "token"
	name := cmp.Or(listed.Name, a.Name, a.Handle)
	card := &sdk.AgentCard{
		Name: name, Description: listed.Description, Version: cardVersion,
		SupportedInterfaces: []*sdk.AgentInterface{
			sdk.NewAgentInterface(base, sdk.TransportProtocolJSONRPC), sdk.NewAgentInterface(base, sdk.TransportProtocolHTTPJSON)},
		Capabilities:       sdk.AgentCapabilities{Streaming: true, PushNotifications: true},
		DefaultInputModes:  []string{"text/plain", "text/markdown", "application/json", "application/octet-stream"},
		DefaultOutputModes: []string{markdown},
		SecuritySchemes: sdk.NamedSecuritySchemes{
			token: sdk.HTTPAuthSecurityScheme{Scheme: "Bearer", Description: "a token of daycare"}},
		SecurityRequirements: sdk.SecurityRequirementsOptions{{token: {}}},
	}

	for _, s := range listed.Skills {
		card.Skills = append(card.Skills, sdk.AgentSkill{ID: s.ID, Name: s.Name, Description: s.Description, Examples: s.Examples,
			Tags: append([]string{}, s.Tags...)})
	}
	if card.Skills == nil {
		card.Skills = []sdk.AgentSkill{{ID: "talk", Name: name, Description: listed.Description, Tags: []string{}}}
	}

	return card
}
