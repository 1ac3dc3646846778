package system

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

// maxAmountCents bounds one order, at ten million yuan: far above any honest one, far below what sums could overflow.
const maxAmountCents = 1_000_000_000

const defaultCurrency = "CNY"

// Money is an amount in the currency's minor unit. Two Money values are equal when amount and currency are.
type Money struct {
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
}

// checked fills in the default currency and refuses what nobody can pay: 400 amount_invalid, 400 currency_invalid.
func (m Money) checked() (Money, error) {
	setDefault(&m.Currency, defaultCurrency)
	switch {
	case m.AmountCents == 0:
		return m, httpjson.Errorf(http.StatusBadRequest, "amount_invalid", "amountCents is missing or 0; it must be 1 to %d", maxAmountCents)
	case m.AmountCents < 1 || m.AmountCents > maxAmountCents:
		return m, httpjson.Errorf(http.StatusBadRequest, "amount_invalid", "amountCents must be 1 to %d, not %d", maxAmountCents, m.AmountCents)
	case !isCurrency(m.Currency):
		return m, httpjson.Errorf(http.StatusBadRequest, "currency_invalid", "currency must be three capital letters like %s, not %.16q", defaultCurrency, m.Currency)
	}
	return m, nil
}

func isCurrency(code string) bool {
	for _, c := range []byte(code) {
		if c < 'A' || c > 'Z' {
			return false
		}
	}
	return len(code) == 3
}

// difference is a field that has one value in what is known, and another in a request that should say the same.
type difference struct {
	field       string
	has, wanted any
}

// differences are the fields that do differ, in words: amountCents is 9900, not 1; currency is "CNY", not "USD".
func differences(fields ...difference) string {
	var words []string
	for _, f := range fields {
		if f.has != f.wanted {
			words = append(words, fmt.Sprintf("%s is %#v, not %#v", f.field, f.has, f.wanted))
		}
	}
	return strings.Join(words, "; ")
}

func (m Money) differences(wanted Money) []difference {
	return []difference{{"amountCents", m.AmountCents, wanted.AmountCents}, {"currency", m.Currency, wanted.Currency}}
}
