// Package anthropic speaks the Messages API of Anthropic, streaming: POST
// {base}/v1/messages, answers as server-sent events. It also serves what speaks
// the same format behind another base URL.
//
// Requests are written by hand and not by the vendor's SDK, because a message is
// encoded once and its bytes are sent again at every later call: that keeps turn
// 1,000 as cheap as turn 10, and the prefix equal byte for byte, on which the
// vendor's prompt cache depends. Up to four cache markers are set: the last tool,
// the system prompt, the last message, and the message that was last at the
// previous call. The markers of messages move, so they are put into the kept bytes
// on the way out (encode.go).
//
// Thinking: Request.Thinking low, medium, high asks for adaptive thinking with
// that effort; models up to Claude 4.5, which only know a token budget, get one.
// The option "thinking" in the settings replaces either; "output_config" likewise.
// While thinking is on, the temperature is not sent: the API refuses it.
// A thinking block goes back with its signature, a redacted one as a Reasoning
// whose Signature begins with "redacted:". Blocks go back in the order thinking,
// text, calls, which is the order of every answer without server-side tools.
//
// Version 2023-06-01 of the API is spoken; the header anthropic-version can be set
// in the settings like any other.
//
// Source: platform.claude.com/docs, Streaming messages, Thinking, Prompt caching,
// Errors.
package anthropic
