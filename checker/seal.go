package checker

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tillstorm/tillstorm/sim"
)

// sealHeader is the header in which a callback is signed: t=SECONDS,v1=HMAC, of
// SECONDS.BODY. It is read here once more on purpose: whoever checks signatures is judged.
const sealHeader = "X-Signature"

// seal is what true callbacks are signed with, and for whom.
type seal struct {
	merchant string
	key      []byte
}

// SealedFor declares for whom true callbacks are, and the key that they are signed with.
func (e *Evidence) SealedFor(merchant string, key []byte) { e.seal = seal{merchant, key} }

// sealTold tells what is wrong with the signature of a callback that its channel did not
// send, by what channels have signed so far.
func (e *Evidence) sealTold(m *sim.Message, at time.Duration) string {
	header := m.Header.Get(sealHeader)
	seconds, mac, _ := strings.Cut(strings.TrimPrefix(header, "t="), ",v1=")
	signed, err := strconv.ParseInt(seconds, 10, 64)
	original := e.sealedWith(header)
	switch {
	case header == "":
		return "it is not signed"
	case err != nil:
		return "its signature is none"
	case original != nil && bytes.Equal(original.Body, m.Body):
		age := e.trace.Start.Add(at).Sub(time.Unix(signed, 0)).Round(time.Second)
		return fmt.Sprintf("it is a copy of the channel's own, signed %v ago", age)
	case original != nil:
		return "it was altered after it was signed, " + alterations(original.Body, m.Body)
	case mac != e.seal.of(seconds, m.Body):
		return "it is signed with another key than the channel's"
	}
	return "it is signed with the channel's key, which somebody else must have"
}

// sealedWith returns the callback of a channel's that has a signature, nil if none has.
func (e *Evidence) sealedWith(header string) (original *sim.Message) {
	for _, m := range e.requests { // order-free: one signature is of one body
		if isCallback(m) && m.From == parse(m).Channel && m.Header.Get(sealHeader) == header {
			original = m
		}
	}
	return original
}

func (s seal) of(seconds string, body []byte) string {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(seconds + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// alterations tells which fields of a body differ, with their old and new values.
func alterations(before, now []byte) string {
	was, is := valuesOf(before), valuesOf(now)
	var told []string
	for _, field := range slices.Sorted(maps.Keys(was)) {
		if old, now := valueOf(was[field]), valueOf(is[field]); old != now {
			told = append(told, field+" from "+old+" to "+now)
		}
	}
	return strings.Join(told, ", ")
}
