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
	cmd *exec.Cmd
	url string
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
			return &instance{cmd: cmd, url: "http://" + line.Addr}
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
	shell := func(line string) string {
		line = strings.ReplaceAll(line, "localhost:8080", strings.TrimPrefix(shop.url, "http://"))
		out, err := exec.Command("sh", "-c", line+" --silent --write-out ' %{http_code}'").Output()
		require.NoError(t, err, line)
		return string(out)
	}
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
	require.Equal(t, "nothing new; earlier alerts: 1\n", out)
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
		{[]string{"serve", "--channel", "bank=http://bank"}, "needs --public-url"},
		{[]string{"serve", "--close", "never"}, "ask-first"},
		{[]string{"serve", "--signing-key", "short"}, "at least 16 bytes"},
		{[]string{"serve", "--log-level", "loud"}, "debug, info, warn or error"},
		{[]string{"sign", "--amount", "many"}, "--amount"},
	} {
		_, errors, code := output(t, c.args...)
		require.Equal(t, 2, code, "%v: %s", c.args, errors)
		require.Contains(t, errors, c.want)
	}
	_, errors, code := output(t, "serve", "--addr", "nowhere:99999")
	require.Equal(t, 1, code)
	require.Contains(t, errors, "--addr nowhere:99999")
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
