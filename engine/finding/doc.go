// Package finding is the one shape in which every validator of a file says what
// is wrong with it: where, how bad, and what to do. Settings, descriptors,
// histories, schedules and sub-agent definitions all report by it, to the log,
// the user interfaces and `daycare doctor`.
package finding
