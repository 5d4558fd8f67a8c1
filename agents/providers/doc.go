// Package providers is the contract with model vendors: Request in, a stream of
// Events out, errors that say whether to try again. One folder a wire format:
// anthropic, openai (and everything that speaks its chat completions), scripted.
// Retry, fallback order and the bound on calls in progress are here, once for all.
//
// To add a vendor: a folder with a type that has ID and Stream, the suite of
// providertest run over it, and one line in cmd/daycare/plugins.
package providers
