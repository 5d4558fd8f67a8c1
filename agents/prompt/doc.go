// Package prompt makes the model's view of an agent: System renders who it is,
// Builder renders its history, together they are a providers.Request. It reads
// no clock and no file (Load, which fetches SOUL.md and the like, is apart), so
// the same history always gives the same bytes.
//
// # What is said how
//
// A User record becomes
//
//	<notice>…</notice>                                        its preface, if any
//	<time>2026-11-20 18:22 CET (Europe/Berlin)</time><message>…</message>
//	[file: plan.pdf, application/pdf, 48211 bytes, /home/ada/plan.pdf]
//
// with <message untrusted="true"> where nobody vouches for the sender, and
// <system_message origin="AGENT_ID"> for what another agent or the runtime said.
// Text is escaped (& < >), so it can neither close its tag nor forge another
// one; the file line is outside of the tag for the same reason. Messages that the
// sender wrote in one breath (User.Joins) share a tag.
//
// # The shape of a request
//
// Everything between two answers of the model is sent together, so it is at most
// two messages: one Results with exactly one result per tool call, then one User
// with a part per record. Roles alternate, which the stricter servers want, and
// the first message is never the model's.
//
// # Which bytes stay
//
// What a model has answered never changes: a later request repeats every message
// up to the newest answer byte for byte, and vendors' prompt caches rely on that.
// Messages after it may still grow, because a call that failed, or that gave
// neither text nor a tool call, is made again with whatever arrived meanwhile.
// A result that turns up after its call was answered for is left out.
package prompt
