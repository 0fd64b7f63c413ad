package access

import (
	"sync"
	"time"
)

// alive keeps what was handed out and is still good, by id. It holds at most
// limit entries; beyond that the one that ends soonest gives way. It is safe
// for concurrent use, and forgets expired entries as it goes.
type alive[V any] struct {
	limit int
	mu    sync.Mutex
	items map[string]aliveItem[V]
}

type aliveItem[V any] struct {
	value V
	ends  time.Time
}

// add keeps value under id until it ends.
func (a *alive[V]) add(id string, value V, ends, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.items == nil {
		a.items = make(map[string]aliveItem[V])
	}
	if len(a.items) >= a.limit {
		a.shrink(now)
	}
	a.items[id] = aliveItem[V]{value, ends}
}

func (a *alive[V]) shrink(now time.Time) {
	soonest := ""
	for id, item := range a.items {
		if !now.Before(item.ends) {
			delete(a.items, id)
		} else if soonest == "" || item.ends.Before(a.items[soonest].ends) {
			soonest = id
		}
	}
	if len(a.items) >= a.limit {
		delete(a.items, soonest)
	}
}

// get is the value under id, if it has not ended.
func (a *alive[V]) get(id string, now time.Time) (V, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live(id, now)
}

// take is get, once.
func (a *alive[V]) take(id string, now time.Time) (V, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	value, ok := a.live(id, now)
	delete(a.items, id)
	return value, ok
}

func (a *alive[V]) live(id string, now time.Time) (V, bool) {
	item, ok := a.items[id]
	if !ok || !now.Before(item.ends) {
		var none V
		return none, false
	}
	return item.value, true
}

// all lists the live values in no order.
func (a *alive[V]) all(now time.Time) []V {
	a.mu.Lock()
	defer a.mu.Unlock()
	var values []V
	for _, item := range a.items {
		if now.Before(item.ends) {
			values = append(values, item.value)
		}
	}
	return values
}
