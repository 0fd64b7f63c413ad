package access

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var start = time.UnixMilli(1764525600000)

func client(i int) Network {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(i))
	return NetworkOf(netip.AddrFrom4(b))
}

func TestLimiter(t *testing.T) {
	l := NewLimiter(60)
	for i := range 60 {
		if ok, _ := l.Allow(client(1), start); !ok {
			t.Fatalf("the %dth was refused", i+1)
		}
	}
	ok, wait := l.Allow(client(1), start)
	if ok || wait != time.Second {
		t.Fatalf("the 61st: %v, wait %v", ok, wait)
	}
	if ok, _ := l.Allow(client(2), start); !ok {
		t.Fatal("another client was refused")
	}
	if ok, _ := l.Allow(client(1), start.Add(wait-1)); ok {
		t.Fatal("allowed too early")
	}
	if ok, _ := l.Peek(client(1), start.Add(wait)); !ok {
		t.Fatal("refused at the time given")
	}
	if ok, _ := l.Allow(client(1), start.Add(wait)); !ok {
		t.Fatal("a look took something")
	}
}

func TestLimiterWithoutLimit(t *testing.T) {
	l := NewLimiter(0)
	for range 10000 {
		if ok, wait := l.Allow(client(1), start); !ok || wait != 0 {
			t.Fatal("refused without a limit")
		}
	}
	if l.clients() != 0 {
		t.Error("remembers clients without a limit")
	}
}

// A clock set back by an hour costs nobody an hour.
func TestLimiterAfterAClockStep(t *testing.T) {
	l := NewLimiter(2)
	l.Allow(client(1), start.Add(time.Hour))
	if ok, wait := l.Allow(client(1), start); ok || wait > 30*time.Second {
		t.Fatalf("%v, wait %v", ok, wait)
	}
	if ok, _ := l.Allow(client(1), start.Add(30*time.Second)); !ok {
		t.Fatal("still refused")
	}
}

// Against a bucket counted in plain arithmetic: same verdicts, and a refusal's
// wait is exactly what it takes.
func TestLimiterIsABucket(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		perMinute := rapid.SampledFrom([]int{1, 2, 7, 60, 600}).Draw(rt, "per minute")
		interval := int64(time.Minute) / int64(perMinute)
		l := NewLimiter(perMinute)
		now, owed := start, int64(0) // ns of earning that the client owes
		for range rapid.IntRange(1, 200).Draw(rt, "requests") {
			step := rapid.Int64Range(0, 2*interval).Draw(rt, "step")
			now, owed = now.Add(time.Duration(step)), max(0, owed-step)
			ok, wait := l.Allow(client(1), now)
			if want := owed+interval <= int64(time.Minute); ok != want {
				rt.Fatalf("allowed %v, want %v", ok, want)
			}
			if ok {
				owed += interval
				continue
			}
			if early, _ := l.Peek(client(1), now.Add(wait-1)); early {
				rt.Fatal("the wait is too long")
			}
			if due, _ := l.Peek(client(1), now.Add(wait)); !due {
				rt.Fatal("the wait is too short")
			}
		}
	})
}

func TestLimiterMemoryIsBounded(t *testing.T) {
	l := NewLimiter(60)
	for i := range 2 * limitShards * shardClients {
		if ok, _ := l.Allow(client(i), start); !ok {
			t.Fatal("a new client was refused")
		}
	}
	if n := l.clients(); n > limitShards*shardClients {
		t.Fatalf("%d clients remembered", n)
	}
	// All of those have long earned back; new ones take their places.
	later := start.Add(time.Hour)
	for i := range limitShards * shardClients {
		l.Allow(client(-1-i), later)
	}
	idle := 0
	for i := range l.shards {
		for _, paidUp := range l.shards[i].paidUp {
			if paidUp <= later.UnixNano() {
				idle++
			}
		}
	}
	if idle > limitShards*shardClients/10 {
		t.Errorf("%d idle clients still remembered", idle)
	}
}

// A client that used up everything is not forgotten for a crowd that used little.
func TestLimiterKeepsWhoOwesMost(t *testing.T) {
	l := NewLimiter(2)
	for range 2 {
		l.Allow(client(0), start)
	}
	for i := range 2 * limitShards * shardClients {
		l.Allow(client(1+i), start)
	}
	if ok, _ := l.Peek(client(0), start); ok {
		t.Error("a crowd washed the limit away")
	}
}

func TestLockout(t *testing.T) {
	l := NewLockout(10)
	for i := range 10 {
		if err := l.Check(client(1), start); err != nil {
			t.Fatalf("locked out after %d failures: %v", i, err)
		}
		l.Failed(client(1), start)
	}
	var refusal *Refusal
	if err := l.Check(client(1), start); !errors.As(err, &refusal) || refusal.Code != CodeTooManyAuthFailures || refusal.RetryAfter != 6*time.Second {
		t.Fatalf("after 10 failures: %v", err)
	}
	if err := l.Check(client(2), start); err != nil {
		t.Errorf("another client: %v", err)
	}
	if err := l.Check(client(1), start.Add(refusal.RetryAfter)); err != nil {
		t.Errorf("after the wait: %v", err)
	}
	never := NewLockout(0)
	for range 100 {
		never.Failed(client(1), start)
	}
	if err := never.Check(client(1), start); err != nil {
		t.Errorf("0 locks out: %v", err)
	}
}

// A request of a known client, as nearly all are.
func BenchmarkLimiterAllow(b *testing.B) {
	const crowd = 1 << 14
	l := NewLimiter(600)
	for i := range crowd {
		l.Allow(client(i), start)
	}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		now := start
		for i := 0; pb.Next(); i++ {
			now = now.Add(time.Microsecond)
			l.Allow(client(i%crowd), now)
		}
	})
}

// A request of a client not seen before, with the table full: the worst case.
func BenchmarkLimiterCrowd(b *testing.B) {
	l := NewLimiter(600)
	for i := range 2 * limitShards * shardClients {
		l.Allow(client(i), start)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		l.Allow(client(-1-i), start)
	}
}
