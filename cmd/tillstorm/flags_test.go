package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Who gives a flag something that can't be read is told what it should be, in every command.
func TestFlagErrorsSayWhatIsExpected(t *testing.T) {
	for line, mistake := range map[string]string{
		"sweep --workers x":        `--workers is a whole number such as 2, not "x"`,
		"crash a.txtar --depth 1.": `--depth is a whole number such as 2, not "1."`,
		"replay --seed -1":         `--seed is a whole number such as 42, from 0 to 18446744073709551615, not "-1"`,
		"sweep --for 10":           `--for is a duration with its unit such as 90s or 10m, not "10"`,
		"run a.txtar --json=maybe": `--json is true or false, not "maybe"`,
		"sweep --db disk":          `--db: a journal is memdb or wal, not "disk"`,
		"replay --journal disk":    `--journal: a journal is memdb or wal, not "disk"`,
		"sweep --seeds x-9":        `--seeds: seeds must be a number or a rising range such as 1-500, of at most a million million, not "x-9"`,
		"sweep --shard 2:8":        `--shard: a shard is I/N with I from 1 to N, for example 2/8, not "2:8"`,
		"defects --seeds 3":        `--seeds: 3 has 1; at least 5 are needed, one for each part`,
		"sweep --nonsense":         `unknown flag: --nonsense`,
	} {
		_, _, err := command(t, strings.Fields(line)...)
		assert.EqualError(t, err, mistake, line)
	}
}
