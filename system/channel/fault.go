package channel

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"
	"slices"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// Fault is how a few of the merchant's requests about one trade go wrong.
type Fault struct {
	Path  string `json:"path"`  // /prepay, /query, /close or /refund
	Kind  string `json:"kind"`  // one of the kinds below
	Times int    `json:"times"` // how many requests it spoils
}

// The kinds of faults.
const (
	FaultError = "error" // nothing is done: 500 SYSTEM_ERROR
	FaultLimit = "limit" // nothing is done: 429 FREQUENCY_LIMITED
	FaultLost  = "lost"  // it is done, and yet the answer is 500 SYSTEM_ERROR
)

func (f Fault) check() error {
	switch {
	case !slices.Contains([]string{"/prepay", "/query", "/close", "/refund"}, f.Path):
		return paramError("faults: path must be /prepay, /query, /close or /refund")
	case !slices.Contains([]string{FaultError, FaultLimit, FaultLost}, f.Kind):
		return paramError("faults: kind must be error, limit or lost")
	case f.Times < 1:
		return paramError("faults: times must be positive")
	}
	return nil
}

// faulty spends the faults of the trade that a request is about.
func (c *Channel) faulty(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, err := c.takeFault(r)
		switch {
		case err != nil:
			c.writeError(w, r, err)
		case kind == FaultError:
			c.writeError(w, r, refuse(codeSystemError, "call again, with the same number"))
		case kind == FaultLimit:
			c.writeError(w, r, frequencyLimited("call again later, with the same number"))
		case kind == FaultLost:
			next.ServeHTTP(&recorder{header: http.Header{}}, r)
			c.writeError(w, r, refuse(codeSystemError, "call again, with the same number"))
		default:
			next.ServeHTTP(w, r)
		}
	})
}

func frequencyLimited(format string, args ...any) error {
	return httpjson.Errorf(http.StatusTooManyRequests, "FREQUENCY_LIMITED", format, args...)
}

// takeFault returns the kind of the fault that spoils the request, or nothing.
func (c *Channel) takeFault(r *http.Request) (string, error) {
	body, err := httpjson.ReadBody(r.Body)
	if err != nil {
		return "", err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var about tradeRequest
	if json.Unmarshal(body, &about) != nil || about.OutTradeNo == "" {
		return "", nil // the handler says what is wrong with it
	}
	o, err := c.readOddity(r.Context(), c.env.DB, about.OutTradeNo)
	if err != nil || o.faultAt(r.URL.Path) < 0 {
		return "", err
	}
	var kind string
	err = c.inTx(r.Context(), func(tx *sql.Tx) error {
		o, err := c.readOddity(r.Context(), tx, about.OutTradeNo)
		if at := o.faultAt(r.URL.Path); err == nil && at >= 0 {
			kind = o.Faults[at].Kind
			o.Faults = slices.Clone(o.Faults)
			o.Faults[at].Times--
			err = setOddity(r.Context(), tx, about.OutTradeNo, o)
		}
		return err
	})
	return kind, err
}

// faultAt is the place of the first fault on the path that isn't spent; -1 if there is none.
func (o Oddity) faultAt(path string) int {
	return slices.IndexFunc(o.Faults, func(f Fault) bool { return f.Path == path && f.Times > 0 })
}
