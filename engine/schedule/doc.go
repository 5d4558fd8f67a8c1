// Package schedule is what runs by the clock: tasks (cron) and the prompts of the
// heartbeat, as files that people read and write, and the loop that fires them.
//
//	.daycare/cron/<slug>/TASK.md     front matter (when, for whom, how) and the prompt
//	.daycare/cron/<slug>/MEMORY.md   what the task keeps for its next run
//	.daycare/cron/<slug>/runs.jsonl  the ledger
//	.daycare/cron/<slug>/files/      where the task works
//	.daycare/heartbeat/<slug>.md     one prompt of the heartbeat
//	.daycare/heartbeat/runs.jsonl    its ledger
//
// Due times are computed from the file and the ledger, never stored. A slot is one
// due time. It has exactly one line in the ledger, written when its result is known:
// ran, skipped, missed or failed. Two kinds of lines have no slot: "set" says since
// when a schedule counts, and "firing" is written before a slot is handed over, so
// that after a crash the same slot is handed over again, under the same dedupe
// key, and never counted as missed.
//
// Nothing here knows agents or messages. The Scheduler calls Options.Due with a
// Firing and is told how it ended; connectors/clock makes the message of it. Store
// is the files without the loop: tools, the API and `daycare cron` use it.
package schedule
