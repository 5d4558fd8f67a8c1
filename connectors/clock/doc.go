// Package clock makes messages of what the scheduler fires: a due slot of a task or
// of the heartbeat becomes a system message in an agent's inbox, through the same
// door as everything else, under a dedupe key that names the slot. So a slot that
// is handed over twice, because the process died in between, is one item.
//
// cmd/daycare puts it between engine/schedule and the engine: Target and Due are
// options of schedule.Scheduler.
package clock
