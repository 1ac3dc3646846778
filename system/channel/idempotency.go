package channel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// keyHeader names a request, so that a repeat gets the first one's answer.
const keyHeader = "Idempotency-Key"

// keyInFlight is how long a request with a key may take before a repeat of it is executed anew: the emulator may have
// died in the middle.
const keyInFlight = time.Minute

// keyed honours an Idempotency-Key where the personality does: status and body of the first execution are kept and
// replayed, a 500 included. Nothing is kept of a request that is invalid, and a repeat while the first is in flight is a
// 409. Other content under the same key is refused. An old key is forgotten, and executes anew.
func (c *Channel) keyed(next http.Handler) http.Handler {
	if c.cfg.Personality.KeyLife == 0 {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get(keyHeader)
		if key == "" {
			next.ServeHTTP(w, r)
			return
		}
		if err := c.serveKeyed(w, r, key, next); err != nil {
			c.writeError(w, r, err)
		}
	})
}

func (c *Channel) serveKeyed(w http.ResponseWriter, r *http.Request, key string, next http.Handler) error {
	body, err := httpjson.ReadBody(r.Body)
	if err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	sum := sha256.Sum256(append([]byte(r.URL.Path+"\n"), body...))
	fingerprint := hex.EncodeToString(sum[:])
	claimed, err := c.claimKey(r.Context(), key, fingerprint)
	if err != nil {
		return err
	}
	if !claimed {
		return c.replay(w, r, key, fingerprint)
	}
	answer := &recorder{header: http.Header{}}
	next.ServeHTTP(answer, r)
	if err := c.keepAnswer(r.Context(), key, answer); err != nil {
		return err
	}
	answer.send(w)
	return nil
}

const insertKey = `-- name: ClaimIdempotencyKey
INSERT INTO idempotency_keys (key, fingerprint, status, body, at_ms) VALUES (?1, ?2, 0, '', db_now_ms())
ON CONFLICT (key) DO UPDATE SET fingerprint = ?2, status = 0, body = '', at_ms = db_now_ms()
WHERE at_ms <= db_now_ms() - ?3 OR status = 0 AND fingerprint = ?2 AND at_ms <= db_now_ms() - ?4`

// claimKey reports whether the request is to be executed.
func (c *Channel) claimKey(ctx context.Context, key, fingerprint string) (bool, error) {
	claimed, err := sqldb.Changed(ctx, c.env.DB, insertKey, key, fingerprint,
		c.cfg.Personality.KeyLife.Milliseconds(), keyInFlight.Milliseconds())
	if err != nil {
		return false, fmt.Errorf("claim idempotency key: %w", err)
	}
	return claimed, nil
}

const selectKey = `-- name: ReadIdempotencyKey
SELECT fingerprint, status, body FROM idempotency_keys WHERE key = ?1`

func (c *Channel) replay(w http.ResponseWriter, r *http.Request, key, fingerprint string) error {
	answer := &recorder{header: http.Header{}}
	var known, body string
	err := c.env.DB.QueryRowContext(r.Context(), selectKey, key).Scan(&known, &answer.status, &body)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		answer.status = 0 // the first has just ended as invalid
	case err != nil:
		return fmt.Errorf("read idempotency key: %w", err)
	case known != fingerprint:
		return httpjson.Errorf(http.StatusBadRequest, "IDEMPOTENCY_ERROR", "the key was used for another request")
	}
	if answer.status == 0 {
		return httpjson.Errorf(http.StatusConflict, "IDEMPOTENCY_IN_FLIGHT", "the first request with this key is in flight")
	}
	answer.body.WriteString(body)
	answer.header.Set("Content-Type", "application/json")
	answer.header.Set("Idempotent-Replayed", "true")
	answer.send(w)
	return nil
}

const (
	updateKey = `-- name: KeepIdempotentAnswer
UPDATE idempotency_keys SET status = ?2, body = ?3 WHERE key = ?1 AND status = 0`

	deleteKey = `-- name: ForgetIdempotencyKey
DELETE FROM idempotency_keys WHERE key = ?1 AND status = 0`
)

func (c *Channel) keepAnswer(ctx context.Context, key string, answer *recorder) error {
	var err error
	if answer.status == http.StatusBadRequest {
		_, err = sqldb.Changed(ctx, c.env.DB, deleteKey, key)
	} else {
		_, err = sqldb.Changed(ctx, c.env.DB, updateKey, key, answer.status, answer.body.String())
	}
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// recorder holds an answer until it is stored.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *recorder) Header() http.Header                  { return a.header }
func (a *recorder) WriteHeader(status int)               { a.status = status }
func (a *recorder) Write(text []byte) (n int, err error) { return a.body.Write(text) }

func (a *recorder) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body.Bytes()) // a client that has gone away asks again
}
