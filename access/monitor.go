package access

import (
	"context"
	"errors"
	"time"

	"qm/access/org"
	"qm/access/token"
)

// MintMonitor makes a monitor link that lasts for life (seed 004, POST /api/admin/monitor-token) and answers the token to present as a Bearer,
// which is signed and not kept. It ends with the credential that made it. Any error is a *Refusal or the book's.
func (g *Gate) MintMonitor(ctx context.Context, by org.By, life time.Duration, now time.Time) (string, org.Link, error) {
	link := org.Link{ID: org.NewID("ml_"), By: by.Actor, Mark: g.mark(by.Actor), At: now, Ends: now.Add(life).Truncate(time.Millisecond)}
	if err := g.book.MakeLink(ctx, by, &org.LinkMade{ID: link.ID, Ends: link.Ends.UnixMilli(), Mark: link.Mark}); err != nil {
		return "", org.Link{}, refusal(err)
	}
	return g.tokens.SignReference(token.PurposeMonitor,
		token.Reference{ID: link.ID, IssuedAt: now.UnixMilli(), ExpiresAt: link.Ends.UnixMilli()}), link, nil
}

// MonitorLinks lists the live links, oldest first.
func (g *Gate) MonitorLinks(now time.Time) (links []org.Link) {
	g.book.Look(func(s *org.State) {
		for _, l := range s.Links(now) {
			if g.marked(l.By, l.Mark) {
				links = append(links, l)
			}
		}
	})
	return links
}

// RevokeMonitor ends a link, or with "" every one, and says how many. org.ErrNoLink when there is no such link.
func (g *Gate) RevokeMonitor(ctx context.Context, by org.By, id string, now time.Time) (int, error) {
	n, err := g.book.RevokeLinks(ctx, by, id, now)
	return n, refusal(err)
}

// monitor is the actor of a monitor token, and whether the token is one that
// this keyring signed, be it dead by now.
func (g *Gate) monitor(key string, now time.Time) (actor Actor, genuine bool) {
	ref, err := g.tokens.VerifyReference(token.PurposeMonitor, key, now)
	if err != nil {
		return Actor{}, errors.Is(err, token.ErrExpired)
	}
	var link org.Link
	var ok bool
	g.book.Look(func(s *org.State) { link, ok = s.Link(ref.ID, now) })
	if !ok || !g.marked(link.By, link.Mark) {
		return Actor{}, true
	}
	return Actor{ID: "monitor:" + ref.ID, Name: "monitor link", Role: Monitor, link: ref.ID, stale: g.book.Stale() != nil}, true
}
