// Package signature signs and verifies what a payment channel posts to a shop.
//
// The header reads `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<body>">`. The time is part of what is signed, so a
// captured callback can't be made fresh again, and the body is signed byte for byte, before anybody parses it.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Header is the HTTP header that carries the signature.
const Header = "X-Signature"

// Error says why a signature was refused. Its text is a stable error code.
type Error string

// The reasons to refuse a signature.
const (
	ErrMissing   Error = "signature_missing"   // no header at all
	ErrMalformed Error = "signature_malformed" // not of the form t=...,v1=...
	ErrInvalid   Error = "signature_invalid"   // made with another key, or for another body or time
	ErrStale     Error = "signature_stale"     // authentic, but too old or too far in the future
)

func (e Error) Error() string { return string(e) }

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
		return ErrStale
	}
	return nil
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
