package system

import (
	"context"
	"database/sql"
	_ "embed"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/tillstorm/tillstorm/system/httpjson"
	"github.com/tillstorm/tillstorm/system/sqldb"
)

// schemaChecks is the migration that makes the tables of alerts, idempotency keys and reconciliation.
//
//go:embed schema_checks.sql
var schemaChecks string

// alert is a thing that a person must look at. Kind and subject name it: the same thing found again is the same alert,
// however often, and by whichever instance.
type alert struct {
	kind        string // what is wrong, a stable word for programs
	subject     string // what it is wrong with: an order number, or CHANNEL/NUMBER of what a channel calls by that number
	amountCents int64  // the money at stake, 0 if there is none
	currency    string // of the amount; empty without one
	detail      string // one sentence for people
}

// The first alert stands: what it said when it was raised isn't changed by a later look.
const insertAlert = `-- name: InsertAlert
INSERT INTO alerts (kind, subject, amount_cents, currency, detail, trace_id, raised_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, db_now_ms())
ON CONFLICT (kind, subject) DO NOTHING`

// raiseAlert raises an alert unless it stands already. Within a transaction it is part of that transaction's fact.
func raiseAlert(ctx context.Context, db sqldb.Execer, a alert) error {
	_, err := raiseNew(ctx, db, a)
	return err
}

// raiseNew is raiseAlert that reports whether the alert is new.
func raiseNew(ctx context.Context, db sqldb.Execer, a alert) (bool, error) {
	isNew, err := sqldb.Changed(ctx, db, insertAlert, a.kind, a.subject, a.amountCents, a.currency, a.detail, traceID(ctx))
	if err != nil {
		return false, fmt.Errorf("raise alert %s of %s: %w", a.kind, a.subject, err)
	}
	return isNew, nil
}

// Alert is an alert as the API tells it.
type Alert struct {
	AlertID int64  `json:"alertId"`
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Money
	Detail   string `json:"detail"`
	TraceID  string `json:"traceId"`
	RaisedMs int64  `json:"raisedMs"`
}

// alertPage is a part of the alerts, oldest first. Next is where to go on: 0 when nothing has come after this page.
type alertPage struct {
	Alerts []Alert `json:"alerts"`
	Next   int64   `json:"next"`
}

const alertsPerPage = 100

// handleAlerts answers GET /alerts?after=ID with the alerts after that one, by default from the first.
func (s *Shop) handleAlerts(w http.ResponseWriter, r *http.Request) error {
	after, err := readAlertID(r.URL.Query())
	if err != nil {
		return err
	}
	page, err := s.listAlerts(r.Context(), after)
	if err != nil {
		return err
	}
	httpjson.Write(w, http.StatusOK, page)
	return nil
}

func readAlertID(query url.Values) (int64, error) {
	text := query.Get("after")
	if text == "" {
		return 0, nil
	}
	after, err := strconv.ParseInt(text, 10, 64)
	if err != nil || after < 0 {
		return 0, httpjson.Errorf(http.StatusBadRequest, "after_invalid", "after must be an alert's id")
	}
	return after, nil
}

const listAlerts = `-- name: ListAlerts
SELECT alert_id, kind, subject, amount_cents, currency, detail, trace_id, raised_ms
FROM alerts WHERE alert_id > ?1
ORDER BY alert_id LIMIT ?2`

func (s *Shop) listAlerts(ctx context.Context, after int64) (alertPage, error) {
	alerts, err := readRows(ctx, s.env.DB, func(rows *sql.Rows) (a Alert, err error) {
		err = rows.Scan(&a.AlertID, &a.Kind, &a.Subject, &a.AmountCents, &a.Currency, &a.Detail, &a.TraceID, &a.RaisedMs)
		return a, err
	}, listAlerts, after, alertsPerPage)
	if err != nil {
		return alertPage{}, fmt.Errorf("list alerts: %w", err)
	}
	page := alertPage{Alerts: alerts}
	if len(alerts) == alertsPerPage {
		page.Next = alerts[alertsPerPage-1].AlertID
	}
	return page, nil
}
