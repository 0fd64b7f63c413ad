package access

import "time"

// Lockout counts wrong credentials per client (ADMIN_AUTH_FAIL_PER_MIN, seed
// 004, "Admin auth"). It is safe for concurrent use.
type Lockout struct{ failures *Limiter }

// NewLockout locks a client out after perMinute failures; 0 or less never does.
func NewLockout(perMinute int) *Lockout { return &Lockout{NewLimiter(perMinute)} }

// Check is a Refusal with CodeTooManyAuthFailures while the client is locked
// out. It comes before any credential is read, so that a lucky guess gets the
// same answer as a wrong one.
func (l *Lockout) Check(client Network, now time.Time) error {
	if ok, wait := l.failures.Peek(client, now); !ok {
		return &Refusal{Code: CodeTooManyAuthFailures, RetryAfter: wait}
	}
	return nil
}

// Failed counts one wrong credential.
func (l *Lockout) Failed(client Network, now time.Time) { l.failures.Allow(client, now) }
