// Package guard finds what in granted folders runs something later, holds secrets or
// belongs to daycare (package sensitive), for the sandbox of commands: before a
// command starts, so that these are hidden from it or can only be read, and when it has
// ended, so that what it made of the kind is put aside before a user's program runs it.
//
// What does not exist yet cannot be kept from being made: the kernel refuses writing in a
// folder, not a name in it. So everything of the kind that appears while a command that
// may write there runs is renamed to NAME.held, but for repositories in which git runs
// nothing (see harmless) and what a right names. A repository that exists keeps its
// configuration and hooks: they are read only while a command runs.
package guard
