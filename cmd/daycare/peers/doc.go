// Package peers makes a daemon one of several machines that work on the same agents: it joins
// the cluster, serves the other machines, and leads each request to the machine that it is for.
// What is alone has a nil *Machines, all of whose methods do nothing.
package peers
