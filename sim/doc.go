// Package sim is a deterministic kernel that runs real services in a simulated world.
//
// A [World] holds nodes. Each [Node] has a clock of its own and runs one
// [Process] at a time; a process boots, serves HTTP, keeps its data in SQLite
// through database/sql, crashes at any step and boots again. The services are
// unchanged production code: they see an *http.Client, a *sql.DB, a clock and a
// way to start background work, and nothing of this package.
//
// # What is promised
//
// Exactly one task of a world runs at any instant, on coroutines, and no task
// is ever interrupted: it gives way only at a step. Time is virtual and jumps
// over idle time. Nothing reads a real clock or real randomness. The same
// configuration therefore gives the same [Trace], byte for byte, in any
// process, under any GOMAXPROCS, with and without the race detector, alone or
// beside other worlds.
//
// # Steps
//
// A step is a point where a process touches the world: before and after each
// SQL statement, BEGIN, COMMIT and ROLLBACK, each request sent, received and
// answered, and each timer. Between two steps a process changes only its own
// memory, and its memory dies with it. So a crash between any two lines of code
// leaves the same world as a crash at one of the two steps around it, and
// crashing at every step is crashing between any two lines.
//
// A step is named NODE/TASK#n/OPERATION[#k]:before|after, for example
// shop-1/callback(A)#2/InsertPaymentRecord:after. The key in parentheses (A) is
// found by functions that the wiring hands in (see [Naming]); occurrences are
// counted per key, so that taking one fault out of a run does not re-aim the
// others.
//
// # Faults
//
// The kernel injects nothing by itself. It asks its [Faults] at each step and
// for each message, and does as told.
//
// # Databases
//
// A database is SQLite's own, with SQLite's own locks; the kernel only waits for them
// in virtual time. A [MemDB] database locks like a rollback journal, a [WAL] database
// is a file with a write-ahead log, where readers see snapshots. Its file is not synced:
// a process crashes here, a machine never does. An [Arena] lends its databases and
// connections to one world after the other, and removes its files when it is closed.
//
// # Idle time
//
// Virtual time jumps over idle time. A periodic job that polls would fill it with
// runs that find nothing; where nothing was written since such a run and faults
// spare the next ones, the kernel asks the database what the job will see later (its
// clock is an argument), and leaves out the runs until that changes.
//
// In SQL, db_now_ms() is the true time in Unix milliseconds; SQLite's own clock
// ('now', CURRENT_TIMESTAMP) and dice are refused.
//
// # Limits
//
// Code in a world must not start goroutines, and must not wait for another task
// on a Go lock or channel: the one running task would wait for ever. Pool limits
// are therefore set by [DBOptions.MaxConns], not by SetMaxOpenConns. A task that
// never gives way is named by [World.Progress].
//
// A transaction must be closed by a deferred Rollback, as database/sql expects
// anyway: when its process crashes, one that is not leaves a goroutine of
// database/sql behind.
//
// Contexts come from [Clock.WithTimeout]. The cancel function of context.WithCancel
// is seen only when a task next runs, and makes database/sql start a goroutine for
// each query under it.
//
// Row changes are what SQLite's update hook reports. It is silent about tables
// WITHOUT ROWID, which are refused, and about a row that REPLACE removes because of
// another row's unique column.
package sim
