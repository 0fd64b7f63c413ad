package notify

import (
	"context"
	"errors"
)

// AlertRule is what an alert watches.
type AlertRule struct {
	ID    string
	Title string
	Limit int64  // in Unit; what is beyond it is wrong
	Unit  string // "seconds", "days", "events", "per minute"; "" where there is nothing to count
}

// Alerts is what HTTP needs of alerts, beside what the organisation's stream says of them.
type Alerts interface {
	// Rules lists what is watched.
	Rules() []AlertRule
	// Sentence says what is wrong and what to do about it. room is its name as people know it, or "".
	Sentence(rule, subject, room string, value, limit int64) string
	// Webhook is the host that messages go to, Mails how many addresses they are mailed to.
	Webhook() (host string)
	Mails() int
	// Test sends a test page: ErrNoAlerts, ErrWebhook. mailed is false where no mail goes out, or the server did not take it.
	Test(ctx context.Context) (mailed bool, err error)
}

// Errors of Alerts.
var (
	ErrNoAlerts = errors.New("notify: there is no ALERT_WEBHOOK_URL")
	ErrWebhook  = errors.New("notify: the webhook does not take it")
)
