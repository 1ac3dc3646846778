package sim

import "math/rand/v2"

// FNV-1a, 64 bit. It is used because it continues byte by byte: the hash of a
// step's name is the hash of its task's name, continued.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func hashString(h uint64, s string) uint64 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

// hashStrings continues h with strings that can't run into each other.
func hashStrings(h uint64, list ...string) uint64 {
	for _, s := range list {
		h = hashString(h, s)*fnvPrime + 1
	}
	return h
}

func hashUint(h, v uint64) uint64 {
	for range 8 {
		h = (h ^ (v & 0xff)) * fnvPrime
		v >>= 8
	}
	return h
}

// mix spreads every input bit over the whole word (the finalizer of SplitMix64).
func mix(h uint64) uint64 {
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}

// HashName returns the hash of a step's or a message's name, as [Step.Hash] and
// [Message.Hash] give it.
func HashName(name string) uint64 { return hashString(fnvOffset, name) }

// Draw returns 64 random bits that are a function of the seed, the stream and the
// hash of the name of what they are for, and of nothing else. A draw more or a
// draw less elsewhere changes none of the others.
func Draw(seed uint64, stream string, name uint64) uint64 {
	return mix(hashUint(hashString(fnvOffset, stream), seed) ^ mix(name))
}

// Rand returns a generator keyed like [Draw], for where a sequence is natural.
func Rand(seed uint64, stream, name string) *rand.Rand {
	return rand.New(rand.NewPCG(Draw(seed, stream, HashName(name)), Draw(seed, stream+"+", HashName(name))))
}
