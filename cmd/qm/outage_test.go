package main

import (
	"net/http"
	"sync"
	"testing"
	"time"

	"qm/internal/testenv"
)

func mustJoin(t *testing.T, p *process, v *visitor) {
	t.Helper()
	if a, err := v.join(p, "shop"); err != nil || a.status != http.StatusOK {
		t.Fatalf("join: %d %v %v", a.status, a.body, err)
	}
}

func mustStatus(t *testing.T, p *process, v *visitor) answer {
	t.Helper()
	a, err := v.status(p, "shop")
	if err != nil || a.status != http.StatusOK {
		t.Fatalf("status of a place already held: %d %v %v", a.status, a.body, err)
	}
	return a
}

// Postgres down: places already held keep being answered, joins get 503, passing stops; back by itself.
func TestPostgresGoesAndComesBack(t *testing.T) {
	t.Parallel()
	pg, vk := testenv.OwnPostgres(t), testenv.OwnValkey(t)
	s := stores{pg.DSN, "redis://" + vk.Addr}
	p := startQM(t, s, nil)
	p.createRoom(t, `"id":"shop","ratePerMinute":0`)
	a, b := newVisitor(1), newVisitor(2)
	mustJoin(t, p, a)
	mustJoin(t, p, b)
	p.admin(t, "POST", "rooms/shop/rate", `{"ratePerMinute":60}`, http.StatusOK)
	pg.Kill()
	eventually(t, "health says not ready", func() bool { code, _ := tryGet(p.url + "/healthz"); return code == http.StatusServiceUnavailable })
	late := newVisitor(3)
	eventually(t, "joins are refused", func() bool {
		r, err := late.join(p, "shop")
		return err == nil && r.status == http.StatusServiceUnavailable && r.code() == "storage_unavailable" && r.header.Get("Retry-After") != ""
	})
	held := mustStatus(t, p, b)
	if code, _ := tryGet(p.url + "/api/v1/version"); code != http.StatusOK {
		t.Fatalf("version: %d", code)
	}
	if check, err := b.send("GET", p.url+"/api/v1/check?roomId=shop&token="+b.cookies["qm_shop"], ""); err != nil || check.status == http.StatusInternalServerError {
		t.Fatalf("check: %d %v", check.status, err)
	}
	if again := mustStatus(t, p, b); again.body["position"] != held.body["position"] {
		t.Errorf("somebody passed with the journal down: %v, then %v", held.body, again.body)
	}
	pg.Start()
	eventually(t, "joins are taken again", func() bool {
		r, err := late.join(p, "shop")
		return err == nil && r.status == http.StatusOK
	})
	eventually(t, "health says ready", func() bool { code, _ := tryGet(p.url + "/healthz"); return code == http.StatusOK })
	eventually(t, "passing goes on", func() bool { return mustStatus(t, p, b).body["passed"] == true })
	proved(t, s)
}

// Case 20: a stalled database does not stall readers.
//
// Proves: stall
func TestStalledPostgresDoesNotStallReaders(t *testing.T) {
	t.Parallel()
	pg, vk := testenv.OwnPostgres(t), testenv.OwnValkey(t)
	s := stores{pg.DSN, "redis://" + vk.Addr}
	p := startQM(t, s, nil)
	p.createRoom(t, `"id":"shop","ratePerMinute":0`) // nobody passes: a first way in has to be written down
	var held []*visitor
	for i := range 20 {
		held = append(held, newVisitor(i))
		mustJoin(t, p, held[i])
	}
	pg.Pause()
	var joins sync.WaitGroup
	var late []*visitor
	for i := range 20 {
		late = append(late, newVisitor(100+i))
		joins.Go(func() {
			r, err := late[i].join(p, "shop")
			if err != nil || r.status != http.StatusOK && (r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "") {
				t.Errorf("a join while the database stands still: %d %v %v", r.status, r.body, err)
			}
			if late[i].cookies["qms_shop"] == "" {
				t.Error("a join that may have been committed set no ownership cookie: a retry could not find the place")
			}
		})
	}
	for range 10 { // all answered while nothing comes back from the database
		for _, v := range held {
			mustStatus(t, p, v)
			if r, err := v.send("GET", p.url+"/api/v1/check?roomId=shop&token=x", ""); err != nil || r.status != http.StatusOK {
				t.Fatalf("check: %d %v %v", r.status, r.body, err)
			}
		}
	}
	joins.Wait()
	pg.Resume()
	for _, v := range late {
		eventually(t, "who was refused gets a place", func() bool {
			r, err := v.join(p, "shop")
			return err == nil && r.status == http.StatusOK
		})
	}
	proved(t, s)
}

// Valkey down: the owner goes on, health says so, and the projection is written anew from the journal when Valkey is back empty.
func TestValkeyGoesAndComesBackEmpty(t *testing.T) {
	t.Parallel()
	s, vk := durableStores(t)
	p := startQM(t, s, nil)
	p.createRoom(t, `"id":"shop","ratePerMinute":60`)
	v := newVisitor(1)
	mustJoin(t, p, v)
	vk.Kill()
	eventually(t, "health says not ready", func() bool { code, _ := tryGet(p.url + "/healthz"); return code == http.StatusServiceUnavailable })
	mustStatus(t, p, v)
	mustJoin(t, p, newVisitor(2))
	vk.Start()
	eventually(t, "health says ready", func() bool { code, _ := tryGet(p.url + "/healthz"); return code == http.StatusOK })
	mustJoin(t, p, newVisitor(3))
	proved(t, s)
	vk.FlushAll() // emptied under the running server, with no error that it could see
	proved(t, s)
	p.stop()
}

// Two processes on one database: one owns the room, the other reads; it takes over when the owner dies.
func TestSecondProcessReadsAndTakesOver(t *testing.T) {
	t.Parallel()
	s, _ := durableStores(t)
	first := startQM(t, s, nil)
	first.createRoom(t, `"id":"shop","ratePerMinute":0`)
	var held []*visitor
	for i := range 5 {
		held = append(held, newVisitor(i))
		mustJoin(t, first, held[i])
	}
	second := startQM(t, s, nil)
	eventually(t, "the second process answers from the projection", func() bool {
		a, err := held[4].status(second, "shop")
		return err == nil && a.status == http.StatusOK && a.body["position"] == 5.0
	})
	a, err := newVisitor(10).join(second, "shop")
	if err != nil || a.status != http.StatusServiceUnavailable || a.header.Get("Retry-After") == "" {
		t.Fatalf("a join at the second process: %d %v %v", a.status, a.body, err)
	}
	first.kill()
	late := newVisitor(11)
	eventually(t, "the second process takes the room over", func() bool {
		a, err := late.join(second, "shop")
		return err == nil && a.status == http.StatusOK
	})
	if n := late.ticket("shop"); n != 6 {
		t.Errorf("the first ticket after the take-over is %d", n)
	}
	for i, v := range held {
		if a := mustStatus(t, second, v); a.body["position"] != float64(i+1) {
			t.Errorf("place %d after the take-over: %v", i+1, a.body)
		}
	}
	third := startQM(t, s, nil) // an orderly stop hands the room over at once
	second.stop()
	eventually(t, "the third process takes the room over", func() bool {
		a, err := late.join(third, "shop")
		return err == nil && a.status == http.StatusOK
	})
	proved(t, s)
}

// 10,000 joins at once: no crash, no reorder, no gap.
//
// Proves: burst
func TestTenThousandJoinsAtOnce(t *testing.T) {
	s, _ := durableStores(t)
	p := startQM(t, s, nil)
	p.createRoom(t, `"id":"shop","ratePerMinute":600,"queueMaxPerIp":null`)
	const n = 10_000
	tickets := make([]int, n)
	work := make(chan int)
	var workers sync.WaitGroup
	for range 200 {
		workers.Go(func() {
			for i := range work {
				v := newVisitor(i)
				for tickets[i] == 0 {
					a, err := v.join(p, "shop")
					switch {
					case err != nil:
						t.Error(err)
						return
					case a.status == http.StatusOK:
						tickets[i] = v.ticket("shop")
					case a.status != http.StatusServiceUnavailable:
						t.Errorf("join: %d %v", a.status, a.body)
						return
					}
				}
			}
		})
	}
	for i := range n {
		work <- i
	}
	close(work)
	workers.Wait()
	seen := make([]bool, n+1)
	for _, ticket := range tickets {
		if ticket < 1 || ticket > n || seen[ticket] {
			t.Fatalf("ticket %d was given twice, or leaves a gap", ticket)
		}
		seen[ticket] = true
	}
	proved(t, s)
}

// Whoever polls a process that does not own the room is no ghost: their pass has a slot.
func TestPollsAtTheOtherProcessCountAsPresent(t *testing.T) {
	t.Parallel()
	s, _ := durableStores(t)
	first := startQM(t, s, nil)
	first.createRoom(t, `"id":"shop","ratePerMinute":0,"maxConcurrent":5,"presenceSec":5`)
	absent, present := newVisitor(1), newVisitor(2)
	mustJoin(t, first, absent)
	mustJoin(t, first, present)
	second := startQM(t, s, nil)
	eventually(t, "the second process answers", func() bool {
		a, err := present.status(second, "shop")
		return err == nil && a.status == http.StatusOK
	})
	aged := time.Now().Add(12 * time.Second) // the absent one has been unseen for more than presenceSec by then
	eventually(t, "time has passed", func() bool {
		_, err := present.status(second, "shop")
		return err == nil && time.Now().After(aged)
	})
	first.admin(t, "POST", "rooms/shop/rate", `{"ratePerMinute":6000}`, http.StatusOK)
	eventually(t, "both have passed", func() bool {
		a, err := present.status(second, "shop")
		return err == nil && a.body["passed"] == true
	})
	if slots := first.admin(t, "GET", "rooms/shop", "", http.StatusOK).body["slots"]; slots != 1.0 {
		t.Errorf("%v slots are held, not the one of whoever polled", slots)
	}
}
