package address

import "encoding/binary"

// A packed is a descriptor as it is kept in memory and in the index file: of each member
// that is not empty its number in texts, the length and the bytes. A descriptor has few of
// its members, and there may be a hundred thousand.
type packed string

// texts are the members of a descriptor that are texts. Their order is that of the index
// file: whoever changes it changes indexFormat.
func (d *Descriptor) texts() [22]*string {
	return [...]*string{(*string)(&d.Type), &d.ID, &d.Connector, &d.UserID, &d.ChannelID, &d.ParentAgentID, &d.Name,
		&d.Definition, &d.CallID, &d.Description, &d.SystemPrompt, &d.WorkspaceDir, &d.Label, &d.Task, &d.Model, &d.CreatedBy,
		&d.Route.Connector, &d.Route.ChannelID, &d.Route.UserID, &d.Route.ThreadID, &d.ThreadID, &d.Node}
}

// Marks of the members that are no texts.
const (
	spawnedMark  = 0xff
	worktreeMark = 0xfe
)

func pack(d Descriptor) packed {
	var buf []byte
	for i, text := range d.texts() {
		if *text != "" {
			buf = append(buf, byte(i))
			buf = binary.AppendUvarint(buf, uint64(len(*text)))
			buf = append(buf, *text...)
		}
	}
	if d.Spawned {
		buf = append(buf, spawnedMark)
	}
	if d.Worktree {
		buf = append(buf, worktreeMark)
	}

	return packed(buf)
}

// unpack returns the descriptor, whose texts share the memory of p. false: p is none.
func (p packed) unpack() (d Descriptor, ok bool) {
	texts := d.texts()
	for p != "" {
		switch p[0] {
		case spawnedMark:
			d.Spawned, p = true, p[1:]
			continue
		case worktreeMark:
			d.Worktree, p = true, p[1:]
			continue
		}
		n, size := uvarint(string(p[1:]))
		if int(p[0]) >= len(texts) || size == 0 || n > uint64(len(p)-1-size) {
			return Descriptor{}, false
		}
		from := 1 + size
		*texts[p[0]], p = string(p[from:from+int(n)]), p[from+int(n):]
	}

	return d, true
}

// uvarint is binary.Uvarint of a string; size 0: there is none.
func uvarint(s string) (n uint64, size int) {
	for i := range min(len(s), binary.MaxVarintLen64) {
		n |= uint64(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, i + 1
		}
	}

	return 0, 0
}
