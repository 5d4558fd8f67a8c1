// Package webhook is the connector for programs: one that knows a hook's secret
// posts to /hooks/<id>, and the text made from the payload is in the inbox of an
// agent before the sender hears 202. Answers go to the hook's callback, signed
// with the same secret, or nowhere.
//
// config.go has the settings, verify.go verifies senders, payload.go and
// template.go make the text, callback.go sends answers. docs/connectors/webhook.md
// is for those who send.
package webhook
