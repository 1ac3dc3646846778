package channel

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/signature"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// ledgerPause is how long a notifier waits when the ledger fails it.
const ledgerPause = time.Second

// The states of a notification. ACKED and GIVEN_UP are final.
const (
	statePending = "PENDING"
	stateAcked   = "ACKED"
	stateGivenUp = "GIVEN_UP"
)

// notice is the body of a notification.
type notice struct {
	OrderNo     string `json:"orderNo"`
	OutTradeNo  string `json:"outTradeNo"`
	Channel     string `json:"channel"`
	MerchantID  string `json:"merchantId"`
	ChannelTxn  string `json:"channelTxn"`
	AmountCents int64  `json:"amountCents"`
	Currency    string `json:"currency"`
}

// notification is one that is pending.
type notification struct {
	channelTxn, notifyURL, body, traceID string
	unacked                              int           // sends that brought no ack
	wait                                 time.Duration // until the next send, by the ledger's clock; negative when it is late
}

const insertNotification = `-- name: InsertNotification
INSERT INTO notifications (channel_txn, notify_url, body, trace_id, state, next_at_ms)
VALUES (?1, ?2, ?3, ?4, ?5, db_now_ms() + ?6)`

func (c *Channel) insertNotification(ctx context.Context, tx *sql.Tx, t trade, traceID string) error {
	body, err := json.Marshal(notice{
		OrderNo: t.OrderNo, OutTradeNo: t.OutTradeNo, Channel: c.cfg.Name, MerchantID: t.MerchantID,
		ChannelTxn: t.channelTxn, AmountCents: t.AmountCents, Currency: t.Currency,
	})
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, insertNotification, t.channelTxn, t.NotifyURL, string(body), traceID,
		statePending, c.cfg.Personality.FirstNotify.Milliseconds())
	if err != nil {
		return fmt.Errorf("insert notification of %s: %w", t.channelTxn, err)
	}
	return nil
}

// startNotifier starts the one task that brings a charge to the merchant's notice.
func (c *Channel) startNotifier(channelTxn string) {
	c.env.Loops.Go("notify("+channelTxn+")", func(ctx context.Context) {
		for c.notifyOnce(ctx, channelTxn) {
		}
	})
}

const listPending = `-- name: ListPendingNotifications
SELECT channel_txn FROM notifications
WHERE state = 'PENDING'
ORDER BY next_at_ms, channel_txn`

// resumeNotifications starts a notifier for whatever is pending. A charge that is made meanwhile may get two; the
// merchant must bear that anyway.
func (c *Channel) resumeNotifications(ctx context.Context) {
	for {
		pending, err := c.listPending(ctx)
		if err == nil {
			for _, channelTxn := range pending {
				c.startNotifier(channelTxn)
			}
			return
		}
		if !c.pause(ctx, "list pending notifications", err) {
			return
		}
	}
}

func (c *Channel) listPending(ctx context.Context) ([]string, error) {
	rows, err := c.env.DB.QueryContext(ctx, listPending)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var pending []string
	for rows.Next() {
		var channelTxn string
		if err := rows.Scan(&channelTxn); err != nil {
			return nil, err
		}
		pending = append(pending, channelTxn)
	}
	return pending, rows.Err()
}

// notifyOnce waits for a notification's time, sends it, and writes down what came of it. It reports whether to go on.
// Between sending and writing down the emulator may die; then the merchant hears of the charge again.
func (c *Channel) notifyOnce(ctx context.Context, channelTxn string) bool {
	n, found, err := c.readPending(ctx, channelTxn)
	if err != nil {
		return c.pause(ctx, "read notification "+channelTxn, err)
	}
	if !found || c.env.Clock.Sleep(ctx, max(0, n.wait)) != nil {
		return false
	}
	ackErr := c.send(ctx, n)
	if ackErr != nil {
		c.env.Log.WarnContext(ctx, "no ack", "channel", c.cfg.Name, "channelTxn", channelTxn, "trace", n.traceID, "error", ackErr)
	}
	if err := c.settleSend(ctx, n, ackErr == nil); err != nil {
		return c.pause(ctx, "write down notification "+channelTxn, err)
	}
	return true
}

const readPendingNotification = `-- name: ReadPendingNotification
SELECT channel_txn, notify_url, body, trace_id, unacked, next_at_ms - db_now_ms()
FROM notifications WHERE channel_txn = ?1 AND state = 'PENDING'`

func (c *Channel) readPending(ctx context.Context, channelTxn string) (notification, bool, error) {
	var n notification
	var waitMs int64
	err := c.env.DB.QueryRowContext(ctx, readPendingNotification, channelTxn).
		Scan(&n.channelTxn, &n.notifyURL, &n.body, &n.traceID, &n.unacked, &waitMs)
	if errors.Is(err, sql.ErrNoRows) {
		return n, false, nil
	}
	n.wait = time.Duration(waitMs) * time.Millisecond
	return n, err == nil, err
}

// send posts a notification, signed now; nil means that it was acknowledged in time.
func (c *Channel) send(ctx context.Context, n notification) error {
	ctx, cancel := c.env.Clock.WithTimeout(ctx, c.cfg.Personality.AckTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, n.notifyURL, bytes.NewReader([]byte(n.body)))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set(traceHeader, n.traceID)
	r.Header.Set(signature.Header, signature.Sign(c.cfg.SigningKey, []byte(n.body), c.env.Clock.Now()))
	reply, err := c.env.HTTP.Do(r)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	body, err := httpjson.ReadBody(reply.Body)
	if err != nil {
		return err
	}
	if !c.cfg.Personality.acked(reply.StatusCode, body) {
		return fmt.Errorf("status %d is no ack", reply.StatusCode)
	}
	return nil
}

// The count of missing acks in the condition lets two notifiers of one charge agree on how many there were.
const updateNotification = `-- name: SettleNotification
UPDATE notifications SET state = ?3, unacked = ?4, next_at_ms = db_now_ms() + ?5
WHERE channel_txn = ?1 AND state = 'PENDING' AND unacked = ?2`

func (c *Channel) settleSend(ctx context.Context, n notification, acked bool) error {
	state, unacked, wait := stateAcked, n.unacked, time.Duration(0)
	if !acked {
		unacked++
		var again bool
		state = statePending
		if wait, again = c.cfg.Personality.resendAfter(unacked); !again {
			state = stateGivenUp
		}
	}
	_, err := sqldb.Changed(ctx, c.env.DB, updateNotification, n.channelTxn, n.unacked, state, unacked, wait.Milliseconds())
	return err
}

// pause waits out a failing ledger; false when there is nothing left to wait for.
func (c *Channel) pause(ctx context.Context, doing string, err error) bool {
	c.env.Log.ErrorContext(ctx, "ledger failed", "channel", c.cfg.Name, "doing", doing, "error", err)
	return c.env.Clock.Sleep(ctx, ledgerPause) == nil
}
