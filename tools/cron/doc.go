// Package cron is the clocks in an agent's hands: tasks that run on a schedule, and
// the prompts of the heartbeat. Names are slugs, never paths; what is deleted goes
// to the trash. Who gives a task its words has its permissions work for it. So an agent
// changes only tasks that run as this agent, or as themselves with permissions that it has
// too; and the same goes for the heartbeat.
package cron
