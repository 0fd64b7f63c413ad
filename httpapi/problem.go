package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"qm/access"
	"qm/access/org"
	"qm/access/token"
	"qm/engine"
	"qm/engine/room"
	"qm/notify"
	"qm/projection"
)

// Problem is an answer that refuses. On the wire it is {error, code} and, where one field is to blame, field
// (seed 004, "Every visitor error is {error, code}; branch on code").
type Problem struct {
	Code   string
	Field  string // the field that is to blame, "" for none
	Detail string // in place of the code's title, "" for the title
	After  int    // Retry-After in seconds where the code's own does not fit; 0: the code's own
	Allow  string // Allow header of a 405
	Work   string // the stamp that a proof of work is asked about, "" for none (package access/token)
}

func (p *Problem) Error() string {
	if p.Field != "" {
		return p.Code + " (" + p.Field + ")"
	}
	return p.Code
}

// refuse makes the problem of a code.
func refuse(code string) *Problem { return &Problem{Code: code} }

// refuseField makes the problem of a code that blames a field.
func refuseField(code, field, detail string) *Problem {
	return &Problem{Code: code, Field: field, Detail: detail}
}

// Verdict is what a code means: its HTTP status, a sentence, and after how many seconds the same request may do better
// (0: never, as it stands).
type Verdict struct {
	Status int
	Title  string
	Retry  int
}

// Codes is every code that this server answers, in one table: responses and documentation are made from it
// (architecture.md, Errors).
var Codes = map[string]Verdict{
	// The request itself.
	"method_not_allowed":  {http.StatusMethodNotAllowed, "This address does not take that method.", 0},
	"not_found":           {http.StatusNotFound, "There is nothing at this address.", 0},
	"invalid_json":        {http.StatusBadRequest, "The body is not one JSON object.", 0},
	"body_too_large":      {http.StatusRequestEntityTooLarge, "The body is too large.", 0},
	"body_timeout":        {http.StatusRequestTimeout, "The body did not come in time.", 1},
	"body_incomplete":     {http.StatusBadRequest, "The body ended early.", 0},
	"unknown_field":       {http.StatusBadRequest, "There is no such field.", 0},
	"duplicate_field":     {http.StatusBadRequest, "A field is given twice.", 0},
	"invalid_field":       {http.StatusBadRequest, "A field has a wrong type.", 0},
	"duplicate_parameter": {http.StatusBadRequest, "A query parameter is given more than once.", 0},
	"invalid_parameter":   {http.StatusBadRequest, "A query parameter is not what it should be.", 0},
	"invalid_query":       {http.StatusBadRequest, "The query string cannot be read.", 0},
	"internal_error":      {http.StatusInternalServerError, "Something went wrong on our side.", 5},

	// Visitors.
	"rate_limited":            {http.StatusTooManyRequests, "Too many requests from this address.", 1},
	"invalid_room_id":         {http.StatusBadRequest, "A room id has 3 to 64 of a-z, 0-9 and -, and neither starts nor ends with -.", 0},
	"invalid_token_field":     {http.StatusBadRequest, "The token is not a string.", 0},
	"invalid_token":           {http.StatusUnauthorized, "This is no token of a place here.", 0},
	"room_not_found":          {http.StatusNotFound, "There is no such room.", 0},
	"blocked_by_protection":   {http.StatusForbidden, "The room's protection refuses this visitor.", 0},
	"queue_identity_limit":    {http.StatusTooManyRequests, "There are too many places in line from this address.", 30},
	"prequeue_identity_limit": {http.StatusTooManyRequests, "There are too many entries from this address.", 30},
	"prequeue_full":           {http.StatusServiceUnavailable, "The pre-queue is full.", 10},
	"room_idle":               {http.StatusConflict, "The room is closed and takes nobody.", 0},
	"room_full":               {http.StatusServiceUnavailable, "The room has run out of ticket numbers.", 60},
	"sse_capacity":            {http.StatusServiceUnavailable, "This server has as many streams as it can serve.", 5},
	"sse_per_ip_limit":        {http.StatusTooManyRequests, "There are too many streams from this address.", 5},
	"over_capacity":           {http.StatusServiceUnavailable, "This server has as many connections as it can serve.", 5},
	"notifications_disabled":  {http.StatusBadRequest, "This server sends no mails.", 0},
	"invalid_email":           {http.StatusBadRequest, "This is no e-mail address.", 0},
	"stale_ticket":            {http.StatusConflict, "The token names a place that is none any more.", 0},
	"not_your_place":          {http.StatusForbidden, "Only the browser that holds the place may do that.", 0},
	"turn_has_come":           {http.StatusConflict, "It is the visitor's turn already: there is nothing left to tell.", 0},
	"notify_change_limit":     {http.StatusTooManyRequests, "The address of this place was changed too often.", 3600},
	"notify_address_limit":    {http.StatusTooManyRequests, "This address was given for too many places within the hour.", 3600},
	"invalid_ip":              {http.StatusBadRequest, "ip takes one address.", 0},

	// Installing.
	"verify_failed": {http.StatusFailedDependency, "Something about this installation does not work: see checks.", 0},

	// A proxy that asks about a visitor's request, and what that visitor is told in its name.
	"invalid_forward":   {http.StatusBadRequest, "The proxy does not say which request it asks about: X-Forwarded-Method, -Proto, -Host and -Uri, each once.", 0},
	"forward_untrusted": {http.StatusForbidden, "Forwarded headers are believed with the Public API key, or from TRUSTED_PROXIES.", 0},
	"queued":            {http.StatusTooManyRequests, "It is not this visitor's turn yet.", 5},
	"queue_unavailable": {http.StatusServiceUnavailable, "The queue does not answer at the moment. Please try again.", 5},

	// Storage and ownership. Nothing here takes a place away.
	"storage_unavailable": {http.StatusServiceUnavailable, "This cannot be written down at the moment. Please try again.", 2},
	"busy":                {http.StatusServiceUnavailable, "The room has too many requests waiting.", 1},
	"not_owner":           {http.StatusServiceUnavailable, "Another process is taking care of this room.", 2},
	"room_damaged":        {http.StatusServiceUnavailable, "The room's journal is damaged. It stays shut until an operator mends it.", 30},
	"shutting_down":       {http.StatusServiceUnavailable, "This server is stopping.", 2},

	// Credentials.
	"unauthorized":           {http.StatusUnauthorized, "This needs a valid credential.", 0},
	"credential_in_query":    {http.StatusUnauthorized, "A credential is never taken from a URL: it would end up in logs.", 0},
	"too_many_auth_failures": {http.StatusTooManyRequests, "Too many wrong credentials from this address.", 60},
	"insufficient_role":      {http.StatusForbidden, "This credential may not do that.", 0},
	"invalid_sse_ticket":     {http.StatusUnauthorized, "The stream's ticket is spent, too old or none of ours.", 0},
	"otp_required":           {http.StatusUnauthorized, "This operator has a second factor: sign in with a one-time code. The key alone is not enough.", 0},
	"invalid_otp":            {http.StatusUnauthorized, "The one-time code is wrong, too old, or was used already.", 0},
	"csrf_required":          {http.StatusForbidden, "A request with the console's cookie must carry X-QM-CSRF: 1.", 0},

	// The organisation.
	"operator_not_found":     {http.StatusNotFound, "There is no such operator.", 0},
	"link_not_found":         {http.StatusNotFound, "There is no such share link.", 0},
	"cannot_revoke_self":     {http.StatusConflict, "Nobody revokes the key that they came with. Ask another owner.", 0},
	"too_many_operators":     {http.StatusConflict, "There are as many operators as there can be.", 0},
	"otp_already_on":         {http.StatusConflict, "There is a second factor already. Remove it first.", 0},
	"otp_not_on":             {http.StatusConflict, "There is no second factor to confirm or remove.", 0},
	"otp_not_available":      {http.StatusConflict, "Only an operator with a key of their own can have a second factor.", 0},
	"invalid_otp_field":      {http.StatusBadRequest, "otp is a string of six digits.", 0},
	"invalid_role":           {http.StatusBadRequest, "role is viewer, operator or owner.", 0},
	"invalid_reason":         {http.StatusBadRequest, "reason is text of at most 500 characters.", 0},
	"invalid_expires_in_sec": {http.StatusBadRequest, "expiresInSec is a whole number from 60 to 31,622,400.", 0},
	"invalid_since":          {http.StatusBadRequest, "since is an instant, in epoch milliseconds or RFC 3339.", 0},
	"invalid_until":          {http.StatusBadRequest, "until is an instant, in epoch milliseconds or RFC 3339.", 0},
	"invalid_before":         {http.StatusBadRequest, "before is an instant that has passed, in epoch milliseconds or RFC 3339.", 0},
	"invalid_cursor":         {http.StatusBadRequest, "cursor is none that was answered here.", 0},
	"invalid_audit_format":   {http.StatusBadRequest, "format is json, ndjson or csv.", 0},

	// Alerts.
	"alerts_disabled":   {http.StatusBadRequest, "There is no ALERT_WEBHOOK_URL: nothing can be sent.", 0},
	"webhook_failed":    {http.StatusBadGateway, "The webhook cannot be reached, or did not answer with success.", 5},
	"silence_not_found": {http.StatusNotFound, "There is no such silence, or it has ended.", 0},
	"invalid_rule":      {http.StatusBadRequest, "rule names a rule of GET /api/admin/alerts.", 0},
	"invalid_for_sec":   {http.StatusBadRequest, "forSec is a whole number from 60 to 2,592,000.", 0},

	// Operators.
	"nothing_to_change":  {http.StatusBadRequest, "Nothing is left to change.", 0},
	"conflicting_field":  {http.StatusBadRequest, "Two names of one field disagree.", 0},
	"redacted_shape":     {http.StatusBadRequest, "This room was read through a shared link, with fields blanked. Posting it back would wipe them.", 0},
	"not_available":      {http.StatusBadRequest, "This server cannot do that yet.", 0},
	"room_exists":        {http.StatusConflict, "There is such a room already.", 0},
	"ticket_not_found":   {http.StatusNotFound, "There is no such live ticket.", 0},
	"visitor_not_found":  {http.StatusNotFound, "No place of this room has that ticket, handle or code.", 0},
	"invalid_lookup":     {http.StatusBadRequest, "Give one of ticket, handle and ref.", 0},
	"invalid_handle":     {http.StatusBadRequest, "handle is the number of a pre-queue entry, 1 and up.", 0},
	"invalid_ref":        {http.StatusBadRequest, "ref is the code that the visitor's page shows, such as K7Q2-M9TX.", 0},
	"room_reset":         {http.StatusConflict, "The room was made anew meanwhile.", 0},
	"draw_under_way":     {http.StatusServiceUnavailable, "The draw is under way.", 1},
	"invalid_opens_at":   {http.StatusBadRequest, "opensAt is an instant in the future, in epoch milliseconds or RFC 3339, or null.", 0},
	"invalid_state":      {http.StatusBadRequest, "state is active, paused or bypass.", 0},
	"invalid_count":      {http.StatusBadRequest, "count is a whole number from 1 to 1,000,000.", 0},
	"invalid_ticket":     {http.StatusBadRequest, "ticket is a ticket number, 1 and up.", 0},
	"invalid_name":       {http.StatusBadRequest, "name is text of 1 to 200 characters.", 0},
	"invalid_target_url": {http.StatusBadRequest, "targetUrl is an absolute http or https address of at most 2,048 characters.", 0},

	"invalid_rate_per_minute":      {http.StatusBadRequest, "ratePerMinute is a whole number from 0 to 100,000.", 0},
	"invalid_max_concurrent":       {http.StatusBadRequest, "maxConcurrent is a whole number from 1 to 10,000,000, or null.", 0},
	"invalid_passed_ttl_sec":       {http.StatusBadRequest, "passedTtlSec is a whole number from 1 to 86,400.", 0},
	"invalid_session_ttl_sec":      {http.StatusBadRequest, "sessionTtlSec is a whole number from 1 to 86,400.", 0},
	"invalid_session_max_sec":      {http.StatusBadRequest, "sessionMaxSec is a whole number from 1 to 604,800.", 0},
	"invalid_pre_queue_max_per_ip": {http.StatusBadRequest, "preQueueMaxPerIp is a whole number from 1 to 100,000, or null.", 0},
	"invalid_queue_max_per_ip":     {http.StatusBadRequest, "queueMaxPerIp is a whole number from 1 to 100,000, or null.", 0},
	"invalid_presence_sec":         {http.StatusBadRequest, "presenceSec is a whole number from 1 to 3,600, or null.", 0},
	"invalid_on_backend_down":      {http.StatusBadRequest, "onBackendDown is closed or open.", 0},
	"invalid_branding":             {http.StatusBadRequest, "branding is an object of name, logoUrl, color, background and message.", 0},
	"invalid_return_origins":       {http.StatusBadRequest, "returnOrigins is a list of at most 50 origins such as https://shop.example.", 0},
	"invalid_tag_origins":          {http.StatusBadRequest, "tagOrigins is null or a list of at most 50 origins such as https://shop.example.", 0},
	"invalid_proxy_origin":         {http.StatusBadRequest, "proxyOrigin is an origin such as https://10.0.0.5:8443.", 0},
	"invalid_protection":           {http.StatusBadRequest, `protection is {"mode":"off"}, {"mode":"monitor"} or {"mode":"enforce"}.`, 0},
	"invalid_url_patterns":         {http.StatusBadRequest, "urlPatterns is a list of at most 25 rules such as /sale*, https://shop.example/sale* or !/sale/terms, each of at most 300 characters.", 0},
	"invalid_autotune":             {http.StatusBadRequest, "autotune is null or {floor, ceiling, step, latencyMs, errorPct}: tickets a minute from 1 to 100,000 with floor at most ceiling, milliseconds from 1 to 5,000, percent from 0 to 99.", 0},
	"invalid_openings":             {http.StatusBadRequest, "openings is a list of at most 50 {opensAt, closesAt}, each in the future and over before the next begins; only the last may stay open.", 0},
	"invalid_auto_activate":        {http.StatusBadRequest, "autoActivate is null or {arrivalsPerMinute, calmMinutes}: from 1 to 1,000,000, and from 1 to 1,440.", 0},
	"invalid_after":                {http.StatusBadRequest, "after is a seq, 0 and up.", 0},
	"invalid_limit":                {http.StatusBadRequest, "limit is a whole number from 1 to 1,000.", 0},
	"invalid_kind":                 {http.StatusBadRequest, "kind names no kind of event.", 0},
	"invalid_format":               {http.StatusBadRequest, "format is json or ndjson.", 0},
	"invalid_range":                {http.StatusBadRequest, "range is a length of time from 5m to 730d, such as 15m, 24h or 30d; from and to are instants, in order and at most 730 days apart.", 0},
	"invalid_bucket":               {http.StatusBadRequest, "bucket is hour or day.", 0},
	"invalid_time_zone":            {http.StatusBadRequest, "tz is the name of a time zone, such as Europe/Berlin.", 0},
	"invalid_key":                  {http.StatusBadRequest, "key is a string.", 0},
}

// problemOf says what an error of the layers below means to the caller. ok is false for what only we can be to blame for.
func problemOf(err error) (p *Problem, ok bool) {
	var refusal room.Refusal
	var denied *access.Refusal
	switch {
	case errors.As(err, &p):
		return p, true
	case errors.As(err, &denied):
		p = refuse(denied.Code)
		if denied.RetryAfter > 0 {
			p.After = seconds(denied.RetryAfter)
		}
		return p, true
	case errors.As(err, &refusal):
		switch refusal {
		case room.ErrNotPassed, room.ErrNotOwner, room.ErrCodeSpent:
			// Answers of the door, which check turns into "queue"; nowhere else can they come up.
			return refuse("invalid_token"), true
		case room.ErrDrawDue, room.ErrDrawNotDue:
			return refuse("draw_under_way"), true
		}
		if _, known := Codes[string(refusal)]; known {
			return refuse(string(refusal)), true
		}
		return nil, false
	case errors.Is(err, org.ErrNoOperator):
		return refuse("operator_not_found"), true
	case errors.Is(err, org.ErrNoLink):
		return refuse("link_not_found"), true
	case errors.Is(err, org.ErrNoSilence):
		return refuse("silence_not_found"), true
	case errors.Is(err, notify.ErrNoAlerts):
		return refuse("alerts_disabled"), true
	case errors.Is(err, notify.ErrWebhook):
		return refuse("webhook_failed"), true
	case errors.Is(err, org.ErrSelf):
		return refuse("cannot_revoke_self"), true
	case errors.Is(err, org.ErrTooMany):
		return refuse("too_many_operators"), true
	case errors.Is(err, org.ErrFactorOn):
		return refuse("otp_already_on"), true
	case errors.Is(err, org.ErrNoFactor):
		return refuse("otp_not_on"), true
	case errors.Is(err, org.ErrActor):
		return refuse("insufficient_role"), true // revoked since the request was let in
	case errors.Is(err, org.ErrStorage):
		return refuse("storage_unavailable"), true
	case errors.Is(err, engine.ErrBusy):
		return refuse("busy"), true
	case errors.Is(err, engine.ErrStorage), errors.Is(err, context.DeadlineExceeded):
		return refuse("storage_unavailable"), true
	case errors.Is(err, engine.ErrElsewhere):
		return refuse("not_owner"), true
	case errors.Is(err, engine.ErrDamaged):
		return refuse("room_damaged"), true
	case errors.Is(err, projection.ErrNoRoom):
		return refuse("room_not_found"), true
	}
	return nil, false
}

// write answers with the problem.
func (p *Problem) write(x *exchange) {
	v, ok := Codes[p.Code]
	if !ok {
		v = Codes["internal_error"]
	}
	h := x.w.Header()
	after := v.Retry
	if p.After > 0 {
		after = p.After
	}
	if after > 0 && (v.Status == http.StatusTooManyRequests || v.Status == http.StatusServiceUnavailable) {
		h.Set("Retry-After", strconv.Itoa(after))
	}
	if p.Allow != "" {
		h.Set("Allow", p.Allow)
	}
	if v.Status == http.StatusUnauthorized && x.route != nil && x.route.admin {
		h.Set("WWW-Authenticate", `Bearer realm="qm"`)
	}
	title := v.Title
	if p.Detail != "" {
		title = p.Detail
	}
	b := append(x.buf[:0], `{"error":`...)
	b = appendString(b, title)
	b = append(b, `,"code":"`...)
	b = append(b, p.Code...)
	b = append(b, '"')
	if p.Field != "" {
		b = append(b, `,"field":`...)
		b = appendString(b, p.Field)
	}
	if p.Work != "" {
		b = appendString(append(b, `,"work":{"stamp":`...), p.Work)
		b = appendInt(b, "parts", token.WorkParts)
		b = append(appendInt(b, "bits", token.WorkBits), '}')
	}
	b = append(b, '}')
	x.buf = b
	x.code = p.Code
	x.json(v.Status)
}

// seconds rounds up to what Retry-After can say, at least 1.
func seconds(d time.Duration) int { return max(int((d+time.Second-1)/time.Second), 1) }
