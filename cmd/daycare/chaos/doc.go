// Package chaos makes daycare die in every way it can and shows that nothing is
// lost: it starts the real daemon, talks to it as chat platforms and users do,
// kills it at every durable step, cuts its power, breaks its disk, and compares
// after every death what the files say with what the outside world saw.
//
// Where to look: scenario.go and scenarios.go are what is played, world.go and
// user.go the outside world, bot.go and the folder platforms its chat platforms, daemon.go the
// process under test, play.go one case from its first start to its end, cut.go a power cut,
// check.go the promises, operations.go, enumerate.go, random.go, faults.go and volumes_linux.go the ways to die, bugs.go
// the defects put in on purpose, report.go the table.
package chaos
