// Package gemini speaks the native API of Google's Gemini models, streaming: POST
// {base}/v1beta/models/{model}:streamGenerateContent?alt=sse. (The same service
// also answers Chat Completions, which package openai speaks.)
//
// A message is encoded once and its bytes are sent again at every later call, see
// package anthropic for why. The service caches equal prefixes by itself.
//
// Thought signatures: the models sign what they thought and insist on the
// signature of a call when its result comes back. It stands at the first of the
// calls of an answer, or at its text. It travels as a Reasoning whose Signature
// begins with "call:<place>:" or "text:", and goes back at the same place. Calls
// of other models carry the word that the service documents for them. The
// thoughts themselves are shown and recorded, never sent back.
//
// Thinking: Request.Thinking low, medium, high is the thinkingLevel; models of
// generation 2, which only know a token budget, get one. The option
// "generationConfig" of the settings replaces all of it.
//
// Source: ai.google.dev/gemini-api/docs, generateContent, Thought signatures,
// Function calling, Thinking; ai.google.dev/api, GenerateContentResponse.
package gemini
