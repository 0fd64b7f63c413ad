package alert

import (
	"context"
	"net/url"
	"sync"
	"time"

	"qm/notify/outbound"
)

// publicSubject is what alerts about the certificate of PUBLIC_URL are about.
const publicSubject = "PUBLIC_URL"

const (
	certificateEvery = 6 * time.Hour
	certificateWait  = 5 * time.Second
)

// certificates are the ends of those that were looked at, by origin.
type certificates struct {
	mu    sync.Mutex
	until map[string]looked
}

type looked struct {
	at  time.Time
	end time.Time // zero: it could not be read
}

// originOf is an address without its path; "" for what has no certificate.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return "https://" + u.Host
}

// left is how long the certificate of an address is good.
func (c *certificates) left(address string, now time.Time) (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l, ok := c.until[originOf(address)]
	return l.end.Sub(now), ok && !l.end.IsZero()
}

// watchCertificates looks at the certificates of the rooms' targets and of PUBLIC_URL, four times a day, one after another.
func (s *Service) watchCertificates(ctx context.Context) {
	tick := time.NewTicker(10 * lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		wanted := map[string]bool{originOf(s.o.PublicURL): true}
		for _, one := range s.o.Rooms.Health().Rooms {
			if s.o.Rooms.Serves(one.Room) {
				if sum, err := s.summary(ctx, one.Room); err == nil {
					wanted[originOf(sum.Settings.TargetURL)] = true
				}
			}
		}
		delete(wanted, "")
		s.certificates.mu.Lock()
		for origin, l := range s.certificates.until {
			if !wanted[origin] {
				delete(s.certificates.until, origin)
			} else if s.o.Now().Sub(l.at) < certificateEvery {
				delete(wanted, origin)
			}
		}
		s.certificates.mu.Unlock()
		for origin := range wanted {
			s.lookAtCertificate(ctx, origin)
		}
	}
}

func (s *Service) lookAtCertificate(ctx context.Context, origin string) {
	ctx, cancel := context.WithTimeout(ctx, certificateWait)
	defer cancel()
	end, err := outbound.Expiry(ctx, s.o.AllowPrivate, origin)
	s.certificates.mu.Lock()
	defer s.certificates.mu.Unlock()
	if err != nil {
		end = s.certificates.until[origin].end // as it was last seen
	}
	s.certificates.until[origin] = looked{s.o.Now(), end}
}
