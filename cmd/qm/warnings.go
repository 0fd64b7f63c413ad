package main

import (
	"fmt"
	"strings"
)

// shortSecret is the least length of a key that nobody guesses, in characters.
const shortSecret = 16

// Warnings are what an operator should know, though it is allowed. Each says what to do.
func (c *Config) Warnings() []string {
	var w []string
	warn := func(format string, args ...any) { w = append(w, fmt.Sprintf(format, args...)) }
	production := c.Env == "production"
	if !c.Durable() {
		warn("STORE=memory: every restart starts empty. Set STORE=valkey and SIDESTORE=pg to survive it.")
		if c.DatabaseURL != "" || c.ValkeyURL != "" {
			warn("DATABASE_URL or VALKEY_URL is set, and not used with STORE=memory. Set STORE=valkey and SIDESTORE=pg, or unset them.")
		}
	} else if !production {
		warn("QM_ENV is %s, with stores of a production server. Set QM_ENV=production: it refuses what is only good for trying out.", c.Env)
	}
	switch {
	case c.AdminKey == DefaultAdminKey:
		warn("ADMIN_KEY is the default: anyone on this machine is an owner. Set a key of your own.")
	case len(c.AdminKey) < shortSecret:
		warn("ADMIN_KEY is shorter than %d characters and may be guessed. Set a longer one.", shortSecret)
	}
	switch {
	case c.Secret == "":
		warn("SECRET is not set: tokens die with this process. Set SECRET to a long random text.")
	case len(c.Secret) < shortSecret:
		warn("SECRET is shorter than %d characters: whoever holds a token may find it and forge places. Set a longer one, and SECRET_PREVIOUS to this one.", shortSecret)
	}
	if c.SecretPrevious != "" {
		warn("SECRET_PREVIOUS is set: tokens of the secret before are still good. Unset it %d seconds (TOKEN_MAX_AGE_SEC) after the rotation.", c.TokenMaxAgeSec)
	}
	if c.Durable() && c.DatabaseMigrateURL == "" {
		warn("DATABASE_MIGRATE_URL is not set: the server's own role owns the journal, so the database does not keep it from editing rows. Set it to the role of an owner.")
	}
	if c.AdminAuthFailPerMin == 0 {
		warn("ADMIN_AUTH_FAIL_PER_MIN is 0: keys may be guessed without end. Set it to 10.")
	}
	if production {
		c.warnOfNetwork(warn)
	}
	if c.TrustedProxies.Everybody() {
		warn("TRUSTED_PROXIES names all addresses: every client may say where it comes from, and no limit holds. Name your proxies alone.")
	}
	if !bool(c.EmailNotify) && c.AlertMailTo == "" && c.SMTPURL != "" {
		warn("SMTP_URL is set, and no mail is sent. Set EMAIL_NOTIFY=1 or ALERT_MAIL_TO, or unset it.")
	}
	return w
}

// warnOfNetwork looks at how visitors reach a production server.
func (c *Config) warnOfNetwork(warn func(format string, args ...any)) {
	switch {
	case c.PublicURL == "":
		warn("PUBLIC_URL is not set: absolute links are made from each request's Host header. Set it to the address that visitors reach.")
	case strings.HasPrefix(c.PublicURL, "http://"):
		warn("PUBLIC_URL is not https: places travel in the clear. Put a proxy that speaks TLS before this server, and set PUBLIC_URL to its https address.")
	case c.TrustedProxies.Empty():
		warn("PUBLIC_URL is https, which this server does not speak, and TRUSTED_PROXIES is not set: all visitors seem to come from one address and share its limits. Set it to your proxy's addresses.")
	}
	if c.AllowPrivateOutbound {
		warn("QM_ALLOW_PRIVATE_OUTBOUND=1: addresses that operators enter may lead into your own network. Unset it.")
	}
	if c.Demo {
		warn("QM_DEMO=1: a demo room with made-up visitors is open. Unset it.")
	}
}
