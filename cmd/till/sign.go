package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/system/signature"
)

// callback is what till sign signs when it isn't given a body.
type callback struct {
	OrderNo     string `json:"orderNo"`
	Channel     string `json:"channel"`
	ChannelTxn  string `json:"channelTxn"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency,omitempty"`
}

func newSign() *cobra.Command {
	var c callback
	var key, body, url string
	var headerOnly bool
	cmd := &cobra.Command{
		Use:   "sign",
		Short: "Print a signed callback to paste",
		Long: `sign plays the payment channel: it prints the curl command that tells the service
that an order was paid. The signature is fresh for five minutes.

  till sign                                         # pays A1 with 99.00
  till sign --order A2 --txn T2 --amount 500
  till sign --body '{"orderNo":"A1",...}'           # whatever you like, signed
  till sign --body - --header-only < callback.json  # only the X-Signature value`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := signedBody(cmd.InOrStdin(), body, c)
			if err != nil {
				return err
			}
			header := signature.Sign([]byte(key), []byte(text), time.Now())
			if headerOnly {
				_, err = fmt.Fprintln(cmd.OutOrStdout(), header)
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "curl -X POST %s/callback/pay -H %s -d %s\n",
				strings.TrimSuffix(url, "/"), quoted(signature.Header+": "+header), quoted(text))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.OrderNo, "order", "A1", "order number")
	flags.StringVar(&c.Channel, "channel", "mock", "channel that took the money")
	flags.StringVar(&c.ChannelTxn, "txn", "T1", "the channel's number of the charge")
	flags.Int64Var(&c.AmountCents, "amount", 9900, "amount in cents")
	flags.StringVar(&c.Currency, "currency", "", "currency (default: the service's)")
	flags.StringVar(&body, "body", "", "sign these bytes instead; - reads standard input")
	flags.StringVar(&url, "url", "http://localhost:8080", "where the service is")
	flags.BoolVar(&headerOnly, "header-only", false, "print only the signature")
	registerKey(flags, &key)
	return cmd
}

// signedBody is the body that was given, or the callback. What a shell would cut off at the end isn't signed.
func signedBody(in io.Reader, body string, c callback) (string, error) {
	switch body {
	case "":
		text, err := json.Marshal(c)
		return string(text), err
	case "-":
		text, err := io.ReadAll(in)
		return strings.TrimRight(string(text), "\n"), err
	}
	return body, nil
}

// quoted is text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
