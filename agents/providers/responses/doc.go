// Package responses speaks OpenAI's Responses API, streaming: POST {base}/responses.
// It is what api.openai.com is spoken to with: its models since GPT-5.6 refuse tools
// on Chat Completions ("Function tools with reasoning_effort are not supported … use
// /v1/responses"), and only here a model's reasoning can be given back to it.
// Elsewhere the setting `options: {wire: responses}` chooses it.
//
// Nothing is kept by the service (store: false). Its reasoning comes encrypted and
// goes back as it came, to the model that made it; the conversation's name is the
// key of the prompt cache. A message is encoded once and its bytes are sent again at
// every later call, see package anthropic for why.
//
// Options of the settings are added to the body as they are and win over the wire's
// own fields, null removes one.
//
// Source: developers.openai.com/api/reference/resources/responses (create,
// streaming events), and the guides Reasoning models, Conversation state and
// Function calling.
package responses
