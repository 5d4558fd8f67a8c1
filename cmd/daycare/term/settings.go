package term

import (
	"os"

	"daycare/cmd/daycare/plugins"
	"daycare/engine/config"
	"daycare/engine/finding"
)

// Config reads the settings of the workspace, if there is one. Commands that only
// look something up get on without what is broken in it.
func (c *App) Config() (*config.Config, error) {
	at, err := c.Place()
	if err != nil {
		return nil, err
	}
	conf, found, err := config.Load(at.Data, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil && len(found) == 0 {
		return nil, err
	}
	if err != nil {
		c.Warn("the settings are ignored: %s", found[0])
		return config.Default(), nil
	}

	return conf, nil
}

// WarnOfSettings prints what is wrong with the settings but keeps nothing from
// starting: a key with a typing error is not used, and a default takes its place.
func (c *App) WarnOfSettings() {
	at, err := c.Place()
	if err != nil {
		return
	}
	_, found, err := config.Load(at.Data, os.LookupEnv, plugins.ConnectorChecks...)
	if err != nil {
		return // whoever needs the settings reports it
	}

	for _, f := range found {
		if f.Severity == finding.Warning {
			c.Warn("warning: %s", f)
		}
	}
}
