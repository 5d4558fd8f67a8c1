package matrix

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"slices"
	"strings"

	"daycare/connectors"
	"daycare/connectors/matrix/e2ee"
)

// bare is a fingerprint without the spaces that clients show it with.
func bare(fingerprint string) string { return strings.ReplaceAll(fingerprint, " ", "") }

// fingerprints are those of the settings.
func (o Options) fingerprints() (all []string) {
	for _, k := range o.Verified {
		all = append(all, bare(k))
	}
	return all
}

// Verify returns the keys that users compare, for `daycare connectors verify`.
func (c *Connector) Verify(ctx context.Context) (v connectors.Verification, err error) {
	if err := c.introduce(ctx); err != nil {
		return v, c.explain(err)
	}
	var own Device
	data, err := c.host.Waiting.Load(c.o.ID, deviceFile)
	switch {
	case !e2ee.Built:
		return v, fmt.Errorf("%w\nuse a released build, or build it: go build -tags goolm ./cmd/daycare", e2ee.ErrAbsent)
	case errors.Is(err, fs.ErrNotExist):
		return v, errors.New("daycare has no keys on this homeserver yet: it makes them when it is connected\nrun: daycare start")
	case err != nil:
		return v, fmt.Errorf("read the fingerprint of the device: %w", err)
	}
	if err := json.Unmarshal(data, &own); err != nil {
		return v, fmt.Errorf("read the fingerprint of the device: %w", err)
	}
	c.mu.Lock()
	me := Device{User: c.me, Device: c.device, Fingerprint: own.Fingerprint}
	c.mu.Unlock()
	if me != own {
		return v, fmt.Errorf("the access token is of device %s, and the keys are of device %s\nrestart daycare", me.Device, own.Device)
	}

	ask := map[string][]string{me.User: {}}
	for _, u := range c.o.Allow {
		ask[u] = []string{}
	}
	var seen struct {
		Devices map[string]map[string]struct {
			Keys     map[string]string `json:"keys"`
			Unsigned struct {
				Name string `json:"device_display_name"`
			} `json:"unsigned"`
		} `json:"device_keys"`
	}
	if err := c.api.do(ctx, call{name: "keys/query", method: http.MethodPost, path: client + "/keys/query",
		body: map[string]any{"device_keys": ask}}, &seen); err != nil {
		return v, err
	}
	v = connectors.Verification{User: own.User, Device: own.Device, Fingerprint: own.Fingerprint,
		Published: seen.Devices[own.User][own.Device].Keys["ed25519:"+own.Device] == own.Fingerprint}
	verified := c.o.fingerprints()
	for _, user := range c.o.Allow {
		for _, device := range slices.Sorted(maps.Keys(seen.Devices[user])) {
			d := seen.Devices[user][device]
			key := d.Keys["ed25519:"+device]
			v.Others = append(v.Others, connectors.VerifyDevice{User: user, Device: device, Name: d.Unsigned.Name, Fingerprint: key,
				Read: len(verified) == 0 || slices.Contains(verified, key)})
		}
	}

	return v, nil
}
