// Package access says who may do what: which client an HTTP request comes from,
// how much that client may ask for, and whose credential it carries. It knows
// requests and values, and nothing of routes or responses; what it refuses is a
// Refusal with a stable code.
package access

import "time"

// Codes of refusals (seed 004 and contract.md). They are part of the HTTP
// contract and never change.
const (
	// CodeUnauthorized: no credential, or one that is not (any more) good.
	CodeUnauthorized = "unauthorized"
	// CodeTooManyAuthFailures: the address is locked out; nothing it sent was read.
	CodeTooManyAuthFailures = "too_many_auth_failures"
	// CodeCredentialInQuery: the only credential was in the URL, where none is ever accepted.
	CodeCredentialInQuery = "credential_in_query"
	// CodeCSRFRequired: a change on the strength of the console cookie alone, without X-QM-CSRF.
	CodeCSRFRequired = "csrf_required"
	// CodeInsufficientRole: a good credential whose role does not reach.
	CodeInsufficientRole = "insufficient_role"
	// CodeInvalidSSETicket: a stream ticket that is spent, too old, or none of ours.
	CodeInvalidSSETicket = "invalid_sse_ticket"
	// CodeStorage: what is needed cannot be read or written down at the moment.
	CodeStorage = "storage_unavailable"
	// CodeOTPRequired: the operator has a second factor, so their key alone is not enough.
	CodeOTPRequired = "otp_required"
	// CodeInvalidOTP: a one-time code that is wrong, too old, or used already.
	CodeInvalidOTP = "invalid_otp"
)

// Refusal is the answer no, for a reason that the caller may know.
type Refusal struct {
	// Code is one of the Code constants.
	Code string
	// RetryAfter, where it is not 0, is when asking again can succeed.
	RetryAfter time.Duration
}

func (r *Refusal) Error() string { return "access refused: " + r.Code }

func refuse(code string) error { return &Refusal{Code: code} }
