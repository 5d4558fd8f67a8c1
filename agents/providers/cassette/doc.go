// Package cassette records what a model answered to which requests, and plays it back: the
// same requests get the same answers, without a network, without a key and without cost.
//
// A Tape is a file of JSON lines. The first says which model was recorded, by which provider
// and in which wire format; the others are, in the order in which they were needed, system
// prompts, lists of tools and messages, each once, and the calls that consist of them with
// their answers:
//
//	{"cassette":1,"provider":"claude","wire":"anthropic","model":"claude-sonnet-5-5"}
//	{"system":"s1","text":"You are …"}
//	{"tools":"t1","list":[{"name":"read","description":"…","schema":{…}}]}
//	{"message":"m1","role":"user","text":"text: <time/><message>What is in README.md?</message>"}
//	{"call":1,"system":"s1","tools":"t1","messages":["m1"],"answer":[{"call":{"id":"c1","name":"read","arguments":"{…}"}},{"end":{…}}]}
//
// A request is found by what it says, not by its number, so that agents that work beside each
// other can ask in any order. What differs from run to run is left out of the comparison
// (Blur): the time, ids that daycare made, the folder that the run was in. A request that was not recorded gets no
// answer but a Mismatch, which says how it differs from the recorded one that is most like it.
package cassette
