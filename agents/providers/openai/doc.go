// Package openai speaks Chat Completions, streaming: POST {base}/chat/completions.
// With a base URL it serves everything that speaks the format: Ollama
// (http://localhost:11434/v1), llama.cpp, vLLM, OpenRouter, Groq, Gemini
// (…/v1beta/openai) and others. The reading half is lenient, as the servers differ
// in much (decode.go); the writing half sends what all of them take.
//
// A message is encoded once and its bytes are sent again at every later call, see
// package anthropic for why.
//
// Options of the settings are added to the body as they are and win over the
// wire's own fields, null removes one: `stream_options: null` for a server that
// refuses it. max_tokens or max_completion_tokens as an option says what the
// answer's limit is called, and is its value where a request has none; without,
// it is max_completion_tokens at api.openai.com and max_tokens elsewhere.
//
// Reasoning is shown and recorded, and never sent back: the format has no place
// for it. The exception is Gemini, which wants the thought_signature of a call
// back: it travels as a Reasoning whose Signature begins with "google:".
//
// Source: platform.openai.com/docs/api-reference/chat, openrouter.ai/docs
// (streaming, errors), ai.google.dev/gemini-api/docs/openai.
package openai
