package httpjson_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system/httpjson"
)

func newRouter() *httpjson.Router {
	router := httpjson.NewRouter()
	fine := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { httpjson.Write(w, 200, r.PathValue("no")) })
	router.Handle("POST /orders", "create", fine)
	router.Handle("GET /orders?after&limit", "list", fine)
	router.Handle("GET /orders/{no}", "read", fine)
	return router
}

func TestRouterRefusesInJSON(t *testing.T) {
	for _, c := range []struct {
		method, target string
		status         int
		code, message  string
		allow          string
	}{
		{"POST", "/orders", 200, "", "", ""},
		{"GET", "/orders?limit=1&after=A1", 200, "", "", ""},
		{"HEAD", "/orders/A1", 200, "", "", ""},
		{"GET", "/nowhere", 404, "route_unknown", "there is no GET /nowhere; GET / ", ""},
		{"GET", "/orders/", 404, "route_unknown", "there is no GET /orders/;", ""},
		{"GET", "/orders/A1/more", 404, "route_unknown", "", ""},
		{"PUT", "/orders", 405, "method_not_allowed", "/orders takes GET or POST, not PUT", "GET, POST"},
		{"DELETE", "/orders/A1", 405, "method_not_allowed", "/orders/A1 takes GET, not DELETE", "GET"},
		{"OPTIONS", "/orders/A1", 405, "method_not_allowed", "", "GET"},
		{"POST", "/", 405, "method_not_allowed", "", "GET"},
		{"GET", "/orders?limt=1", 400, "parameter_unknown", `GET /orders has no parameter "limt"; it has: after, limit`, ""},
		{"POST", "/orders?dry-run", 400, "parameter_unknown", `POST /orders has no parameter "dry-run"; it has: none`, ""},
		{"GET", "/orders?limit=%zz", 400, "query_invalid", `the query can't be read: invalid URL escape "%zz"`, ""},
		{"GET", "/?x=1", 400, "parameter_unknown", `GET / has no parameter "x"`, ""},
	} {
		w := httptest.NewRecorder()
		newRouter().ServeHTTP(w, httptest.NewRequest(c.method, c.target, nil))
		require.Equal(t, c.status, w.Code, "%s %s", c.method, c.target)
		require.Equal(t, "application/json", w.Header().Get("Content-Type"))
		require.Equal(t, c.allow, w.Header().Get("Allow"), "%s %s", c.method, c.target)
		if c.code == "" {
			continue
		}
		var body httpjson.ErrorBody
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, c.code, body.Error.Code)
		require.Contains(t, body.Error.Message, c.message)
	}
}

func TestRouterListsItsRoutes(t *testing.T) {
	w := httptest.NewRecorder()
	newRouter().ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	require.JSONEq(t, `{"routes":[
		{"method":"GET","path":"/","does":"these routes, in JSON"},
		{"method":"POST","path":"/orders","does":"create"},
		{"method":"GET","path":"/orders","query":["after","limit"],"does":"list"},
		{"method":"GET","path":"/orders/{no}","does":"read"}]}`, w.Body.String())
	require.Equal(t, "GET /orders?after&limit", newRouter().Routes()[2].String())
}
