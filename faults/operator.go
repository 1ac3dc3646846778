package faults

// What a person does to the rows of a database by hand. Reconciliation must find it.
const (
	RowDeleted Kind = "row-deleted"
	RowEdited  Kind = "row-edited"
)

const operator = "operator"

var operatorKinds = []spec{
	{
		name: RowDeleted, sentence: "a person deletes a row about an order by hand",
		actor: operator, verb: "deletes", anchor: atRow, params: []param{from},
	},
	{
		name: RowEdited, sentence: "a person changes the amount in a row about an order by hand",
		actor: operator, verb: "edits", anchor: atRow, params: []param{number("cents", -maxCents, maxCents), from},
	},
}
