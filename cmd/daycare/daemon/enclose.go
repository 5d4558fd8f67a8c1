package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"daycare/engine/inbox"
	"daycare/engine/message"
)

// enclose keeps a copy of the nth file of a letter, which becomes the item with that
// id. The id of the copy follows from the two, so that a letter which is tried again
// has one.
func (r workbench) enclose(item string, n int, e inbox.Enclosure) (message.File, error) {
	if e.ID != "" {
		return r.files.Get(e.ID)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", item, n))
	return r.files.AdoptAs(hex.EncodeToString(sum[:12]), e.Name, e.Path)
}
