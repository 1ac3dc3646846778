// Package embedded is a Broker and Leases in one SQLite database, for a shop that runs without further services. Any
// number of instances may share the database; what is in it survives their restarts.
//
// A message is delivered at least once: it is claimed for a while, handled, and deleted only after its handler has
// returned nil. A handler that dies, fails or outlasts the claim sees its message again. A lease's token grows with every
// acquisition of its name, over restarts too. A key's end is notified at most once, to one of the instances.
//
// Nothing here waits in memory: everything is due by db_now_ms(), and is looked for at the pace of the Loops.
package embedded
