// Package connectors holds the ways in and out, a folder each. To add one:
//
//  1. Make connectors/NAME: config.go has Options, their settings in a comment
//     and Validate; NAME.go has Kind, Connector, New(Options, secret, log), ID, Run, Send. A chat has chat.Settings in its
//     Options and chat.Named in its Connector.
//  2. Run calls deliver for each message, with Dedupe "<id>:<platform's own key>",
//     and tells the platform "received" only after deliver returned nil.
//     What its sender does to a message afterwards is a Post with Amends, the id of that message.
//  3. Ingress is closed by default: an empty allow list is nobody, a missing
//     secret does not start, a signature is checked before anything is read.
//  4. Run returns when the connection is lost: the engine calls it again after a pause. Send
//     delivers one part under out.Key() and says by message.NotSent whether to try
//     again. It never waits, retries or keeps order: the engine does.
//  5. Nobody logs a token: take it out of addresses and of the client's errors, or
//     call the platform with chat.Client, which does.
//  6. Write a fake of the platform on loopback, a connectortest.Harness around it,
//     and call connectortest.Run. Add what is the platform's own beside it.
//  7. A connector imports engine/message, engine/inbox and engine/disk for their
//     words, connectors/format for its text, connectors/chat if users talk over
//     it (the allow list, commands, approvals, files, typing, an HTTP client, Rest,
//     Strikes, Progress and, for platforms that can be asked for what was missed, Backlog
//     are there),
//     connectors/ingress if the platform posts to it, and no other connector.
//  8. List its Kind in cmd/daycare/plugins and its imports in cmd/daycare/imports_test.go,
//     and tell users in docs/connectors/NAME.md how to set it up, and all its settings.
//     settings.example.yaml has those that all connectors share.
//
// connectors/webhook is the one to read first; of the chats connectors/signal is
// the shortest, connectors/telegram the fullest.
package connectors
