package httpjson_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/mattn/go-sqlite3"
	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

func TestRead(t *testing.T) {
	type payload struct {
		Count int64 `json:"count"`
	}
	for _, c := range []struct{ name, body, code string }{
		{"good", `{"count":3}`, ""},
		{"unknown field", `{"count":3,"more":true}`, ""},
		{"white space around", " {\"count\":3}\n", ""},
		{"empty", ``, "body_invalid"},
		{"null", `null`, "body_invalid"},
		{"array", `[1]`, "body_invalid"},
		{"cut short", `{"count":`, "body_invalid"},
		{"trailing garbage", `{"count":3}{}`, "body_invalid"},
		{"string for a number", `{"count":"3"}`, "body_invalid"},
		{"fraction", `{"count":3.5}`, "body_invalid"},
		{"overflow", `{"count":9223372036854775808}`, "body_invalid"},
		{"too large", `{"count":3}` + strings.Repeat(" ", httpjson.MaxBodyBytes), "body_too_large"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var value payload
			err := httpjson.Read(httptest.NewRequest("POST", "/", strings.NewReader(c.body)), &value)
			if c.code == "" {
				require.NoError(t, err)
				require.Equal(t, int64(3), value.Count)
				return
			}
			var refusal *httpjson.Error
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, c.code, refusal.Code)
		})
	}
}

func TestWriteErrorHidesTheInside(t *testing.T) {
	w := httptest.NewRecorder()
	httpjson.WriteError(w, errors.New("disk /secret is full"))
	body, err := io.ReadAll(w.Body)
	require.NoError(t, err)
	require.Equal(t, 500, w.Code)
	require.NotContains(t, string(body), "secret")
}

func TestAsError(t *testing.T) {
	for _, c := range []struct {
		err        error
		status     int
		code       string
		retryAfter string
	}{
		{httpjson.Errorf(409, "order_conflict", "no"), 409, "order_conflict", ""},
		{fmt.Errorf("begin create: %w", sqlite3.Error{Code: sqlite3.ErrBusy}), 503, "busy", "1"},
		{fmt.Errorf("begin create: %w", context.DeadlineExceeded), 503, "busy", "1"},
		{fmt.Errorf("begin create: %w", sqlite3.Error{Code: sqlite3.ErrFull}), 500, "internal", ""},
		{errors.New("anything"), 500, "internal", ""},
	} {
		w := httptest.NewRecorder()
		httpjson.WriteError(w, c.err)
		require.Equal(t, c.status, w.Code, "%v", c.err)
		require.Contains(t, w.Body.String(), `"code":"`+c.code+`"`)
		require.Equal(t, c.retryAfter, w.Header().Get("Retry-After"))
	}
}
