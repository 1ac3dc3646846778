package httpjson_test

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

type money struct {
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
}

type wish struct {
	OrderNo string `json:"orderNo"`
	money
	Faults []struct {
		Times int `json:"times"`
	} `json:"faults"`
	Silent bool   `json:"silent"`
	Cents  *int64 `json:"cents"`
}

// Every message names the field as the caller writes it, and says what it must be.
func TestWhatIsWrongIsNamed(t *testing.T) {
	const whole = "a whole number of at most 9223372036854775807"
	for _, c := range []struct{ body, code, message string }{
		{`{"amountCents":"9900"}`, "body_invalid", "amountCents must be " + whole + ", not a string"},
		{`{"amountCents":99.5}`, "body_invalid", "amountCents must be " + whole + ", not 99.5"},
		{`{"amountCents":9223372036854775808}`, "body_invalid", "amountCents must be " + whole + ", not 9223372036854775808"},
		{`{"amountCents":1` + strings.Repeat("0", 1000) + `}`, "body_invalid", "amountCents must be " + whole + ", not 1" + strings.Repeat("0", 39)},
		{`{"amountCents":[1]}`, "body_invalid", "amountCents must be " + whole + ", not an array"},
		{`{"cents":{}}`, "body_invalid", "cents must be " + whole + ", not an object"},
		{`{"orderNo":7}`, "body_invalid", "orderNo must be a string, not a number"},
		{`{"currency":true}`, "body_invalid", "currency must be a string, not a boolean"},
		{`{"silent":"yes"}`, "body_invalid", "silent must be true or false, not a string"},
		{`{"faults":{}}`, "body_invalid", "faults must be an array, not an object"},
		{`{"faults":[1]}`, "body_invalid", "faults must be an object, not a number"},
		{`{"faults":[{"times":"2"}]}`, "body_invalid", "faults.times must be " + whole + ", not a string"},
		{`{"amountCent":1}`, "field_unknown", `there is no field "amountCent"; there are: orderNo, amountCents, currency, faults, silent, cents`},
		{`{"AMOUNTCENTS":1}`, "field_unknown", `there is no field "AMOUNTCENTS"`},
		{`{"money":{"amountCents":1}}`, "field_unknown", `there is no field "money"`},
		{`{"amountCents":1,"amountCents":2}`, "body_invalid", "amountCents is given twice"},
		{``, "body_invalid", "the body is empty; it must be a JSON object"},
		{` `, "body_invalid", "the body is empty; it must be a JSON object"},
		{`[]`, "body_invalid", "the body must be a JSON object"},
		{`{"orderNo":"A1"`, "body_invalid", "see its byte 15: unexpected end of JSON input"},
		{`{"orderNo":"A1"} {}`, "body_invalid", "see its byte 18: invalid character '{' after top-level value"},
		{`{"orderNo":'A1'}`, "body_invalid", "see its byte 12: invalid character '\\'' looking for beginning of value"},
	} {
		var value wish
		err := httpjson.ReadStrict(httptest.NewRequest("POST", "/", strings.NewReader(c.body)), &value)
		var refusal *httpjson.Error
		require.ErrorAs(t, err, &refusal, "%.80s", c.body)
		require.Equal(t, c.code, refusal.Code, "%.80s", c.body)
		require.Contains(t, refusal.Message, c.message)
		require.Equal(t, 400, refusal.Status)
	}
	var value wish
	body := `{"orderNo":"A1","amountCents":1,"currency":"CNY","faults":[{"times":2}],"silent":true,"cents":null}`
	require.NoError(t, httpjson.ReadStrict(httptest.NewRequest("POST", "/", strings.NewReader(body)), &value))
	require.Equal(t, int64(1), value.AmountCents)
}
