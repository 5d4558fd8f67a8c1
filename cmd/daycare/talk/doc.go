// Package talk has the commands that talk with an agent line by line: chat, and send, which
// can wait for the answer.
//
// A talk joins the daemon of the workspace or, without one, an engine in this process. It sends
// a message and shows the turn that follows from the events of the control API (view.go); how
// the turn ended it learns from the outcome, or from history (ending.go). What the agent asks
// to be allowed meanwhile is asked of the user at the terminal, or answered as a flag says
// (approvals.go). What the user types is in typed.go, when to leave in wait.go.
package talk
