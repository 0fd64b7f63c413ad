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

	// Since version 2 of create and configure.
	Protection   Protection    `json:"protection,omitzero"`
	Autotune     *Autotune     `json:"autotune,omitempty"`     // nil: the rate is the operator's alone
	AutoActivate *AutoActivate `json:"autoActivate,omitempty"` // nil: the state is the operator's alone
	Openings     []Opening     `json:"openings,omitempty"`     // ascending; each ends before the next begins
}

// Protection is what a room does with scores at its door (seed 004, protection; domain.md rule 10).
type Protection struct {
	Mode      string `json:"mode"`                // "off" (as is ""), "monitor" or "enforce"
	Threshold int64  `json:"threshold,omitempty"` // enforce: refused from this score on, 1 to 100; 0 is DefaultThreshold
	Work      bool   `json:"work,omitempty"`      // enforce: a proof of work takes the place of the refusal
}

// DefaultThreshold is the score from which on a room in enforce mode refuses, where nothing else is set.
const DefaultThreshold = 80

// RefusesFrom is the score from which on a room refuses in enforce mode.
func (p Protection) RefusesFrom() int64 {
	if p.Threshold == 0 {
		return DefaultThreshold
	}
	return p.Threshold
}

// Refuses says whether nobody with this score gets a place (seed 004, blocked_by_protection).
func (p Protection) Refuses(score uint8) bool {
	return p.Mode == "enforce" && int64(score) >= p.RefusesFrom()
}

// Scores says whether anybody is scored at all.
func (p Protection) Scores() bool { return p.Mode == "enforce" || p.Monitor() }

// Monitor says whether scores are counted and nothing else follows from them.
func (p Protection) Monitor() bool { return p.Mode == "monitor" }

// Autotune lets the rate follow the target's health (seed 004, autotune): up by Step a period while the target is well, down by half
// when it is not, within Floor and Ceiling.
type Autotune struct {
	Floor     int64 `json:"floor"`     // tickets a minute
	Ceiling   int64 `json:"ceiling"`   // tickets a minute
	Step      int64 `json:"step"`      // tickets a minute
	LatencyMs int64 `json:"latencyMs"` // a target that answers slower than this is not well
	ErrorPct  int64 `json:"errorPct"`  // nor is one of which more answers than this fail, 0 to 100
}

// AutoActivate lets a room in bypass begin to queue when a surge comes, and stop when it is over (seed 004, autoActivate).
type AutoActivate struct {
	ArrivalsPerMinute int64 `json:"arrivalsPerMinute"` // a surge: more than this
	CalmMinutes       int64 `json:"calmMinutes"`       // it is over: less than half of that, and nobody waiting, for so long
}

// Opening is one of several times at which a room opens.
type Opening struct {
	OpensAt  Instant `json:"opensAt"`
	ClosesAt Instant `json:"closesAt,omitempty"` // 0: it stays open
}

// Holds says whether a waiting ticket with this score is held: the outflow steps over it (domain.md rule 10).
func (s *Settings) Holds(score uint8) bool {
	return int64(score) >= s.HoldScore && !s.Protection.Monitor()
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
