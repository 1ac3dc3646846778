package system

import (
	"net/http"

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
	if m.AmountCents < 1 || m.AmountCents > maxAmountCents {
		return m, httpjson.Errorf(http.StatusBadRequest, "amount_invalid", "amountCents must be 1 to %d", maxAmountCents)
	}
	if !isCurrency(m.Currency) {
		return m, httpjson.Errorf(http.StatusBadRequest, "currency_invalid", "currency must be three capital letters")
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
