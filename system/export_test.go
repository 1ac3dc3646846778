package system

// What the jobs run when nothing is due, so that its plans can be tested.
const (
	ListDueOrdersSQL   = listDueOrders
	ListDueMessagesSQL = listDueMessages
	ListDueAttemptsSQL = listDueAttempts
	ListDueRefundsSQL  = listDueRefunds
)
