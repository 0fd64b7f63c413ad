package web_test

import (
	"bytes"
	"compress/gzip"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"qm/web"
)

const (
	key   = "ds1.1.7.c2VjcmV0b2Z0aGVkb29yMQ"
	tick  = "eyJyIjoicm0xIn0.dG9rZW4"
	code  = "eyJyIjoicm0xIn0.Y29kZQ"
	other = "ds1.1.7.YW5vdGhlcmRvb3JrZXkyMg"
)

// The tag runs on other people's pages: small, in the edition of the language
// that its header names, and nothing in it that a strict policy forbids.
func TestSnippetIsSmallAndPlain(t *testing.T) {
	body, etag := web.Snippet()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write(body)
	_ = z.Close()
	if packed.Len() > 4<<10 {
		t.Errorf("%d bytes gzipped", packed.Len())
	}
	t.Logf("%d bytes, %d gzipped", len(body), packed.Len())
	if m := regexp.MustCompile(`\?\.[^0-9]|\?\?|\|\|=|&&=|\beval\b|\bFunction\b|innerHTML|document\.write|console\.|debugger`).Find(body); m != nil {
		t.Errorf("the tag says %q", m)
	}
	if !regexp.MustCompile(`^"[\w-]{22}"$`).MatchString(etag) {
		t.Errorf("etag %s", etag)
	}
}

// gate answers as the server does: who shows the code gets a key, who shows the
// key is inside, everybody else queues.
func gate(a ask) any {
	switch {
	case a.key == key:
		return frame{"action": "pass", "reason": "session", "sess": key}
	case a.query.Get("code") == code:
		return frame{"action": "pass", "reason": "passed", "sess": key, "token": tick}
	}
	return queueing("no_token")
}

// Into the line and back to the exact address, whatever it is made of; no
// credential stays in the address, the history or a Referer, and the key is
// shown from then on.
//
// Proves: snippet
func TestSnippetLeadsBackToTheExactAddress(t *testing.T) {
	t.Parallel()
	b := shopper(t)
	d := newDesk(t, gate)
	s := newShop(t, tagOf(d.URL, `data-room="rm1"`))
	d.send(back(code))
	b.open(s.base + "/start")
	s.decided(t, "queue no_token")
	s.decided(t, "pass passed")
	for _, address := range []string{
		"/", "/p?", "/p#", "/p?#", "/p?a=1", "/p?a=1&", "/p?&a", "/p?z=1&a=2&a=1&z=&=x&k", "/p?q=a+b%20c",
		"/caf%c3%a9/%2Fx/%7e?u=%E2%9C%93&v=a%2fb%26", "/p?100%&a=%zz&&;c", "/p?xqm_code=1&qm_code2=2&QM_CODE=3", "//a/b?x=1",
		"/p?next=https%3A%2F%2Fx.example%2F%3Fa%3D1%26b%3D2#/route?qm_code=mine&a=b", "/p;v=1?a;b&c#a+b%20c", "/%E0%B8%AA?x=%E0%B8%81#%zz",
	} {
		b.text(`(localStorage.clear(), sessionStorage.clear(), 0)`)
		d.forget()
		b.open(s.base + address)
		s.decided(t, "queue no_token")
		s.decided(t, "pass passed")
		b.await(`document.documentElement.dataset.qm === "pass passed"`)
		if got := b.text("location.href"); got != s.base+address {
			t.Errorf("%s: back at %s", address, got)
		}
		asks := d.asked()
		page, _, _ := strings.Cut(s.base+address, "#")
		if len(asks) != 2 || asks[0].query.Get("url") != page || asks[1].query.Get("url") != page || asks[0].path != "/api/v1/check" {
			t.Errorf("%s: asked %+v", address, asks)
		}
		if v := d.visits(); len(v) != 1 || v[0].Query().Get("qm_return") != s.base+address || v[0].RawQuery != "qm_return="+uriComponent(s.base+address) {
			t.Errorf("%s: sent to %v", address, v)
		}
	}
	d.forget()
	b.open(s.base + "/next?a=b")
	s.decided(t, "pass session")
	if a := d.asked()[0]; a.key != key || a.query.Get("token") != tick || a.query.Has("code") || a.query.Has("sess") {
		t.Errorf("later: %+v", a)
	}
	addresses, _, err := b.history()
	if err != nil || len(addresses) == 0 {
		t.Fatal(err)
	}
	for _, a := range addresses {
		if strings.Contains(a, "qm_code=e") || strings.Contains(a, d.URL) {
			t.Errorf("Back leads to %s", a)
		}
	}
	// By the browser's default policy another site sees the origin alone; what the page loads after the tag says less.
	b.text(`(document.body.append(Object.assign(new Image, {src: "/pixel?late", referrerPolicy: "unsafe-url"})), 0)`)
	for _, r := range s.requests() {
		if strings.Contains(r.RequestURI, "/pixel?late") && strings.Contains(r.Referer(), "qm_code") {
			t.Errorf("%s was asked for with Referer %s", r.RequestURI, r.Referer())
		}
	}
	b.clean()
}

// uriComponent is JavaScript's encodeURIComponent.
func uriComponent(s string) string {
	return strings.NewReplacer("+", "%20", "%21", "!", "%27", "'", "%28", "(", "%29", ")", "%2A", "*").Replace(url.QueryEscape(s))
}
