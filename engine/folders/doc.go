// Package folders does what users do with the folder of an agent as a whole: fork it,
// export and import it, bring it back from the trash, read and write a file in it. It works
// on files alone, so nothing has to run, and an agent may be in the middle of a turn.
//
// The engine makes and wakes agents; this package says what is in their folders. Its
// caller is engine.System, which has the same operations for the API.
package folders
