package sim

/*
#include <stddef.h>

// From the SQLite that go-sqlite3 links; this package needs none of its headers.
int sqlite3_auto_extension(void (*entry)(void));
int sqlite3_db_config(void *db, int option, ...);

enum { SQLITE_DBCONFIG_ENABLE_QPSG = 1007 };

static int keep_plans(void *db, char **message, const void *api) {
	return sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_QPSG, 1, NULL);
}

static int keep_plans_of_all(void) {
	return sqlite3_auto_extension((void (*)(void))keep_plans);
}
*/
import "C"

import "fmt"

// SQLite likes to look at the values that are bound to a statement when it plans it, and
// then plans it again whenever one of them is bound anew, even to the same: a quarter of
// a sweep's time went there. With its query planner stability guarantee a statement is
// planned once, and the same at each run, see
// https://www.sqlite.org/c3ref/c_dbconfig_enable_fkey.html. go-sqlite3 has no setting for
// it, so that it is made one of all connections that this program opens.
func init() {
	if code := C.keep_plans_of_all(); code != 0 {
		panic(fmt.Sprintf("sim: SQLite refused the setting of its planner: code %d", code))
	}
}
