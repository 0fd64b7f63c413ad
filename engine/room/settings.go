package room

// Mode is a room's configured state.
type Mode string

// The configured states (seed 004, Core concepts; idle is seed 000's). A future doors-open instant shows as "scheduled" to
// visitors while the mode stays one of these.
const (
	Active Mode = "active"
	Paused Mode = "paused"
	Bypass Mode = "bypass"
	Idle   Mode = "idle"
)

// Settings are what an operator configures. The JSON names are those of seed 004's writable set; the field order is the
// order of the stored bytes. The core reads the numbers; the rest is kept for those who read the room.
type Settings struct {
	Name             string   `json:"name"`
	TargetURL        string   `json:"targetUrl"`
	ProxyOrigin      string   `json:"proxyOrigin,omitempty"`
	RatePerMinute    int64    `json:"ratePerMinute"`    // tickets a minute, 0 to 100,000
	MaxConcurrent    *int64   `json:"maxConcurrent"`    // slots; nil: unlimited
	PassedTTLSec     int64    `json:"passedTtlSec"`     // how long a pass is good at the door, seconds; default 600
	SessionTTLSec    int64    `json:"sessionTtlSec"`    // a door session unseen that long lapses, seconds; default 1,200
	SessionMaxSec    int64    `json:"sessionMaxSec"`    // a door session ends at that age, seconds; default 14,400
	HoldScore        int64    `json:"holdScore"`        // 1 to 100; default 70
	PreQueueMaxPerIP *int64   `json:"preQueueMaxPerIp"` // entries an identity; nil: unlimited; default 16
	QueueMaxPerIP    *int64   `json:"queueMaxPerIp"`    // waiting places an identity; nil: unlimited; default 16
	PresenceSec      *int64   `json:"presenceSec"`      // ghost rule, seconds; nil: off; default 30
	OnBackendDown    string   `json:"onBackendDown"`    // "closed" (default) or "open"
	Branding         Branding `json:"branding"`
	ReturnOrigins    []string `json:"returnOrigins,omitempty"`
	TagOrigins       []string `json:"tagOrigins,omitzero"`     // nil: as ReturnOrigins; empty is another policy, and stays
	URLPatterns      []string `json:"urlPatterns,omitempty"`   // the rules of access/scope; empty: every page is in scope
	URLPatternsAt    Instant  `json:"urlPatternsAt,omitempty"` // stamped by the server when the rules change
}

// Branding is what the waiting page shows of the operator.
type Branding struct {
	Name       string  `json:"name,omitempty"`
	LogoURL    string  `json:"logoUrl,omitempty"`
	Color      string  `json:"color,omitempty"`      // #rrggbb
	Background string  `json:"background,omitempty"` // #rrggbb
	Message    string  `json:"message,omitempty"`
	MessageAt  Instant `json:"messageAt,omitempty"` // stamped by the server when the text changes
}

// DefaultSettings are the defaults of seed 004 and contract.md; name, target and rate are the operator's.
func DefaultSettings() Settings {
	num := func(n int64) *int64 { return &n }
	return Settings{
		RatePerMinute: 60, PassedTTLSec: 600, SessionTTLSec: 1200, SessionMaxSec: 14400, HoldScore: 70,
		PreQueueMaxPerIP: num(16), QueueMaxPerIP: num(16), PresenceSec: num(30), OnBackendDown: "closed",
	}
}
