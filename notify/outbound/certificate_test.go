package outbound

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestExpiry(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	defer server.Close()
	ctx := context.Background()
	end, err := Expiry(ctx, true, server.URL+"/shop?a=b")
	if want := server.Certificate().NotAfter; err != nil || !end.Equal(want) {
		t.Errorf("%v %v, not %v", end, err, want)
	}
	if _, err := Expiry(ctx, false, server.URL); err == nil {
		t.Error("a private address was reached")
	}
	for _, target := range []string{"http://shop.example/", "", "https://", ":", "ftp://shop.example/"} {
		if _, err := Expiry(ctx, true, target); !errors.Is(err, ErrNoCertificate) {
			t.Errorf("%q: %v", target, err)
		}
	}
	server.Close()
	if _, err := Expiry(ctx, true, server.URL); err == nil || errors.Is(err, ErrNoCertificate) {
		t.Errorf("nobody there: %v", err)
	}
}
