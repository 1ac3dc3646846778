package system

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

// The headers of idempotency keys. Keys of different callers never meet; who names no caller is DefaultCaller.
const (
	KeyHeader      = "Idempotency-Key"
	CallerHeader   = "X-Caller"
	ReplayedHeader = "Idempotency-Replayed" // "true" on an answer that was given before
	DefaultCaller  = "anonymous"
)

const (
	maxIdempotencyKey = 255
	maxCaller         = 64
)

// keyHeldFor is how long a request may work under its key before another one like it may take the work over: longer
// than any request that is alive takes, so that it means a crash. If the first is alive after all, only one of the two
// answers counts.
const keyHeldFor = 30 * time.Second

// The states of a key.
const (
	keyRunning = "RUNNING"
	keyDone    = "DONE"
)

// keyedRequest is a request under its key.
type keyedRequest struct {
	caller, operation, key string
	fingerprint            string // of everything that the request says
	owner                  string // this run of it
}

// keyRow is what the database says of a key.
type keyRow struct {
	fingerprint, effectID, state, owner string
	status                              int
	answer                              string
}

type effectKey struct{}

// effectID names what the current request makes. Under an idempotency key it is the same every time that the request
// is run, so what carries it in a unique column is made once; without a key it is new.
func (s *Shop) effectID(ctx context.Context) string {
	if id, ok := ctx.Value(effectKey{}).(string); ok {
		return id
	}
	return s.env.NewID()
}

// idempotent honours the Idempotency-Key of a POST: one key with one request has one effect and one answer. Another
// request under the key is a 422 idempotency_key_reused, the same one while the first is at work a 409
// idempotency_in_flight.
//
// Key and effect are not one transaction, since there are calls between the effect's parts. Instead handle must bear
// being run again: the key is claimed before it runs, the answer is kept before it is given, and after a crash between
// the two the next request under the key runs handle again, with the same effectID.
//
// Not kept are answers that would be the same anyhow and come before any effect (400, 401, 403, 413), and those that
// say that the work isn't finished (202, 5xx): the next request takes it up where it stands.
func (s *Shop) idempotent(operation string, handle func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		if len(r.Header.Values(KeyHeader)) == 0 {
			return handle(w, r)
		}
		request, err := s.readKeyed(operation, r)
		if err != nil {
			return err
		}
		row, err := s.claimKey(r.Context(), request)
		if err != nil {
			return err
		}
		switch {
		case row.fingerprint != request.fingerprint:
			return httpjson.Errorf(http.StatusUnprocessableEntity, "idempotency_key_reused", "the key was used for another request")
		case row.state == keyDone:
			replay(w, row)
			return nil
		case row.owner != request.owner:
			return errInFlight
		}
		return s.runKeyed(w, r, request, row.effectID, handle)
	}
}

var errInFlight = httpjson.Errorf(http.StatusConflict, "idempotency_in_flight", "a request with this key is at work; try again")

// readKeyed reads the key and what belongs to it, and puts the body back for the handler.
func (s *Shop) readKeyed(operation string, r *http.Request) (keyedRequest, error) {
	request := keyedRequest{caller: DefaultCaller, operation: operation, key: r.Header.Get(KeyHeader), owner: s.env.NewID()}
	if !isIdempotencyKey(request.key) || len(r.Header.Values(KeyHeader)) > 1 {
		return request, httpjson.Errorf(http.StatusBadRequest, "idempotency_key_invalid",
			"%s must be one value of 1 to %d printable characters", KeyHeader, maxIdempotencyKey)
	}
	if caller := r.Header.Get(CallerHeader); caller != "" {
		if err := checkName(CallerHeader, "caller_invalid", caller, maxCaller); err != nil {
			return request, err
		}
		request.caller = caller
	}
	body, err := httpjson.ReadBody(r.Body)
	if err != nil {
		return request, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	// The path too: it names the order in operations on one. It has no line break, so the two can't be mixed up.
	sum := sha256.Sum256([]byte(r.URL.EscapedPath() + "\n" + string(body)))
	request.fingerprint = hex.EncodeToString(sum[:])
	return request, nil
}

func isIdempotencyKey(key string) bool {
	for _, c := range []byte(key) {
		if c < '!' || c > '~' {
			return false
		}
	}
	return 1 <= len(key) && len(key) <= maxIdempotencyKey
}

// A key that is new, or that nobody works under any more, becomes ours; the unique key lets one of several through.
const claimKey = `-- name: ClaimIdempotencyKey
INSERT INTO idempotency_keys (caller, operation, key, fingerprint, effect_id, state, owner, until_ms, created_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?5, db_now_ms() + ?7, db_now_ms())
ON CONFLICT (caller, operation, key) DO UPDATE SET owner = excluded.owner, until_ms = excluded.until_ms
WHERE state = excluded.state AND fingerprint = excluded.fingerprint AND until_ms <= db_now_ms()`

// claimKey takes the key if it can be taken, and returns its row as it stands then.
func (s *Shop) claimKey(ctx context.Context, request keyedRequest) (keyRow, error) {
	_, err := sqldb.Changed(ctx, s.env.DB, claimKey, request.caller, request.operation, request.key,
		request.fingerprint, request.owner, keyRunning, keyHeldFor.Milliseconds())
	if err != nil {
		return keyRow{}, fmt.Errorf("claim idempotency key: %w", err)
	}
	return s.readKey(ctx, request)
}

const readKey = `-- name: ReadIdempotencyKey
SELECT fingerprint, effect_id, state, owner, status, answer
FROM idempotency_keys WHERE caller = ?1 AND operation = ?2 AND key = ?3`

func (s *Shop) readKey(ctx context.Context, request keyedRequest) (keyRow, error) {
	var row keyRow
	err := s.env.DB.QueryRowContext(ctx, readKey, request.caller, request.operation, request.key).
		Scan(&row.fingerprint, &row.effectID, &row.state, &row.owner, &row.status, &row.answer)
	switch {
	case errors.Is(err, sql.ErrNoRows): // its owner has just given it up; whoever comes next has it
		return row, errInFlight
	case err != nil:
		return row, fmt.Errorf("read idempotency key: %w", err)
	}
	return row, nil
}

// runKeyed runs the handler under the claimed key. Its answer is held back until it is kept.
func (s *Shop) runKeyed(w http.ResponseWriter, r *http.Request, request keyedRequest, effectID string,
	handle func(http.ResponseWriter, *http.Request) error) error {
	ctx := r.Context()
	held := &heldAnswer{header: http.Header{}, status: http.StatusOK}
	err := handle(held, r.WithContext(context.WithValue(ctx, effectKey{}, effectID)))
	var refusal *httpjson.Error
	if errors.As(err, &refusal) {
		httpjson.WriteError(held, err)
	} else if err != nil {
		held.status = http.StatusInternalServerError
	}
	switch {
	case held.changedNothing():
		s.endClaim(ctx, dropKey, request)
	case held.unfinished():
		s.endClaim(ctx, freeKey, request)
	default:
		kept, keepErr := s.keepAnswer(ctx, request, held)
		if keepErr != nil {
			return keepErr
		}
		if !kept {
			return s.answerOfOther(ctx, w, request)
		}
	}
	if err != nil {
		return err
	}
	held.writeTo(w)
	return nil
}

const keepAnswer = `-- name: KeepIdempotentAnswer
UPDATE idempotency_keys SET state = ?5, status = ?6, answer = ?7
WHERE caller = ?1 AND operation = ?2 AND key = ?3 AND owner = ?4 AND state <> ?5`

// keepAnswer makes the answer the one that counts; false when this run has lost its key to another.
func (s *Shop) keepAnswer(ctx context.Context, request keyedRequest, held *heldAnswer) (bool, error) {
	kept, err := sqldb.Changed(ctx, s.env.DB, keepAnswer, request.caller, request.operation, request.key, request.owner,
		keyDone, held.status, held.body.String())
	if err != nil {
		return false, fmt.Errorf("keep idempotent answer: %w", err)
	}
	return kept, nil
}

// answerOfOther answers for a run that took so long that another took its key over: what the other says is the answer.
func (s *Shop) answerOfOther(ctx context.Context, w http.ResponseWriter, request keyedRequest) error {
	row, err := s.readKey(ctx, request)
	if err != nil {
		return err
	}
	if row.state != keyDone {
		return errInFlight
	}
	replay(w, row)
	return nil
}

// The ways to end a claim without an answer. A freed key keeps its effect id, for the request may have had an effect;
// so a key is dropped by its first run only.
const (
	dropKey = `-- name: DropIdempotencyKey
DELETE FROM idempotency_keys
WHERE caller = ?1 AND operation = ?2 AND key = ?3 AND owner = ?4 AND state = ?5 AND effect_id = owner`

	freeKey = `-- name: FreeIdempotencyKey
UPDATE idempotency_keys SET until_ms = 0
WHERE caller = ?1 AND operation = ?2 AND key = ?3 AND owner = ?4 AND state = ?5`
)

// endClaim lets the next request have the key at once. If it fails, the claim ends by itself a little later.
func (s *Shop) endClaim(ctx context.Context, query string, request keyedRequest) {
	_, err := sqldb.Changed(ctx, s.env.DB, query, request.caller, request.operation, request.key, request.owner, keyRunning)
	if err != nil {
		s.log(ctx).Warn("idempotency key not freed", "operation", request.operation, "error", err)
	}
}

func replay(w http.ResponseWriter, row keyRow) {
	w.Header().Set(ReplayedHeader, "true")
	held := heldAnswer{header: http.Header{"Content-Type": {"application/json"}}, status: row.status}
	held.body.WriteString(row.answer)
	held.writeTo(w)
}

// heldAnswer is an answer that nobody has seen yet.
type heldAnswer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *heldAnswer) Header() http.Header               { return h.header }
func (h *heldAnswer) WriteHeader(status int)            { h.status = status }
func (h *heldAnswer) Write(content []byte) (int, error) { return h.body.Write(content) }

func (h *heldAnswer) changedNothing() bool {
	switch h.status {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestEntityTooLarge:
		return true
	}
	return false
}

func (h *heldAnswer) unfinished() bool {
	return h.status == http.StatusAccepted || h.status >= http.StatusInternalServerError
}

func (h *heldAnswer) writeTo(w http.ResponseWriter) {
	maps.Copy(w.Header(), h.header)
	w.WriteHeader(h.status)
	_, _ = w.Write(h.body.Bytes()) // a client that has gone away asks again
}
