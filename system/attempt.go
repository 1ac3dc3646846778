package system

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// attempt is one try to pay an order on one channel, as far as the channel must be asked about it.
type attempt struct {
	outTradeNo, orderNo, channel string
	hasToken                     bool // so the trade has been at the channel for certain
}

// An attempt with a next query is one that its channel may still take money for, whatever our state of it.
const listUnsettled = `-- name: ListUnsettledAttempts
SELECT out_trade_no, order_no, channel, prepay_token <> '' FROM payment_orders
WHERE order_no = ?1 AND next_query_ms IS NOT NULL
ORDER BY attempt`

// listUnsettled lists the attempts of an order that may still be paid.
func (s *Shop) listUnsettled(ctx context.Context, db sqldb.Querier, orderNo string) ([]attempt, error) {
	attempts, err := readRows(ctx, db, func(rows *sql.Rows) (a attempt, err error) {
		err = rows.Scan(&a.outTradeNo, &a.orderNo, &a.channel, &a.hasToken)
		return a, err
	}, listUnsettled, orderNo)
	if err != nil {
		return nil, fmt.Errorf("list attempts of order %s: %w", orderNo, err)
	}
	return attempts, nil
}

// attemptEnd is what a channel says about an attempt.
type attemptEnd string

const (
	endPaid    attemptEnd = "paid"    // the charge is recorded
	endClosed  attemptEnd = "closed"  // the channel will take no money for it
	endMissing attemptEnd = "missing" // the channel knows of no such trade, now; one that is on its way may still come
	notEnded   attemptEnd = "open"    // it can be paid
)

// errNotYet says that a channel can't tell for certain what becomes of a trade. It is to be asked again.
var errNotYet = errors.New("the channel can't tell yet")

// notYet is an answer that leaves open what becomes of the attempt, or the lack of one.
func notYet(a attempt, err error) error {
	return fmt.Errorf("trade %s: %w: %w", a.outTradeNo, errNotYet, err)
}

// endAttempt makes a channel take no more money for an attempt, unless it has already: then the charge is recorded as
// if its callback had come. Any error means that nothing is known: not paid, not closed, not yet.
func (s *Shop) endAttempt(ctx context.Context, a attempt) (attemptEnd, error) {
	end, err := s.askAttempt(ctx, a)
	if err != nil || end == endPaid || end == endClosed {
		return end, err
	}
	// Between the answer and the close the buyer may pay, and an answer may lag behind: the close has the last word.
	err = s.channel.close(ctx, a)
	switch {
	case saysPaid(err):
		return s.takePaid(ctx, a)
	case saysOver(err):
		return endClosed, nil
	case saysNoTrade(err):
		return endMissing, nil
	case err != nil:
		return "", notYet(a, err)
	case end == endMissing && !a.hasToken:
		// Some channels agree to close what they have never seen. The prepay may still be on its way to them.
		return endMissing, nil
	}
	return endClosed, nil
}

// takePaid asks for the charge of a trade that the channel wouldn't close because it is paid.
func (s *Shop) takePaid(ctx context.Context, a attempt) (attemptEnd, error) {
	end, err := s.askAttempt(ctx, a)
	if err == nil && end != endPaid {
		err = notYet(a, errors.New("it is paid, but its query lags"))
	}
	return end, err
}

// askAttempt asks a channel how an attempt stands, and records its charge if it is paid.
func (s *Shop) askAttempt(ctx context.Context, a attempt) (attemptEnd, error) {
	answer, err := s.channel.query(ctx, a)
	switch {
	case saysNoTrade(err):
		return endMissing, nil
	case err != nil:
		return "", notYet(a, err)
	case answer.ChannelTxn != "": // whatever has become of the trade since, money was taken
		return endPaid, s.settleAnswer(ctx, charge{
			OrderNo: a.orderNo, OutTradeNo: a.outTradeNo, Channel: a.channel, ChannelTxn: answer.ChannelTxn, Money: answer.Money,
		})
	case answer.State == "CLOSED":
		return endClosed, nil
	case answer.State == "SUCCESS" || answer.State == "REFUND":
		return "", notYet(a, fmt.Errorf("it is %s without a transaction", answer.State))
	}
	return notEnded, nil
}

// settleAnswer settles a charge that a channel's answer tells of. A refusal is about the channel, and must not become our
// own answer to whoever has made us ask: until a person has looked at it, nothing is known.
func (s *Shop) settleAnswer(ctx context.Context, c charge) error {
	_, err := s.settleCharge(ctx, c, "query")
	var refusal *httpjson.Error
	if errors.As(err, &refusal) {
		return fmt.Errorf("charge %s of trade %s: %w: %s", c.ChannelTxn, c.OutTradeNo, errNotYet, refusal)
	}
	return err
}

// A paid attempt stays paid, and a closed one may still become it.
const (
	closeAttempt = `-- name: CloseAttempt
UPDATE payment_orders SET state = 'CLOSED'
WHERE out_trade_no = ?1 AND state = 'OPEN'`

	settleAttempt = `-- name: SettleAttempt
UPDATE payment_orders SET state = CASE state WHEN 'OPEN' THEN 'CLOSED' ELSE state END, next_query_ms = NULL
WHERE out_trade_no = ?1 AND next_query_ms IS NOT NULL`

	markAttemptPaid = `-- name: MarkAttemptPaid
UPDATE payment_orders SET state = 'PAID', next_query_ms = NULL
WHERE out_trade_no = ?1 AND state <> 'PAID'`
)

// writeEnd writes down that an attempt has come to this end. One that is missing at the channel is closed for us, and
// watched further.
func writeEnd(ctx context.Context, db sqldb.Execer, a attempt, end attemptEnd) error {
	query := closeAttempt
	if end == endClosed {
		query = settleAttempt
	}
	if _, err := sqldb.Changed(ctx, db, query, a.outTradeNo); err != nil {
		return fmt.Errorf("write down that attempt %s is %s: %w", a.outTradeNo, end, err)
	}
	return nil
}

const readAttempt = `-- name: ReadUnsettledAttempt
SELECT out_trade_no, order_no, channel, prepay_token <> '' FROM payment_orders
WHERE out_trade_no = ?1 AND next_query_ms IS NOT NULL`

// endLeftover ends an attempt of an order that was paid otherwise. What the channel doesn't know of is left to the
// pending query.
func (s *Shop) endLeftover(ctx context.Context, outTradeNo string) error {
	var a attempt
	err := s.env.DB.QueryRowContext(ctx, readAttempt, outTradeNo).Scan(&a.outTradeNo, &a.orderNo, &a.channel, &a.hasToken)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read attempt %s: %w", outTradeNo, err)
	}
	end, err := s.endAttempt(ctx, a)
	if err != nil || end == endPaid {
		return err
	}
	return writeEnd(ctx, s.env.DB, a, end)
}
