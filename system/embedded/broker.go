package embedded

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/tillstorm/tillstorm/system"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

const (
	// claimFor is how long a handler may take before its message is delivered to somebody else.
	claimFor = 30 * time.Second
	// retryFirst is the wait after a handler's first error; it doubles with every delivery, up to retryMax.
	retryFirst = time.Second
	retryMax   = 5 * time.Minute
)

// Broker is a system.Broker.
type Broker struct{ env Env }

// NewBroker makes a broker over a migrated database.
func NewBroker(env Env) (*Broker, error) {
	if err := env.validate(); err != nil {
		return nil, fmt.Errorf("new broker: %w", err)
	}
	return &Broker{env: env}, nil
}

const insertMessage = `-- name: PublishMessage
INSERT INTO messages (topic, key, body, due_ms) VALUES (?1, ?2, ?3, db_now_ms() + ?4)`

// Publish keeps a message until it has been handled.
func (b *Broker) Publish(ctx context.Context, topic, key string, body []byte, delay time.Duration) error {
	if body == nil {
		body = []byte{}
	}
	if _, err := b.env.DB.ExecContext(ctx, insertMessage, topic, key, body, delay.Milliseconds()); err != nil {
		return fmt.Errorf("publish on %s: %w", topic, err)
	}
	return nil
}

// Subscribe looks for due messages of the topic from now on.
func (b *Broker) Subscribe(topic string, handle func(ctx context.Context, m system.Message) error) {
	b.env.Loops.Every("broker-"+topic, pollEvery, func(ctx context.Context) {
		if err := b.deliverDue(ctx, topic, handle); err != nil {
			b.env.Log.ErrorContext(ctx, "delivery broke off", "topic", topic, "error", err)
		}
	})
}

// delivery is a message that is due, as it was read.
type delivery struct {
	id, dueMs, deliveries int64
	message               system.Message
}

func (b *Broker) deliverDue(ctx context.Context, topic string, handle func(context.Context, system.Message) error) error {
	due, err := b.listDue(ctx, topic)
	if err != nil {
		return err
	}
	for _, d := range due {
		if err := b.deliver(ctx, d, handle); err != nil {
			return err
		}
	}
	return nil
}

const listDueMessages = `-- name: ListDueMessages
SELECT message_id, key, body, due_ms, deliveries FROM messages
WHERE topic = ?1 AND due_ms <= (SELECT db_now_ms())
ORDER BY due_ms, message_id LIMIT ?2`

func (b *Broker) listDue(ctx context.Context, topic string) ([]delivery, error) {
	rows, err := b.env.DB.QueryContext(ctx, listDueMessages, topic, pollBatch)
	if err != nil {
		return nil, fmt.Errorf("list due messages: %w", err)
	}
	defer rows.Close()
	var due []delivery
	for rows.Next() {
		d := delivery{message: system.Message{Topic: topic}}
		if err := rows.Scan(&d.id, &d.message.Key, &d.message.Body, &d.dueMs, &d.deliveries); err != nil {
			return nil, fmt.Errorf("read due message: %w", err)
		}
		d.message.ID = strconv.FormatInt(d.id, 10)
		due = append(due, d)
	}
	return due, rows.Err()
}

// The due time in the condition is the claim: of several instances that have read the message only one moves it on, and
// who has lost it to another deletes nothing.
const (
	claimMessage = `-- name: ClaimMessage
UPDATE messages SET due_ms = db_now_ms() + ?3, deliveries = deliveries + 1
WHERE message_id = ?1 AND due_ms = ?2 AND due_ms <= db_now_ms()`

	postponeMessage = `-- name: PostponeMessage
UPDATE messages SET due_ms = db_now_ms() + ?3
WHERE message_id = ?1 AND deliveries = ?2`

	deleteMessage = `-- name: DeleteMessage
DELETE FROM messages WHERE message_id = ?1`
)

// deliver claims one message and hands it over. An error of the handler is no error here: the message comes again.
func (b *Broker) deliver(ctx context.Context, d delivery, handle func(context.Context, system.Message) error) error {
	claimed, err := sqldb.Changed(ctx, b.env.DB, claimMessage, d.id, d.dueMs, claimFor.Milliseconds())
	if err != nil {
		return fmt.Errorf("claim message %d: %w", d.id, err)
	}
	if !claimed {
		return nil
	}
	if err := handle(ctx, d.message); err != nil {
		b.env.Log.WarnContext(ctx, "message not handled", "topic", d.message.Topic, "key", d.message.Key, "error", err)
		_, err = sqldb.Changed(ctx, b.env.DB, postponeMessage, d.id, d.deliveries+1, retryAfter(d.deliveries).Milliseconds())
		return err
	}
	if _, err := sqldb.Changed(ctx, b.env.DB, deleteMessage, d.id); err != nil {
		return fmt.Errorf("delete message %d: %w", d.id, err)
	}
	return nil
}

// retryAfter is the wait before the next delivery, given how many there were before the one that failed.
func retryAfter(deliveries int64) time.Duration {
	const doublings = 10 // more would pass retryMax anyway
	return min(retryFirst<<min(deliveries, doublings), retryMax)
}
