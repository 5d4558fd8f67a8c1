package show

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"daycare/engine/control"
)

// Newest reads the last n records of a history, oldest first.
func Newest(ctx context.Context, client *control.Client, id string, n int) ([]json.RawMessage, error) {
	const pageSize = 500
	var all []json.RawMessage
	before := int64(0)
	for len(all) < n {
		page, err := client.History(ctx, id, before, min(n-len(all), pageSize))
		if err != nil {
			return nil, fmt.Errorf("read history: %w", err)
		}
		all = append(slices.Clone(page.Records), all...)
		if page.Before == nil || len(page.Records) == 0 {
			break
		}
		before = *page.Before
	}

	return all, nil
}
