// Package show puts into words what agents said, did and ask for, so that a conversation and
// a command say it in the same way.
package show
