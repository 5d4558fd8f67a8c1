// Package budget bounds what agents spend: a providers.Provider decorator around one
// shared Ledger. Before each request the ledger reserves about what it will cost;
// after it, what it did cost takes the reservation's place and is written down.
//
// Files: .daycare/usage/<date>.jsonl, one line a request (agent, model, tokens, cost).
// They are a cache of what the histories say, so they are appended without a barrier,
// what is broken in them is skipped, and they may be deleted: spending is then counted from
// zero, until daycare doctor --fix makes them anew (Missing, Add). usage/sums.json is
// what the files of past days add up to (sums.go).
//
// A limit that is reached can be raised, once or permanently; a permanent raise is written where
// the limit is, and one that is given once is in usage/raises.json (raises.go).
//
// Of several machines that work on the same agents each has a ledger; limits bound what all have spent (machines.go).
//
// cmd/daycare makes the ledger and puts the decorator around the providers of each
// agent. What an agent spends counts for all of its ancestors too: children draw on
// their parent's budget.
package budget
