// Package bench measures daycare on the machine it runs on. Every figure that ends
// in a durable write stands beside what the disk itself can do (Disk): a rate is
// good or bad only as a share of that limit, because disks differ a hundredfold.
//
// A measurement gives Rows. Print writes them for users, PrintJSON for programs
// that compare runs, WriteCSV writes how a figure grows with the load.
package bench
