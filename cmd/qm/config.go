package main

import (
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/caarlos0/env/v11"

	"qm/access"
	"qm/notify"
	"qm/notify/alert"
	"qm/notify/email"
)

// DefaultAdminKey is ADMIN_KEY where none is set. With it the server listens on loopback alone (seed 004, Admin auth).
const DefaultAdminKey = "admin-dev"

// Config is everything that the environment says (contract.md, Configuration). An empty variable counts as unset. Of a text without
// show:"yes" nobody is told more than whether it is set, since it is a secret or may contain one ([Config.Variables]).
type Config struct {
	Host string `env:"HOST" show:"yes"` // "" in the environment: 127.0.0.1 with the default admin key, else all addresses
	Port int    `env:"PORT" envDefault:"8080"`

	Env       string `env:"QM_ENV" envDefault:"development" show:"yes"` // development or production
	Store     string `env:"STORE" envDefault:"memory" show:"yes"`       // memory or valkey
	SideStore string `env:"SIDESTORE" envDefault:"memory" show:"yes"`   // memory or pg

	DatabaseURL        string `env:"DATABASE_URL"`
	DatabaseMigrateURL string `env:"DATABASE_MIGRATE_URL"` // an owner role, used for migrations alone
	ValkeyURL          string `env:"VALKEY_URL"`

	Secret               string `env:"SECRET"` // "": random for this process
	SecretPrevious       string `env:"SECRET_PREVIOUS"`
	TokenSignV2          Switch `env:"TOKEN_SIGN_V2"`
	TokenMaxAgeSec       int    `env:"TOKEN_MAX_AGE_SEC" envDefault:"86400"`
	QueueCookieMaxAgeSec int    `env:"QUEUE_COOKIE_MAX_AGE_SEC" envDefault:"86400"`

	AdminKey            string `env:"ADMIN_KEY" envDefault:"admin-dev"`
	PublicAPIKey        string `env:"PUBLIC_API_KEY"`
	AdminAuthFailPerMin int    `env:"ADMIN_AUTH_FAIL_PER_MIN" envDefault:"10"` // 0: no lock-out

	AuditDetailsDays int `env:"AUDIT_DETAILS_DAYS" envDefault:"365"` // 0: until an owner erases them

	JoinLimitPerMin   int `env:"JOIN_LIMIT_PER_MIN" envDefault:"60"` // per client; 0: no limit
	CheckLimitPerMin  int `env:"CHECK_LIMIT_PER_MIN" envDefault:"600"`
	StatusLimitPerMin int `env:"STATUS_LIMIT_PER_MIN" envDefault:"600"`

	SSEMaxTotal   int `env:"SSE_MAX_TOTAL" envDefault:"50000"`
	SSEPerIP      int `env:"SSE_PER_IP" envDefault:"64"`
	RoomCookieCap int `env:"ROOM_COOKIE_CAP" envDefault:"8"`

	TrustedProxies Proxies `env:"TRUSTED_PROXIES"`
	DataCentres    Centres `env:"DATACENTRE_NETWORKS_FILE"` // one network a line
	PublicURL      string  `env:"PUBLIC_URL" show:"yes"`    // without a slash at the end; "": from the request

	EmailNotify Switch `env:"EMAIL_NOTIFY"`
	SMTPURL     string `env:"SMTP_URL"`
	MailFrom    string `env:"MAIL_FROM" show:"yes"`

	AlertWebhookURL      string `env:"ALERT_WEBHOOK_URL"`
	AlertMailTo          string `env:"ALERT_MAIL_TO"`           // addresses, commas between
	AlertLimits          string `env:"ALERT_LIMITS" show:"yes"` // see alert.Rules
	AllowPrivateOutbound Switch `env:"QM_ALLOW_PRIVATE_OUTBOUND"`
	Demo                 Switch `env:"QM_DEMO"`
}

// Switch is a variable that is on or off.
type Switch bool

// UnmarshalText reads 1, true, yes, on, or 0, false, no, off.
func (s *Switch) UnmarshalText(b []byte) error {
	switch strings.ToLower(strings.TrimSpace(string(b))) {
	case "1", "true", "yes", "on":
		*s = true
	case "0", "false", "no", "off":
		*s = false
	case "":
	default:
		return errors.New("is neither 1 nor 0")
	}
	return nil
}

// Proxies is access.Proxies as the environment spells it.
type Proxies struct{ access.Proxies }

// UnmarshalText reads a list of CIDR prefixes or addresses.
func (p *Proxies) UnmarshalText(b []byte) (err error) {
	p.Proxies, err = access.ParseProxies(string(b))
	return err
}

// Centres is access.Networks, and the environment names the file that lists them.
type Centres struct{ access.Networks }

// UnmarshalText reads the file.
func (c *Centres) UnmarshalText(path []byte) error {
	f, err := os.Open(string(path))
	if err != nil {
		return err
	}
	defer f.Close()
	c.Networks, err = access.ParseNetworks(f)
	return err
}

// Addr is where to listen.
func (c *Config) Addr() string { return net.JoinHostPort(c.Host, fmt.Sprint(c.Port)) }

// Durable reports whether the stores survive a restart: valkey + pg.
func (c *Config) Durable() bool { return c.SideStore == "pg" }

// Stores names the pair of stores, for health.
func (c *Config) Stores() string { return c.Store + "+" + c.SideStore }

// LoadConfig reads the environment ("NAME=value" each, as os.Environ has it). The error names every problem there is.
func LoadConfig(environ []string) (*Config, error) {
	vars := make(map[string]string, len(environ))
	for _, pair := range environ {
		if name, value, ok := strings.Cut(pair, "="); ok && value != "" {
			vars[name] = value
		}
	}
	c := new(Config)
	var problems []error
	bad := make(map[string]bool) // names that could not be read: nothing more is said about them
	if err := env.ParseWithOptions(c, env.Options{Environment: vars}); err != nil {
		var all env.AggregateError
		if !errors.As(err, &all) {
			return nil, err
		}
		for _, e := range all.Errors {
			var parse env.ParseError
			if !errors.As(e, &parse) {
				problems = append(problems, e)
				continue
			}
			name := variableOf(parse.Name)
			bad[name] = true
			problems = append(problems, fmt.Errorf("%s: %w", name, plain(parse.Err)))
		}
	}
	problems = append(problems, unknownNames(vars)...)
	problems = append(problems, c.contradictions(bad)...)
	if len(problems) > 0 {
		return nil, &ConfigError{problems}
	}
	if c.Host == "" && c.AdminKey == DefaultAdminKey {
		c.Host = "127.0.0.1"
	}
	c.PublicURL = strings.TrimSuffix(c.PublicURL, "/")
	return c, nil
}

// ConfigError is everything that is wrong with the environment.
type ConfigError struct{ Problems []error }

func (e *ConfigError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "the configuration has %d problem(s):", len(e.Problems))
	for _, p := range e.Problems {
		b.WriteString("\n  ")
		b.WriteString(strings.ReplaceAll(p.Error(), "\n", "; "))
	}
	return b.String()
}

// Unwrap gives the problems one by one.
func (e *ConfigError) Unwrap() []error { return e.Problems }

// plain words what strconv says for people.
func plain(err error) error {
	if s := err.Error(); strings.Contains(s, "strconv.") {
		if strings.Contains(s, "out of range") {
			return errors.New("is too large a number")
		}
		return errors.New("is not a whole number")
	}
	return err
}

// names are the variables that a Config reads, by its fields.
func names() []string {
	t := reflect.TypeFor[Config]()
	list := make([]string, t.NumField())
	for i := range list {
		list[i] = t.Field(i).Tag.Get("env")
	}
	return list
}

func variableOf(field string) string {
	if f, ok := reflect.TypeFor[Config]().FieldByName(field); ok {
		return f.Tag.Get("env")
	}
	return field
}

// unknownNames refuses QM_ names that nothing reads; QM_TEST_ belongs to the tests.
func unknownNames(vars map[string]string) []error {
	known := names()
	var unknown []string
	for name := range vars {
		if strings.HasPrefix(name, "QM_") && !strings.HasPrefix(name, "QM_TEST_") && !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	problems := make([]error, len(unknown))
	for i, name := range unknown {
		if near := nearest(name, known); near != "" {
			problems[i] = fmt.Errorf("%s: there is no such variable; did you mean %s?", name, near)
		} else {
			problems[i] = fmt.Errorf("%s: there is no such variable", name)
		}
	}
	return problems
}

// nearest is the known name that a wrong one was probably meant to be; "" when none is near.
func nearest(name string, known []string) string {
	best, least := "", 0
	for _, k := range known {
		d := distance(name, k)
		if bare := distance(strings.TrimPrefix(name, "QM_"), k); bare < d {
			d = bare
		}
		if d <= max(2, len(k)/4) && (best == "" || d < least) {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters have to be put in, left out or changed (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}

// contradictions finds values that are out of range or do not go together.
func (c *Config) contradictions(bad map[string]bool) []error {
	var problems []error
	say := func(name, format string, args ...any) {
		if !bad[name] {
			problems = append(problems, fmt.Errorf("%s: %s", name, fmt.Sprintf(format, args...)))
		}
	}
	oneOf := func(name, value string, allowed ...string) {
		if !slices.Contains(allowed, value) {
			say(name, "%q is none of %s", value, strings.Join(allowed, ", "))
			bad[name] = true
		}
	}
	within := func(name string, n, least, most int) {
		if n < least || n > most {
			say(name, "%d is not within %d and %d", n, least, most)
		}
	}
	oneOf("QM_ENV", c.Env, "development", "production")
	oneOf("STORE", c.Store, "memory", "valkey")
	oneOf("SIDESTORE", c.SideStore, "memory", "pg")
	within("PORT", c.Port, 0, 65_535)
	within("TOKEN_MAX_AGE_SEC", c.TokenMaxAgeSec, 60, 366*86_400)
	within("QUEUE_COOKIE_MAX_AGE_SEC", c.QueueCookieMaxAgeSec, 60, 400*86_400)
	const most = 1_000_000_000
	within("ADMIN_AUTH_FAIL_PER_MIN", c.AdminAuthFailPerMin, 0, most)
	within("AUDIT_DETAILS_DAYS", c.AuditDetailsDays, 0, 36_500)
	within("JOIN_LIMIT_PER_MIN", c.JoinLimitPerMin, 0, most)
	within("CHECK_LIMIT_PER_MIN", c.CheckLimitPerMin, 0, most)
	within("STATUS_LIMIT_PER_MIN", c.StatusLimitPerMin, 0, most)
	within("SSE_MAX_TOTAL", c.SSEMaxTotal, 1, most)
	within("SSE_PER_IP", c.SSEPerIP, 1, most)
	within("ROOM_COOKIE_CAP", c.RoomCookieCap, 1, 64)

	// Only two pairs of stores exist (domain.md rule 2).
	if !bad["STORE"] && !bad["SIDESTORE"] && (c.Store == "valkey") != (c.SideStore == "pg") {
		say("STORE", "%s does not go with SIDESTORE=%s: the pairs are memory with memory, and valkey with pg", c.Store, c.SideStore)
	}
	if c.Store == "valkey" && c.ValkeyURL == "" {
		say("VALKEY_URL", "is needed by STORE=valkey")
	}
	if c.SideStore == "pg" {
		if c.DatabaseURL == "" {
			say("DATABASE_URL", "is needed by SIDESTORE=pg")
		}
		if c.Secret == "" {
			say("SECRET", "is needed by SIDESTORE=pg: places outlive the process, and so must the key of their tokens")
		}
	} else if c.DatabaseMigrateURL != "" {
		say("DATABASE_MIGRATE_URL", "needs SIDESTORE=pg")
	}
	address := func(name, value string, schemes ...string) *url.URL {
		if value == "" {
			return nil
		}
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || !slices.Contains(schemes, u.Scheme) {
			say(name, "is not an address that begins with %s://", strings.Join(schemes, ":// or "))
			return nil
		}
		return u
	}
	// Postgres takes key=value pairs as well as URLs.
	for _, v := range [][2]string{{"DATABASE_URL", c.DatabaseURL}, {"DATABASE_MIGRATE_URL", c.DatabaseMigrateURL}} {
		name, value := v[0], v[1]
		if value != "" && !strings.HasPrefix(value, "postgres://") && !strings.HasPrefix(value, "postgresql://") && !strings.Contains(value, "=") {
			say(name, "is not an address that begins with postgres://")
		}
	}
	if c.ValkeyURL != "" && !strings.HasPrefix(c.ValkeyURL, "unix://") {
		address("VALKEY_URL", c.ValkeyURL, "redis", "rediss", "valkey", "valkeys")
	}
	if u := address("PUBLIC_URL", c.PublicURL, "http", "https"); u != nil {
		if u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			say("PUBLIC_URL", "has more than a scheme and a host")
		}
	}
	if c.SecretPrevious != "" && c.Secret == "" {
		say("SECRET_PREVIOUS", "needs SECRET")
	} else if c.SecretPrevious != "" && c.SecretPrevious == c.Secret {
		say("SECRET_PREVIOUS", "is the same as SECRET")
	}
	if c.PublicAPIKey != "" && c.PublicAPIKey == c.AdminKey {
		say("PUBLIC_API_KEY", "is the same as ADMIN_KEY, which must not leave the operators' hands")
	}
	for _, v := range [][2]string{{"ADMIN_KEY", c.AdminKey}, {"PUBLIC_API_KEY", c.PublicAPIKey}} {
		if name, value := v[0], v[1]; value != strings.TrimSpace(value) {
			say(name, "begins or ends with a blank, which no header carries")
		}
	}
	if c.AdminKey == DefaultAdminKey && c.Host != "" && !loopback(c.Host) {
		say("ADMIN_KEY", "is the default: with it HOST has to be a loopback address, not %s", c.Host)
	}
	if c.Env == "production" {
		if c.Store != "valkey" || c.SideStore != "pg" {
			say("QM_ENV", "production takes no stores but STORE=valkey with SIDESTORE=pg")
		}
		if c.AdminKey == DefaultAdminKey {
			say("QM_ENV", "production takes no default ADMIN_KEY")
		}
	}
	if c.EmailNotify {
		if c.SMTPURL == "" {
			say("SMTP_URL", "is needed by EMAIL_NOTIFY")
		}
		if c.MailFrom == "" {
			say("MAIL_FROM", "is needed by EMAIL_NOTIFY")
		}
		if c.PublicURL == "" {
			say("PUBLIC_URL", "is needed by EMAIL_NOTIFY: the links in a mail cannot come from a request's Host header, which anybody may choose")
		}
	}
	smtp := address("SMTP_URL", c.SMTPURL, "smtp", "smtps")
	if _, err := mail.ParseAddress(c.MailFrom); c.MailFrom != "" && err != nil {
		say("MAIL_FROM", "is no e-mail address")
	} else if smtp != nil && c.MailFrom != "" {
		if _, err := email.New(c.SMTPURL, c.MailFrom, email.Options{}); err != nil {
			say("SMTP_URL", "and MAIL_FROM do not serve: %v", err)
		}
	}
	if c.AlertMailTo != "" {
		if _, err := c.alertAddresses(); err != nil {
			say("ALERT_MAIL_TO", "%v", err)
		}
		if c.SMTPURL == "" {
			say("SMTP_URL", "is needed by ALERT_MAIL_TO")
		}
		if c.MailFrom == "" {
			say("MAIL_FROM", "is needed by ALERT_MAIL_TO")
		}
	}
	if _, err := alert.Rules(c.AlertLimits); err != nil {
		say("ALERT_LIMITS", "%v", err)
	}
	if u := address("ALERT_WEBHOOK_URL", c.AlertWebhookURL, "https", "http"); u != nil && !bool(c.AllowPrivateOutbound) {
		if u.Scheme != "https" {
			say("ALERT_WEBHOOK_URL", "has to begin with https://, unless QM_ALLOW_PRIVATE_OUTBOUND=1")
		}
		if a, err := netip.ParseAddr(u.Hostname()); err == nil && (a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified()) ||
			strings.EqualFold(u.Hostname(), "localhost") {
			say("ALERT_WEBHOOK_URL", "has to be a public address, unless QM_ALLOW_PRIVATE_OUTBOUND=1")
		}
	}
	return problems
}

// mostAlertMails is to how many addresses an alert is mailed.
const mostAlertMails = 10

// alertAddresses reads ALERT_MAIL_TO.
func (c *Config) alertAddresses() (list []string, err error) {
	if c.AlertMailTo == "" {
		return nil, nil
	}
	for text := range strings.SplitSeq(c.AlertMailTo, ",") {
		to, ok := notify.ParseAddress(strings.TrimSpace(text))
		if !ok {
			return nil, errors.New("is no list of e-mail addresses with commas between")
		}
		if !slices.Contains(list, to) {
			list = append(list, to)
		}
	}
	if len(list) > mostAlertMails {
		return nil, fmt.Errorf("has more than %d addresses", mostAlertMails)
	}
	return list, nil
}

// loopback reports whether a host can be reached from this machine alone.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.Unmap().IsLoopback()
}
