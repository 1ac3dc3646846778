package httpjson

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Route is one thing that a service can be asked for.
type Route struct {
	Method string   `json:"method"`
	Path   string   `json:"path"`
	Query  []string `json:"query,omitempty"` // the parameters that it reads
	Does   string   `json:"does"`
}

// String is the route as Handle takes it.
func (r Route) String() string {
	if len(r.Query) == 0 {
		return r.Method + " " + r.Path
	}
	return r.Method + " " + r.Path + "?" + strings.Join(r.Query, "&")
}

// Router serves routes, and refuses what fits none of them in the same shape as everything else: an unknown path is a
// 404 route_unknown, another method of a known one a 405 method_not_allowed with the header Allow, a query that the
// route doesn't read a 400 parameter_unknown or query_invalid. GET / lists the routes.
type Router struct {
	mux    *http.ServeMux
	routes []Route
}

// NewRouter makes a router that knows GET / only.
func NewRouter() *Router {
	router := &Router{mux: http.NewServeMux()}
	router.mux.HandleFunc("/", router.refuse)
	router.Handle("GET /", "these routes, in JSON", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteRoutes(w, router.routes)
	}))
	return router
}

// WriteRoutes answers with a list of routes.
func WriteRoutes(w http.ResponseWriter, routes []Route) {
	Write(w, http.StatusOK, map[string][]Route{"routes": routes})
}

// Handle adds a route, like "GET /orders?after&limit". does says in a few words what it is good for.
func (m *Router) Handle(route, does string, handler http.Handler) {
	pattern, query, _ := strings.Cut(route, "?")
	method, path, _ := strings.Cut(pattern, " ")
	added := Route{Method: method, Path: path, Does: does}
	if query != "" {
		added.Query = strings.Split(query, "&")
	}
	m.routes = append(m.routes, added)
	if path == "/" {
		pattern += "{$}" // and not everything below it
	}
	m.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if err := added.checkQuery(r.URL.RawQuery); err != nil {
			WriteError(w, err)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// Routes lists the routes, GET / first.
func (m *Router) Routes() []Route { return m.routes }

func (m *Router) ServeHTTP(w http.ResponseWriter, r *http.Request) { m.mux.ServeHTTP(w, r) }

// checkQuery refuses a query that would not be read as it was meant.
func (r Route) checkQuery(raw string) error {
	if raw == "" {
		return nil
	}
	query, err := url.ParseQuery(raw)
	if err != nil {
		return Errorf(http.StatusBadRequest, "query_invalid", "the query can't be read: %v", err)
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(r.Query, name) {
			known := "none"
			if len(r.Query) > 0 {
				known = strings.Join(r.Query, ", ")
			}
			return Errorf(http.StatusBadRequest, "parameter_unknown", "%s %s has no parameter %.40q; it has: %s", r.Method, r.Path, name, known)
		}
	}
	return nil
}

// refuse answers for what no route fits.
func (m *Router) refuse(w http.ResponseWriter, r *http.Request) {
	if methods := m.methodsOf(r); len(methods) > 0 {
		w.Header().Set("Allow", strings.Join(methods, ", "))
		WriteError(w, Errorf(http.StatusMethodNotAllowed, "method_not_allowed",
			"%.80s takes %s, not %.20s", r.URL.Path, strings.Join(methods, " or "), r.Method))
		return
	}
	WriteError(w, Errorf(http.StatusNotFound, "route_unknown",
		"there is no %.20s %.80s; GET / of this service lists what there is", r.Method, r.URL.Path))
}

// methodsOf are the methods that the request's path has.
func (m *Router) methodsOf(r *http.Request) []string {
	var methods []string
	for _, route := range m.routes {
		probe := &http.Request{Method: route.Method, Host: r.Host, URL: r.URL}
		if _, pattern := m.mux.Handler(probe); pattern != "/" && !slices.Contains(methods, route.Method) {
			methods = append(methods, route.Method)
		}
	}
	slices.Sort(methods)
	return methods
}
