// Package trial reads tests of agents (*.test.yaml) and judges what an agent did in one.
//
// A test says what an agent is given, what it is asked, and what is expected of it:
//
//	name: finds the price
//	files:
//	  prices.txt: |
//	    tea 3.20
//	messages:
//	  - what does tea cost?
//	expect:
//	  - contains: "3.20"
//	  - called: { tool: read, with: { path: prices.txt } }
//	  - neverCalled: exec
//	  - file: { path: prices.txt, is: "tea 3.20\n" }
//	  - costUnder: 0.05
//	  - roundsUnder: 4
//
// Parse reads the file; a Run is what happened, and Test.Check compares the two. Whoever runs
// a test gives it a workspace and an agent: see cmd/daycare/lab.
package trial
