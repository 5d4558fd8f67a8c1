package config

// A2A is of agents of other programs, which agents can give tasks to.
type A2A struct {
	Remotes []A2ARemote `json:"remotes"`
}

// An A2ARemote is an agent of another program that speaks A2A.
type A2ARemote struct {
	ID      string            `json:"id" check:"id,required"`
	URL     string            `json:"url" check:"url,required"` // its card is below, at .well-known/agent-card.json
	About   string            `json:"about" check:"required"`   // what it can do, for the model
	Headers map[string]string `json:"headers"`
	Local   bool              `json:"local"` // it is on this machine or in its network
}
