package checker

import "slices"

// SetBudget bounds the search for one order, in steps of the model.
func (e *Evidence) SetBudget(steps int) { e.budget = steps }

// StepBudget is the bound that holds otherwise.
const StepBudget = stepBudget

// Judge leaves only the named properties.
func (e *Evidence) Judge(names ...string) *Evidence {
	e.rules = slices.DeleteFunc(e.rules, func(p Property) bool { return !slices.Contains(names, p.Name) })
	return e
}
