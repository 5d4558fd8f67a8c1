package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// marksFile is how far each channel was taken, as a JSON object.
const marksFile = "marks.json"

// marks remember how far each channel was taken: a message is taken if its position is not
// behind the mark of its channel, or not behind the floor, which is that of all channels
// without a mark. So there is a mark only for channels that were busy of late.
type marks struct {
	connector string
	keeper    Keeper // nil: in memory only
	margin    int64  // how much later than a message of another channel one may arrive

	Floor   int64            `json:"floor"`
	Channel map[string]int64 `json:"channels,omitempty"` // the newest position that was taken

	newest int64
	held   bool            // some channels are not known yet: the floor stays
	live   map[string]live // of channels with a mark, what this process took
}

// A live is what was taken of a channel since the process began: a message may come after one that
// is newer.
type live struct {
	from  int64   // all up to it was taken
	taken []int64 // the newest positions after it
}

// maxLive bounds how many positions of a channel are remembered.
const maxLive = 64

// load reads the marks. Where there are none, all before now counts as taken; where they
// cannot be read, all before then.
func (m *marks) load(now, then int64) error {
	m.Floor, m.Channel, m.live, m.held = now, map[string]int64{}, map[string]live{}, true
	if m.keeper == nil {
		return nil
	}
	data, err := m.keeper.Load(m.connector, marksFile)
	if errors.Is(err, fs.ErrNotExist) {
		return m.save(nil) // from here on nothing is missed
	}
	if err == nil {
		err = json.Unmarshal(data, m)
	}
	if m.Channel == nil {
		m.Channel = map[string]int64{}
	}
	if err != nil {
		m.Floor = then
		return fmt.Errorf("read how far messages were taken: %w", err)
	}

	return nil
}

// after is the newest position of a channel that was taken.
func (m *marks) after(channel string) int64 { return max(m.Floor, m.Channel[channel]) }

// late reports whether a message that is not behind the mark was not taken: newer ones came first.
func (m *marks) late(channel string, at int64) bool {
	l, ok := m.live[channel]
	return ok && at > max(m.Floor, l.from) && !slices.Contains(l.taken, at)
}

// pass notes that a message was taken.
func (m *marks) pass(channel string, at int64) {
	l, ok := m.live[channel]
	if !ok {
		l.from = m.after(channel)
	}
	if l.taken = append(l.taken, at); len(l.taken) > maxLive {
		slices.Sort(l.taken)
		l.from = l.taken[0]
		l.taken = slices.Delete(l.taken, 0, 1)
	}
	m.live[channel] = l
	if at > m.after(channel) {
		m.Channel[channel] = at
	}
	m.newest = max(m.newest, at)
}

// save keeps the marks. behind are channels of which something was not taken.
func (m *marks) save(behind []string) error {
	if !m.held {
		floor := m.newest - m.margin
		for _, channel := range behind {
			floor = min(floor, m.after(channel))
		}
		m.Floor = max(m.Floor, floor)
	}

	for channel, at := range m.Channel {
		if at <= m.Floor {
			delete(m.Channel, channel)
			delete(m.live, channel)
		}
	}

	if m.keeper == nil {
		return nil
	}
	data, err := json.MarshalIndent(m, "", "  ")
	if err == nil {
		err = m.keeper.Save(m.connector, marksFile, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("save how far messages were taken: %w", err)
	}

	return nil
}
