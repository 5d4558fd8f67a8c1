// Package plain makes text from models, users and files safe to print: whatever could steer
// a terminal becomes visible, and what is long stays in proportion. The command line and the full-screen UI print through it.
package plain
