package sim_test

import (
	"fmt"
	"os"
	osexec "os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/sim"
)

// chance lets the seed decide about each step and message, by name.
type chance uint64

func (c chance) Step(s sim.Step) sim.Strike {
	switch n := sim.Draw(uint64(c), "step", s.Hash()); {
	case n%40 == 0:
		return sim.Strike{Crash: true, Restart: 200 * ms}
	case n%10 == 1:
		return sim.Strike{Stall: time.Duration(n % 1e9)}
	}
	return sim.Strike{}
}

func (c chance) Message(m *sim.Message) sim.Passage {
	n := sim.Draw(uint64(c), "message", m.Hash())
	p := sim.Passage{Drop: n%10 == 0, Delay: time.Duration(n % 1e8)}
	if n%7 == 0 {
		p.Copies = []time.Duration{time.Duration(n % 1e9)}
	}
	return p
}

// stormHash plays a stormy world with each journal and returns the traces' hashes.
func stormHash(t testing.TB, seed int) (hash [2]uint64) {
	for j := range hash {
		arena := sim.Journal(j).NewArena()
		defer arena.Close()
		w, _ := transferWorld(t, chance(seed), arena, "A", "B", "C", "D")
		defer w.Close()
		hash[j] = w.Trace().Hash()
	}
	return hash
}

// Trap 12: one hash wherever and however often the world is played.
func TestOneHashUnderAnyGOMAXPROCS(t *testing.T) {
	want := stormHash(t, 1)
	require.NotEqual(t, want, stormHash(t, 2))
	for _, n := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(n)
		got := stormHash(t, 1)
		runtime.GOMAXPROCS(before)
		require.Equal(t, want, got, "GOMAXPROCS=%d", n)
	}
}

func TestOneHashBesideOtherWorlds(t *testing.T) {
	want := make([][2]uint64, 4)
	for seed := range want {
		want[seed] = stormHash(t, seed)
	}
	var g sync.WaitGroup
	for range 4 {
		g.Go(func() {
			for seed := range want {
				if got := stormHash(t, seed); got != want[seed] {
					t.Errorf("seed %d: hash %x, alone %x", seed, got, want[seed])
				}
			}
		})
	}
	g.Wait()
}

func TestOneHashInAnotherProcess(t *testing.T) {
	const ask = "TILLSTORM_SIM_PRINT_HASH"
	if os.Getenv(ask) != "" {
		fmt.Printf("hash=%x\n", stormHash(t, 1))
		return
	}
	child := osexec.Command(must(os.Executable()), "-test.run=^TestOneHashInAnotherProcess$")
	child.Env = append(os.Environ(), ask+"=1", "GOMAXPROCS=1", "TZ=Asia/Shanghai")
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	got, _, _ := strings.Cut(string(out), "\n")
	require.Equal(t, fmt.Sprintf("hash=%x", stormHash(t, 1)), got)
}
