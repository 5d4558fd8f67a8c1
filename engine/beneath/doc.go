// Package beneath opens what lies on paths that an agent may change at the same time. Every read
// that the daemon does in a workspace goes through it.
//
// A path is walked from an open folder (os.Root), name by name. Each name is looked at, opened,
// and compared with what was opened, so that nothing swapped in between is used:
//
//   - no symbolic link is followed, neither as a folder on the way nor as the file;
//   - only a regular file with one name is read: no pipe, socket or device, and no hard link,
//     which may be another name of a file that the agent must not see;
//   - opening never blocks, and a file over the given size is an error.
package beneath
