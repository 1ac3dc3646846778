package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/signature"
)

// callback is what till sign signs when it isn't given a body.
type callback struct {
	OrderNo     string `json:"orderNo"`
	OutTradeNo  string `json:"outTradeNo,omitempty"`
	Channel     string `json:"channel"`
	ChannelTxn  string `json:"channelTxn"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency,omitempty"`
}

func newSign() *cobra.Command {
	var c callback
	var key, body, address string
	var headerOnly bool
	cmd := &cobra.Command{
		Use:   "sign",
		Short: "Print a signed callback to paste",
		Long: `sign plays the payment channel: it prints the curl command that tells the service
that an order was paid. The signature is fresh for five minutes.

  till sign                                         # pays A1 with 99.00
  till sign --order A2 --txn T2 --amount 500
  till sign --body '{"orderNo":"A1",...}'           # whatever you like, signed
  till sign --body - --header-only < callback.json  # only the X-Signature value

The service believes it, but the channel's emulator has taken no money: it will refuse
to refund the order, and the daily comparison will miss the charge on its bill. To pay
for real, let the emulator send the callback: POST /channel/mock/pay.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkSign(key, address); err != nil {
				return err
			}
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
				strings.TrimSuffix(address, "/"), quoted(signature.Header+": "+header), quoted(text))
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&c.OrderNo, "order", "A1", "order number")
	flags.StringVar(&c.OutTradeNo, "out-trade-no", "", "number of the attempt (default: the order's latest on the channel)")
	flags.StringVar(&c.Channel, "channel", "mock", "channel that took the money")
	flags.StringVar(&c.ChannelTxn, "txn", "T1", "the channel's number of the charge")
	flags.Int64Var(&c.AmountCents, "amount", 9900, "amount in cents")
	flags.StringVar(&c.Currency, "currency", "", "currency (default: the service's)")
	flags.StringVar(&body, "body", "", "sign these bytes instead; - reads standard input")
	flags.StringVar(&address, "url", "http://localhost:8080", "where the service is")
	flags.BoolVar(&headerOnly, "header-only", false, "print only the signature")
	registerKey(flags, &key)
	return cmd
}

func checkSign(key, address string) error {
	if len(key) < system.MinSigningKey {
		return usageError{fmt.Errorf("%s must have at least %d bytes, it has %d", named("signing-key"), system.MinSigningKey, len(key))}
	}
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return usageError{fmt.Errorf("%s must be an absolute http(s) URL, not %q", named("url"), address)}
	}
	return nil
}

// signedBody is the body that was given, whatever it says, or the callback, if a service could take it. What a shell
// would cut off at the end isn't signed.
func signedBody(in io.Reader, body string, c callback) (string, error) {
	switch body {
	case "":
		text, err := json.Marshal(c)
		if err != nil {
			return "", err
		}
		return string(text), checkCallback(text)
	case "-":
		text, err := io.ReadAll(in)
		return strings.TrimRight(string(text), "\n"), err
	}
	return body, nil
}

// checkCallback refuses what every service would, by the name of the flag that says it.
func checkCallback(text []byte) error {
	err := system.CheckPayNotice(text)
	if err == nil {
		return nil
	}
	refusal := httpjson.AsError(err)
	flag := map[string]string{
		"order_no_invalid": "order", "out_trade_no_invalid": "out-trade-no", "channel_invalid": "channel",
		"channel_txn_invalid": "txn", "amount_invalid": "amount", "currency_invalid": "currency",
	}[refusal.Code]
	return usageError{fmt.Errorf("%s: %s", named(flag), refusal.Message)}
}

// quoted is text as one word of a shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
