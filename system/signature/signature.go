// Package signature signs and verifies what a payment channel posts to a shop.
//
// The header reads `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`. The time is part of what is signed, so a
// captured callback can't be made fresh again, and the body is signed byte for byte, before anybody parses it.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Header is the HTTP header that carries the signature.
const Header = "X-Signature"

// Error says why a signature was refused: a stable code for programs, and a message for people. The message of an
// ErrInvalid tells nothing that would help to make a better one.
type Error struct{ Code, Message string }

// The reasons to refuse a signature.
var (
	ErrMissing   = &Error{"signature_missing", "there is no " + Header + " header; it reads " + form}
	ErrMalformed = &Error{"signature_malformed", Header + " must read " + form}
	ErrInvalid   = &Error{"signature_invalid", Header + " is not ours: it was made with another key, or for another body or time"}
	// ErrStale is the kind of a signature that once was good; the message of each says how far off its time is.
	ErrStale = &Error{"signature_stale", Header + " is too old, or too far in the future"}
)

const form = "t=SECONDS,v1=HMAC: Unix seconds, and the hex HMAC-SHA256 of SECONDS.BODY"

func (e *Error) Error() string { return e.Message }

// Is makes all errors of one code the same to errors.Is.
func (e *Error) Is(target error) bool {
	other, ok := target.(*Error)
	return ok && other.Code == e.Code
}

// Sign returns the header's value for body, signed at the given time (whole seconds).
func Sign(key, body []byte, at time.Time) string {
	seconds := strconv.FormatInt(at.Unix(), 10)
	return "t=" + seconds + ",v1=" + hex.EncodeToString(sum(key, seconds, body))
}

// Verify checks the header's value against body. The signature may lie at most maxAge before or after now; authenticity
// is judged before freshness, so that ErrStale always means a signature that once was good.
func Verify(key, body []byte, header string, now time.Time, maxAge time.Duration) error {
	if header == "" {
		return ErrMissing
	}
	seconds, mac, ok := parse(header)
	if !ok {
		return ErrMalformed
	}
	if !hmac.Equal(mac, sum(key, seconds, body)) {
		return ErrInvalid
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return ErrMalformed
	}
	if age := now.Sub(time.Unix(unix, 0)); age > maxAge || age < -maxAge {
		return stale(age, maxAge)
	}
	return nil
}

// stale is the ErrStale of a signature that was made so long ago.
func stale(age, maxAge time.Duration) error {
	off := "ago"
	if age < 0 {
		off = "ahead of the clock here"
	}
	message := fmt.Sprintf("%s is good, but its time is %v %s; at most %v is taken", Header, age.Abs().Round(time.Second), off, maxAge)
	return &Error{ErrStale.Code, message}
}

func parse(header string) (seconds string, mac []byte, ok bool) {
	first, second, found := strings.Cut(header, ",")
	seconds, hasTime := strings.CutPrefix(first, "t=")
	digits, hasMAC := strings.CutPrefix(second, "v1=")
	mac, err := hex.DecodeString(digits)
	return seconds, mac, found && hasTime && hasMAC && err == nil
}

func sum(key []byte, seconds string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(seconds))
	mac.Write([]byte{'.'})
	mac.Write(body)
	return mac.Sum(nil)
}
