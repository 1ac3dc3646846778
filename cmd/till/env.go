package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

const envPrefix = "TILL_"

// variable is the environment variable of a flag.
func variable(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// named is a flag by both its names, since nobody knows which one was used.
func named(flag string) string { return "--" + flag + " (" + variable(flag) + ")" }

// flagsFromEnv sets the flags that the command line leaves out from TILL_* variables, and refuses what would silently
// mean something else than it seems to: a variable nobody reads, and an empty value where that isn't the default.
func flagsFromEnv(cmd *cobra.Command) error {
	problems := unknownVariables(cmd.Root())
	cmd.Flags().VisitAll(func(flag *pflag.Flag) {
		if value, ok := os.LookupEnv(variable(flag.Name)); ok && !flag.Changed {
			if err := cmd.Flags().Set(flag.Name, value); err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", variable(flag.Name), err))
				return
			}
		}
		if flag.Changed && isEmpty(flag.Value.String()) && !isEmpty(flag.DefValue) {
			problems = append(problems, fmt.Errorf("%s can't be empty or 0; left out, it is %s", named(flag.Name), flag.DefValue))
		}
	})
	if len(problems) > 0 {
		return usageError{errors.Join(problems...)}
	}
	return nil
}

// isEmpty knows the empty values of all types of flags, but for bool, where false is as good as true.
func isEmpty(value string) bool { return slices.Contains([]string{"", "[]", "0", "0s"}, value) }

// unknownVariables refuses TILL_* variables that no command reads: a misspelt one would be taken for one left out.
func unknownVariables(root *cobra.Command) []error {
	var known []string
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(flag *pflag.Flag) { known = append(known, variable(flag.Name)) })
	}
	var problems []error
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(known, name) {
			problems = append(problems, fmt.Errorf("the environment has %s, which till doesn't know; did you mean %s?", name, nearest(name, known)))
		}
	}
	return problems
}

// nearest is the word that the fewest changes of letters make of another.
func nearest(word string, words []string) string {
	return slices.MinFunc(words, func(a, b string) int {
		return levenshtein.ComputeDistance(word, a) - levenshtein.ComputeDistance(word, b)
	})
}
