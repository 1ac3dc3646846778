package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/channel"
	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/inventory"
)

// Where the services inside are served.
const (
	channelPath = "/channel/" // and the channel's name
	stockPath   = "/stock-service"
)

// routesHelp is all that a till serves with everything inside, as lines of text.
func routesHelp() string {
	var text strings.Builder
	for _, route := range slices.Concat(
		system.Routes(), below(channelPath+"{channel}", channel.Routes()), below(stockPath, inventory.Routes()),
	) {
		_, rest, _ := strings.Cut(route.String(), " ")
		fmt.Fprintf(&text, "  %-4s %-38s %s\n", route.Method, rest, route.Does)
	}
	return text.String()
}

// below are the routes of a service that is served under a path.
func below(path string, routes []httpjson.Route) []httpjson.Route {
	moved := slices.Clone(routes)
	for n := range moved {
		moved[n].Path = path + moved[n].Path
	}
	return moved
}
