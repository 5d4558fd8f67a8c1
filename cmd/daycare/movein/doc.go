// Package movein brings the home of another program, or another workspace of daycare, into
// this workspace: prompts, memory, skills, commands, tasks and conversations.
//
//	home.go          the folder of the other program, which is opened as hostile
//	openclaw.go …    a reader for each kind of home: what it finds becomes items
//	place.go …       what an item becomes here: a file, a folder, a task, an agent
//	command.go       the table, the question, and the result
//
// Nothing is run, nothing that exists is overwritten, and an item is placed as a whole or not
// at all. Keys, tokens, allow lists and permissions are never read. A second import of the same
// home changes nothing: what is here is recognized by its content or its id.
package movein
