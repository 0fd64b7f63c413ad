package access

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/oklog/ulid/v2"

	"qm/access/token"
)

// MonitorLink is a shared credential that may only look (seed 004, POST
// /api/admin/monitor-token). The link itself is a signed token that is never
// kept.
type MonitorLink struct {
	// ID is a ULID; it revokes the link.
	ID string
	// By is the id of the actor who made it.
	By                   string
	CreatedAt, ExpiresAt time.Time
}

// MintMonitor makes a monitor link that lasts for life and answers the token
// to present as a Bearer.
func (g *Gate) MintMonitor(by Actor, life time.Duration, now time.Time) (string, MonitorLink) {
	link := MonitorLink{ID: ulid.Make().String(), By: by.ID, CreatedAt: now, ExpiresAt: now.Add(life)}
	g.links.add(link.ID, link, link.ExpiresAt, now)
	return g.tokens.SignReference(token.PurposeMonitor,
		token.Reference{ID: link.ID, IssuedAt: now.UnixMilli(), ExpiresAt: link.ExpiresAt.UnixMilli()}), link
}

// MonitorLinks lists the live links, oldest first.
func (g *Gate) MonitorLinks(now time.Time) []MonitorLink {
	links := g.links.all(now)
	slices.SortFunc(links, func(a, b MonitorLink) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return links
}

// RevokeMonitor ends a link at once; false if there was none.
func (g *Gate) RevokeMonitor(id string, now time.Time) bool {
	_, ok := g.links.take(id, now)
	return ok
}

// monitor is the actor of a monitor token, and whether the token is one that
// this keyring signed, be it dead by now.
func (g *Gate) monitor(key string, now time.Time) (actor Actor, genuine bool) {
	ref, err := g.tokens.VerifyReference(token.PurposeMonitor, key, now)
	if err != nil {
		return Actor{}, errors.Is(err, token.ErrExpired)
	}
	if _, ok := g.links.get(ref.ID, now); !ok {
		return Actor{}, true
	}
	return Actor{ID: "monitor:" + ref.ID, Name: "monitor link", Role: Monitor, link: ref.ID}, true
}
