package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tillstorm/tillstorm/system"
)

// TestMain lets the test binary be till, so that tests start real processes of the same build.
func TestMain(m *testing.M) {
	if os.Getenv("BE_TILL") != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

func command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "BE_TILL=1")
	return cmd
}

// output runs till to its end and returns what it printed, and its exit code.
func output(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errors bytes.Buffer
	cmd := command(t, args...)
	cmd.Stdout, cmd.Stderr = &out, &errors
	if err := cmd.Run(); err != nil {
		require.IsType(t, &exec.ExitError{}, err)
	}
	return out.String(), errors.String(), cmd.ProcessState.ExitCode()
}

// instance is a running till serve.
type instance struct {
	cmd   *exec.Cmd
	url   string
	began string // what it logged until it served
}

func serveOn(t *testing.T, data string, args ...string) *instance {
	t.Helper()
	cmd := command(t, append([]string{"serve", "--addr", "127.0.0.1:0", "--data", data}, args...)...)
	stderr, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	lines := bufio.NewScanner(stderr)
	var seen strings.Builder
	for lines.Scan() {
		var line struct{ Msg, Addr string }
		seen.WriteString(lines.Text() + "\n")
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			go func() { _, _ = io.Copy(io.Discard, stderr) }()
			return &instance{cmd: cmd, url: "http://" + line.Addr, began: seen.String()}
		}
	}
	require.Fail(t, "till serve ended", seen.String())
	return nil
}

// end sends a signal and returns the exit code; -1 for a process that was killed.
func (i *instance) end(signal syscall.Signal) int {
	_ = i.cmd.Process.Signal(signal)
	_ = i.cmd.Wait()
	return i.cmd.ProcessState.ExitCode()
}

// shell runs a line of the docs against the instance, and returns the answer's body and status.
func (i *instance) shell(t *testing.T, line string) string {
	t.Helper()
	line = strings.ReplaceAll(line, "localhost:8080", strings.TrimPrefix(i.url, "http://"))
	out, err := exec.Command("sh", "-c", line+" --silent --write-out ' %{http_code}'").Output()
	require.NoError(t, err, line)
	return string(out)
}

var client = &http.Client{Timeout: 30 * time.Second} // the machine may be busy

func post(url, body string, header ...string) (int, string, error) {
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for n := 0; n < len(header); n += 2 {
		r.Header.Set(header[n], header[n+1])
	}
	return do(r)
}

func get(url string) (int, string, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	return do(r)
}

func do(r *http.Request) (int, string, error) {
	reply, err := client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return reply.StatusCode, string(text), err
}

// The two lines of the design, word for word, with the signature that "till sign" prints; and the whole line that it
// prints, ten times: ten equal answers, one payment.
func TestTheCurlFlowOfTheDesign(t *testing.T) {
	t.Parallel()
	shop := serveOn(t, t.TempDir())
	shell := func(line string) string { return shop.shell(t, line) }
	const callback = `{"orderNo":"A1","channel":"mock","channelTxn":"T1","amountCents":9900}`
	created := shell(`curl -X POST localhost:8080/orders -d '{"orderNo":"A1","amountCents":9900}'`)
	require.Contains(t, created, `"status":"CREATED"`)
	require.True(t, strings.HasSuffix(created, " 201"), created)
	for _, header := range []string{"", ` -H 'X-Signature: ...'`} {
		refused := shell(`curl -X POST localhost:8080/callback/pay` + header + ` -d '` + callback + `'`)
		require.True(t, strings.HasSuffix(refused, " 401"), refused)
	}

	const paid = `{"orderNo":"A1","status":"PAID","result":"success"}` + "\n 200"
	signed, _, code := output(t, "sign", "--body", callback, "--header-only")
	require.Zero(t, code)
	require.Equal(t, paid, shell(`curl -X POST localhost:8080/callback/pay -H 'X-Signature: `+strings.TrimSpace(signed)+`' -d '`+callback+`'`))
	printed, _, code := output(t, "sign", "--url", shop.url)
	require.Zero(t, code)
	require.Contains(t, printed, "-d '"+callback+"'")
	for range 10 {
		require.Equal(t, paid, shell(strings.TrimSpace(printed)))
	}

	status, body, err := get(shop.url + "/metrics")
	require.NoError(t, err)
	require.Equal(t, 200, status)
	require.Contains(t, body, "till_outbox_depth")
	require.Zero(t, shop.end(syscall.SIGTERM))
}

func TestTwoInstancesOnOneDirectory(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	one, two := serveOn(t, data), serveOn(t, data)
	_, _, err := post(one.url+"/stock-service/stock", `{"sku":"S1","quantity":1}`)
	require.NoError(t, err)
	for n, shop := range []*instance{one, two} {
		status, body, err := post(shop.url+"/orders", fmt.Sprintf(`{"orderNo":"A%d","amountCents":100,"sku":"S1","quantity":1}`, n))
		require.NoError(t, err)
		require.Equal(t, 201, status, body)
	}
	_, body, err := get(one.url + "/orders/A1")
	require.NoError(t, err)
	require.Contains(t, body, "out_of_stock")

	// The buyer pays at one instance's emulator; the other lives on, and the callback reaches it if the first dies.
	_, body, err = post(one.url+"/channel/mock/pay", `{"outTradeNo":"A0-1"}`)
	require.NoError(t, err)
	require.Contains(t, body, "SUCCESS")
	require.Eventually(t, func() bool {
		_, body, err := get(two.url + "/orders/A0")
		return err == nil && strings.Contains(body, `"PAID"`)
	}, 10*time.Second, 50*time.Millisecond)

	out, errors, code := output(t, "reconcile", "--data", data)
	require.Zero(t, code, errors)
	require.Contains(t, out, "nothing new")
	require.Zero(t, one.end(syscall.SIGINT))
	require.Zero(t, two.end(syscall.SIGTERM))
}

func TestReconcileReportsEachGapOnce(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	shop := serveOn(t, data)
	_, _, err := post(shop.url+"/orders", `{"orderNo":"A1","amountCents":9900}`)
	require.NoError(t, err)
	_, _, err = post(shop.url+"/channel/mock/pay", `{"outTradeNo":"A1-1"}`)
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, body, err := get(shop.url + "/orders/A1")
		return err == nil && strings.Contains(body, `"PAID"`)
	}, 10*time.Second, 50*time.Millisecond)
	require.Zero(t, shop.end(syscall.SIGTERM))

	db, err := openDB(t.Context(), data, "orders", system.Migrate)
	require.NoError(t, err)
	_, err = db.Exec(`DELETE FROM payment_records`) // an operator's mistake
	require.NoError(t, err)
	require.NoError(t, db.Close())

	out, errors, code := output(t, "reconcile", "--data", data)
	require.Equal(t, 1, code, errors)
	require.Contains(t, out, "record-missing mock/T-A1-1-1: ")
	out, errors, code = output(t, "reconcile", "--data", data)
	require.Zero(t, code, errors)
	require.Regexp(t, `^nothing new; earlier alerts: 1
compared: our books and the stock journal, as they are now
not yet:  mock's bill of \d{4}-\d\d-\d\d; asked for when that day is over, next at \d{4}-\d\d-\d\d 10:15 \+0800
$`, out)
}

// The days that are compared, and the one that isn't yet, are told.
func TestReconcileTellsItsDays(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	shop := serveOn(t, data)
	status, _, err := post(shop.url+"/orders", `{"orderNo":"A1","amountCents":9900}`)
	require.NoError(t, err)
	require.Equal(t, 201, status)
	require.Zero(t, shop.end(syscall.SIGTERM))
	db, err := openDB(t.Context(), data, "orders", system.Migrate)
	require.NoError(t, err)
	const threeDays = 3 * 24 * time.Hour
	_, err = db.Exec(`UPDATE payment_orders SET created_ms = created_ms - ?, state = 'CLOSED', next_query_ms = NULL`, threeDays.Milliseconds())
	require.NoError(t, err)
	require.NoError(t, db.Close())

	out, _, _ := output(t, "reconcile", "--data", data)
	shanghai := time.FixedZone("", 8*60*60)
	began := time.Now().In(shanghai).Add(-threeDays).Format(time.DateOnly)
	require.Regexp(t, `compared: mock's \d bills of `+began+` to \d{4}-\d\d-\d\d\n`, out)
	require.Regexp(t, `not yet:  mock's bill of \d{4}-\d\d-\d\d; asked for when that day is over, next at`, out)
}

// With the key that everybody knows, an address that others reach is worth a warning.
func TestDevelopmentKeyIsWarnedOf(t *testing.T) {
	t.Parallel()
	const warning = `"level":"WARN","msg":"whoever reaches this address can declare any order paid`
	for _, c := range []struct {
		args  []string
		warns bool
	}{
		{[]string{"--addr", ":0"}, true},
		{[]string{"--addr", "127.0.0.1:0"}, false},
		{[]string{"--addr", ":0", "--signing-key", "nobody knows this one"}, false},
	} {
		shop := serveOn(t, t.TempDir(), c.args...)
		require.Equal(t, c.warns, strings.Contains(shop.began, warning), "%v: %s", c.args, shop.began)
		require.Zero(t, shop.end(syscall.SIGTERM))
	}
}

func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"serv"}, `did you mean "serve"?`},
		{[]string{"serve", "--adr", ":1"}, `try "till serve --help"`},
		{[]string{"serve", "here"}, `doesn't know "here"`},
		{[]string{"serve", "--channel", "paypal"}, "mock, wechat-like, alipay-like, stripe-like"},
		{[]string{"serve", "--channel", "bank=http://bank"}, "needs --public-url (TILL_PUBLIC_URL)"},
		{[]string{"serve", "--channel", "mock,mock"}, `--channel (TILL_CHANNEL) must not have the name "mock"`},
		{[]string{"serve", "--close", "never"}, `--close (TILL_CLOSE) must be "ask-first" or "local-only", not "never"`},
		{[]string{"serve", "--close-by", "hand"}, `--close-by (TILL_CLOSE_BY) may have "scan"`},
		{[]string{"serve", "--consistency", "outbox"}, `--consistency (TILL_CONSISTENCY) needs "local-transaction"`},
		{[]string{"serve", "--merchant", ""}, "--merchant (TILL_MERCHANT) can't be empty"},
		{[]string{"serve", "--pay-window", "0s"}, "--pay-window (TILL_PAY_WINDOW) can't be empty or 0; left out, it is 15m0s"},
		{[]string{"serve", "--pay-window", "-1s"}, "--pay-window (TILL_PAY_WINDOW) must be at least 1ms, not -1s"},
		{[]string{"serve", "--scan-every", "1us"}, "--scan-every (TILL_SCAN_EVERY) must be at least 1ms, not 1µs"},
		{[]string{"serve", "--stock-url", "stock"}, "--stock-url (TILL_STOCK_URL) must be an absolute http(s) URL"},
		{[]string{"serve", "--signing-key", "short"}, "--signing-key (TILL_SIGNING_KEY) must have at least 16 bytes, it has 5"},
		{[]string{"serve", "--log-level", "loud"}, "--log-level (TILL_LOG_LEVEL) must be debug, info, warn or error"},
		{[]string{"sign", "--amount", "many"}, "--amount"},
		{[]string{"sign", "--amount", "0"}, "--amount (TILL_AMOUNT) can't be empty or 0"},
		{[]string{"sign", "--amount", "-5"}, "--amount (TILL_AMOUNT): amountCents must be 1 to 1000000000, not -5"},
		{[]string{"sign", "--order", "A 1"}, "--order (TILL_ORDER): orderNo must be 1 to 64 of [A-Za-z0-9_-]"},
		{[]string{"sign", "--out-trade-no", "A1/1"}, "--out-trade-no (TILL_OUT_TRADE_NO): outTradeNo must be"},
		{[]string{"sign", "--channel", "mock,bank"}, "--channel (TILL_CHANNEL): channel must be"},
		{[]string{"sign", "--txn", "T/1"}, "--txn (TILL_TXN): channelTxn must be"},
		{[]string{"sign", "--currency", "yuan"}, "--currency (TILL_CURRENCY): currency must be three capital letters"},
		{[]string{"sign", "--signing-key", "short"}, "--signing-key (TILL_SIGNING_KEY) must have at least 16 bytes"},
		{[]string{"sign", "--url", "localhost:8080"}, "--url (TILL_URL) must be an absolute http(s) URL"},
	} {
		_, errors, code := output(t, c.args...)
		require.Equal(t, 2, code, "%v: %s", c.args, errors)
		require.Contains(t, errors, c.want)
	}
	_, errors, code := output(t, "serve", "--addr", "nowhere:99999")
	require.Equal(t, 1, code)
	require.Contains(t, errors, "--addr (TILL_ADDR): ")
}

func TestSignWhateverIsGiven(t *testing.T) {
	t.Parallel()
	body := `{"note":"it's"}`
	header, _, code := output(t, "sign", "--body", body, "--header-only")
	require.Zero(t, code)
	require.Regexp(t, `^t=\d+,v1=[0-9a-f]{64}\n$`, header)
	printed, _, _ := output(t, "sign", "--body", body)
	require.Contains(t, printed, `'{"note":"it'\''s"}'`)
}
