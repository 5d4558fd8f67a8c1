// Package engine is the middle of daycare: an address becomes an agent, a message
// becomes an item in that agent's inbox, and what the agent answers goes back to
// the chat it came from.
//
// System holds no state that could be derived. Whether an agent has work is what
// its inbox and history say; an agent without work is not in memory. Start-up is
// recovery: the tails of every inbox and history are looked at, and an agent whose
// tails do not prove that all is done and delivered is woken.
package engine
