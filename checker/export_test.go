package checker

// SetBudget bounds the search for one order, in steps of the model.
func (e *Evidence) SetBudget(steps int) { e.budget = steps }

// StepBudget is the bound that holds otherwise.
const StepBudget = stepBudget
