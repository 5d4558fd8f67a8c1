// Package schedule stores what runs by the clock, tasks (cron) and the items of the heartbeat, as
// files that users read and edit, and runs the loop that fires them.
//
//	.daycare/cron/<slug>/TASK.md     front matter (when, for whom, how) and the prompt
//	.daycare/cron/<slug>/MEMORY.md   notes that the task keeps for its next run
//	.daycare/cron/<slug>/runs.jsonl  the ledger
//	.daycare/cron/<slug>/files/      the working folder of the task
//	.daycare/heartbeat/<slug>.md     one item of the heartbeat
//	.daycare/heartbeat/runs.jsonl    its ledger
//
// Due times are computed from the file and the ledger, never stored. A slot is one due time. It has
// exactly one line in the ledger, written when its result is known: ran, skipped, missed or failed.
// Two kinds of lines have no slot: "set" says since when a schedule applies, and "firing" is
// written before a slot is handed over, so that after a crash the same slot is handed over again,
// with the same dedupe key, and never counted as missed.
//
// This package knows neither agents nor messages. The Scheduler calls Options.Due with a Firing,
// which returns the result; connectors/clock turns it into a message. Store gives access to the
// files without the loop: tools, the API and `daycare cron` use it.
package schedule
