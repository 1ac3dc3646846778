package sim

// HashOf returns the hash of a trace of one record.
func HashOf(r Record) uint64 { return mix(r.addTo(fnvOffset)) }
