package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// explainFlag says of a flag's value that can't be read what it should be: the packages that
// read it name only themselves.
func explainFlag(_ *cobra.Command, err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	name := invalid.GetFlag().Name
	if should := shouldBe[invalid.GetFlag().Value.Type()]; should != "" {
		return fmt.Errorf("--%s is %s, not %q", name, should, invalid.GetValue())
	}
	return fmt.Errorf("--%s: %w", name, invalid.Unwrap())
}

// shouldBe tells what the value of a flag of some type looks like.
var shouldBe = map[string]string{
	"int":      "a whole number such as 2",
	"uint64":   "a whole number such as 42, from 0 to 18446744073709551615",
	"duration": "a duration with its unit such as 90s or 10m",
	"bool":     "true or false",
}
