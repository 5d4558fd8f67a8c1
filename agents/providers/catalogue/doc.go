// Package catalogue is what daycare knows of models: how much fits into one, what
// it costs, whether it sees pictures, which thinking levels it has.
// cmd/daycare makes one Catalogue of the embedded list (models.json) and the
// overrides in the settings, prices every answer with it and lists it in
// `daycare models`.
//
// Where the figures come from, as of November 2026: the vendors' own pages
// (platform.claude.com/docs: Models overview, Pricing; developers.openai.com:
// the page of each model; ai.google.dev: Models, Pricing), and for models with
// open weights the price of the vendor's own service, as models.dev, OpenRouter
// and the vendors' announcements give it. What was not found is left out, and
// unknown: a model that others serve too has no price of its own. Prices are the
// standard tier, US dollars per million tokens; the cache write is the shortest a
// vendor sells; DeepSeek's is that of its peak hours, twice the other. To correct
// one for yourself, write it into `models` of the settings.
package catalogue
