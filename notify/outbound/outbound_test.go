package outbound_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"qm/notify/outbound"
)

// A name or an address that leads inside is not reached, in whatever spelling.
//
// Proves: outbound
func TestPrivateAddressesAreOutOfReach(t *testing.T) {
	var hits atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer s.Close()
	_, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	guarded, open := outbound.Client(false, 5*time.Second), outbound.Client(true, 5*time.Second)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0", "127.1", "2130706433"} {
		if answer, err := guarded.Get("http://" + host + ":" + port + "/"); err == nil {
			answer.Body.Close()
			t.Errorf("%s was reached", host)
		}
	}
	for _, address := range []string{"http://10.0.0.1/", "http://169.254.169.254/latest/meta-data", "http://[fd00::1]/", "http://[fe80::1]/", "http://100.64.0.1/"} {
		if answer, err := guarded.Get(address); err == nil || !strings.Contains(err.Error(), "prohibited") {
			if answer != nil {
				answer.Body.Close()
			}
			t.Errorf("%s: %v; it should not even have been tried", address, err)
		}
	}
	if n := hits.Load(); n != 0 {
		t.Fatalf("%d requests got through", n)
	}
	if answer, err := open.Get(s.URL); err != nil {
		t.Fatalf("allowed, and yet: %v", err)
	} else {
		answer.Body.Close()
	}
}

// A target that answers is well, whatever it says; one that blames itself, hangs or is not there has failed. Redirects are not followed.
func TestLook(t *testing.T) {
	gate := make(chan struct{})
	var followed atomic.Bool
	mux := http.NewServeMux()
	mux.HandleFunc("/ok", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/gone", http.NotFound)
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/inside", http.StatusFound) })
	mux.HandleFunc("/inside", func(http.ResponseWriter, *http.Request) { followed.Store(true) })
	mux.HandleFunc("/ill", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("/hangs", func(http.ResponseWriter, *http.Request) { <-gate })
	s := httptest.NewServer(mux)
	defer s.Close()
	defer close(gate)
	client := outbound.Client(true, time.Second)
	for path, want := range map[string]bool{"/ok": false, "/gone": false, "/moved": false, "/ill": true, "/hangs": true} {
		if _, failed := outbound.Look(context.Background(), client, s.URL+path); failed != want {
			t.Errorf("%s failed: %v", path, failed)
		}
	}
	for _, target := range []string{"http://127.0.0.1:1/", "http://no-such-name.invalid/", ":", "gopher://shop.example/"} {
		if _, failed := outbound.Look(context.Background(), client, target); !failed {
			t.Errorf("%s is well", target)
		}
	}
	if followed.Load() {
		t.Error("a redirect was followed")
	}
}
