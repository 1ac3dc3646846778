package sim

import "strings"

// rowRef is a row that SQLite reported as inserted, updated or deleted.
type rowRef struct {
	table string
	id    int64
}

// savepoint remembers how much had changed when it was set.
type savepoint struct {
	name string
	mark int
}

// forget drops what was rolled back.
func (r *rawConn) forget() { r.changed, r.savepoints = r.changed[:0], r.savepoints[:0] }

// takeChanged returns the rows that a commit changed, each once, in the order of
// their last change.
func (r *rawConn) takeChanged() []rowRef {
	last := make(map[rowRef]int, len(r.changed))
	for i, ref := range r.changed {
		last[ref] = i
	}
	var rows []rowRef
	for i, ref := range r.changed {
		if last[ref] == i {
			rows = append(rows, ref)
		}
	}
	r.forget()
	return rows
}

// noteSavepoint drops what a failed statement or ROLLBACK TO took back inside its
// transaction. mark is how much had changed before the statement.
func (r *rawConn) noteSavepoint(st *statement, mark int, err error) {
	switch {
	case err != nil:
		if !st.partial {
			r.changed = r.changed[:min(mark, len(r.changed))]
		}
	case st.verb == "SAVEPOINT":
		r.savepoints = append(r.savepoints, savepoint{st.savepoint, mark})
	case st.savepoint != "":
		for i := len(r.savepoints) - 1; i >= 0; i-- {
			if s := r.savepoints[i]; strings.EqualFold(s.name, st.savepoint) {
				r.savepoints = r.savepoints[:i]
				if st.verb == "ROLLBACK" {
					r.changed = r.changed[:min(s.mark, len(r.changed))]
					r.savepoints = r.savepoints[:i+1]
				}
				return
			}
		}
	}
}
