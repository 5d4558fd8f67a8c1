// Package email is the connector for a mailbox: it reads mails by IMAP, with IDLE
// where the server has it, and answers by SMTP in the thread that it was asked in.
//
// config.go has the settings, fetch.go asks the IMAP server, sender.go decides
// whose mail is trusted, read.go makes posts of mails, send.go answers. What is
// the same for all chats is in connectors/chat. docs/connectors/email.md is for
// users.
package email
