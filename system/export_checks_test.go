package system

// CheckStatements are the statements that reconciliation pages with, so that their plans can be tested.
func CheckStatements() map[string]string {
	return map[string]string{
		"orders":   listOrderBooks,
		"records":  listRecordBooks,
		"refunds":  listRefundBooks,
		"attempts": listAttemptBooks,
		"bill":     listBilledBooks,
		"unbilled": listUnbilledRecords,
		"undone":   listUnbilledRefunds,
		"complete": hasBillsUntil,
		"alert":    findAlert,
		"hour":     claimHour,
		"day":      claimDay,
	}
}
