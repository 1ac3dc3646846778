package channel

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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

// notification is a row of notifications.
type notification struct {
	noticeID, notifyURL, body, traceID string
	pending                            bool
	unacked                            int           // sends that brought no ack
	most                               int           // sends at all; 0: as the personality says
	wait                               time.Duration // until the next send, by the ledger's clock; negative when it is late
}

// startNotifier starts the one task that brings a fact to the merchant's notice.
func (c *Channel) startNotifier(noticeID string) {
	c.env.Loops.Go("notify("+noticeID+")", func(ctx context.Context) {
		for c.notifyOnce(ctx, noticeID) {
		}
	})
}

// startCopies starts what a channel's other servers send of a notification besides: at the same time so many as wanted,
// and later those of the personality. They wait for no ack, and the ledger doesn't remember them.
func (c *Channel) startCopies(noticeID string, waitMs int64, copies int) {
	wait := time.Duration(waitMs) * time.Millisecond
	waits := slices.Repeat([]time.Duration{wait}, copies)
	for _, later := range c.cfg.Personality.Copies {
		waits = append(waits, wait+later)
	}
	for n, wait := range waits {
		c.env.Loops.Go("notify-copy("+noticeID+"#"+strconv.Itoa(n+2)+")", func(ctx context.Context) {
			if c.env.Clock.Sleep(ctx, wait) == nil {
				c.sendCopy(ctx, noticeID)
			}
		})
	}
}

// startResend sends a notification once more, at once.
func (c *Channel) startResend(noticeID string) {
	c.env.Loops.Go("notify-again("+noticeID+")", func(ctx context.Context) { c.sendCopy(ctx, noticeID) })
}

// sendCopy sends a notification once more, whatever has become of it.
func (c *Channel) sendCopy(ctx context.Context, noticeID string) {
	n, found, err := c.readNotification(ctx, noticeID)
	if err == nil && found {
		err = c.send(ctx, n)
	}
	if err != nil {
		c.env.Log.WarnContext(ctx, "no ack of a copy", "channel", c.cfg.Name, "notice", noticeID, "trace", n.traceID, "error", err)
	}
}

const listPending = `-- name: ListPendingNotifications
SELECT notice_id FROM notifications
WHERE state = 'PENDING'
ORDER BY next_at_ms, notice_id`

const listSettlingTrades = `-- name: ListSettlingTrades
SELECT out_trade_no FROM trades
WHERE state = 'NOTPAY' AND settle_at_ms > 0
ORDER BY settle_at_ms, out_trade_no`

const listSettlingRefunds = `-- name: ListSettlingRefunds
SELECT refund_no FROM refunds
WHERE state = 'PROCESSING'
ORDER BY settle_at_ms, refund_no`

// resume starts a task for whatever an earlier life, or another instance, left pending. What both do, the ledger does
// once; a notification may be sent by both, which the merchant must bear anyway.
func (c *Channel) resume(ctx context.Context) {
	c.resumeEach(ctx, listPending, c.startNotifier)
	c.resumeEach(ctx, listSettlingTrades, c.startSettling)
	c.resumeEach(ctx, listSettlingRefunds, c.startRefunding)
}

func (c *Channel) resumeEach(ctx context.Context, list string, start func(id string)) {
	for {
		ids, err := c.listIDs(ctx, list)
		if err == nil {
			for _, id := range ids {
				start(id)
			}
			return
		}
		if !c.pause(ctx, "list what is pending", err) {
			return
		}
	}
}

func (c *Channel) listIDs(ctx context.Context, query string, args ...any) ([]string, error) {
	rows, err := c.env.DB.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// notifyOnce waits for a notification's time, sends it, and writes down what came of it. It reports whether to go on.
// Between sending and writing down the emulator may die; then the merchant hears of it again.
func (c *Channel) notifyOnce(ctx context.Context, noticeID string) bool {
	n, found, err := c.readNotification(ctx, noticeID)
	if err != nil {
		return c.pause(ctx, "read notification "+noticeID, err)
	}
	if !found || !n.pending || c.env.Clock.Sleep(ctx, max(0, n.wait)) != nil {
		return false
	}
	ackErr := c.send(ctx, n)
	if ackErr != nil {
		c.env.Log.WarnContext(ctx, "no ack", "channel", c.cfg.Name, "notice", noticeID, "trace", n.traceID, "error", ackErr)
	}
	if err := c.settleSend(ctx, n, ackErr == nil); err != nil {
		return c.pause(ctx, "write down notification "+noticeID, err)
	}
	return true
}

const selectNotification = `-- name: ReadNotification
SELECT n.notice_id, n.notify_url, n.body, n.trace_id, n.state = 'PENDING', n.unacked, n.next_at_ms - db_now_ms(), coalesce(o.body, '')
FROM notifications n LEFT JOIN oddities o ON o.out_trade_no = n.out_trade_no
WHERE n.notice_id = ?1`

func (c *Channel) readNotification(ctx context.Context, noticeID string) (notification, bool, error) {
	var n notification
	var waitMs int64
	var body string
	err := c.env.DB.QueryRowContext(ctx, selectNotification, noticeID).
		Scan(&n.noticeID, &n.notifyURL, &n.body, &n.traceID, &n.pending, &n.unacked, &waitMs, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return n, false, nil
	}
	if err != nil {
		return n, false, err
	}
	o, err := c.oddityOf(body)
	n.wait, n.most = time.Duration(waitMs)*time.Millisecond, o.MostSends
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

// The count of missing acks in the condition lets two notifiers of one fact agree on how many there were.
const updateNotification = `-- name: SettleNotification
UPDATE notifications SET state = ?3, unacked = ?4, next_at_ms = db_now_ms() + ?5
WHERE notice_id = ?1 AND state = 'PENDING' AND unacked = ?2`

func (c *Channel) settleSend(ctx context.Context, n notification, acked bool) error {
	state, unacked, wait := stateAcked, n.unacked, time.Duration(0)
	if !acked {
		unacked++
		var again bool
		state = statePending
		if wait, again = c.cfg.Personality.resendAfter(unacked); !again || unacked == n.most {
			state = stateGivenUp
		}
	}
	_, err := sqldb.Changed(ctx, c.env.DB, updateNotification, n.noticeID, n.unacked, state, unacked, wait.Milliseconds())
	return err
}

// pause waits out a failing ledger; false when there is nothing left to wait for.
func (c *Channel) pause(ctx context.Context, doing string, err error) bool {
	c.env.Log.ErrorContext(ctx, "ledger failed", "channel", c.cfg.Name, "doing", doing, "error", err)
	return c.env.Clock.Sleep(ctx, ledgerPause) == nil
}
