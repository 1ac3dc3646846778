package system

// ListDueOrdersSQL lets the plan of the closing scan be tested.
const ListDueOrdersSQL = listDueOrders
