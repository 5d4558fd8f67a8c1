package daemon

import (
	"daycare/engine/config"
	"daycare/tools/fetch"
)

// searchService is the service behind web_search; nil if none is set up.
func (r workbench) searchService(c *config.Config) *fetch.Service {
	s, err := fetch.FindService(c.Tools.Web.Search, func(name string) string { return c.Secret(name).Reveal() })
	if err != nil {
		r.log.Warn("web_search is left out", "err", err)
	}
	return s
}
