// Package upkeep has the commands by which users keep daycare for years: backup and restore a
// workspace, update the program, uninstall it.
package upkeep
