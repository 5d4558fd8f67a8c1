// Package disk is how bytes become durable: append logs with joined barriers,
// atomic replacement, exchange-and-verify for files that users write too, the
// repair of a torn tail, the lock of the data directory. It knows bytes and
// lines, never what they mean.
//
// A barrier is one fdatasync (F_FULLFSYNC on macOS). Everybody who waits on the
// same file joins the one in progress or the next; a Volume bounds how many run at
// once.
//
// What a failing disk means is decided here. A full disk (ENOSPC, EDQUOT) is
// survivable: the half line is cut off, the caller refuses, service resumes when
// there is room. Any other failed write, and every failed sync, is final: what
// the kernel dropped after a failed fsync cannot be known, so the volume is
// marked failed, every later write and barrier returns ErrFailed, and the process
// is expected to exit and recover from the files. The next one writes the ends of
// the logs again before it trusts a sync of them (suspect.go).
package disk
