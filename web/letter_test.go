package web_test

import (
	"strings"
	"testing"

	"qm/web"
)

// A mail says the same in plain text and in HTML, in every language, and nothing that an operator typed becomes markup.
func TestLettersInEveryLanguage(t *testing.T) {
	const place, end = "https://queue.example/w/r?lang=x", "https://queue.example/notify/withdraw?t=a.b&lang=x"
	seen := map[string]string{}
	for _, tag := range wanted {
		for _, near := range []bool{true, false} {
			l := web.TurnLetter{Near: near, Locale: tag, Brand: "<b>Shop</b>", RoomName: `Sale & "Co"`, PlaceURL: place, WithdrawURL: end}
			subject, text, html, err := l.Compose()
			if err != nil {
				t.Fatal(err)
			}
			said := sentences(t, tag)
			if !strings.Contains(subject, l.RoomName) || !strings.Contains(text, l.RoomName) || strings.ContainsAny(subject, "{}\n") || strings.ContainsAny(text, "{}") {
				t.Errorf("%s: subject %q, text %q", tag, subject, text)
			}
			for _, part := range []string{place, end, said["letter.browser"], said["letter.why"], l.Brand} {
				if !strings.Contains(text, part) {
					t.Errorf("%s: the text lacks %q", tag, part)
				}
			}
			for _, part := range []string{`href="` + place + `"`, `t=a.b&amp;lang=x"`, `lang="` + tag + `"`, "&lt;b&gt;Shop&lt;/b&gt;", "Sale &amp; "} {
				if !strings.Contains(html, part) {
					t.Errorf("%s: the HTML lacks %s", tag, part)
				}
			}
			if strings.Contains(html, "<b>") || strings.Contains(html, "<script") || strings.Contains(html, "<img") {
				t.Errorf("%s: markup of an operator's, or something that tells when a mail is read", tag)
			}
			if strings.Contains(text, said["next.turn"]) == near {
				t.Errorf("%s: the way in is open, or it is not (near %v)", tag, near)
			}
			if other := seen[subject]; other != "" {
				t.Errorf("%s says %q as %s does", tag, subject, other)
			}
			seen[subject] = tag
		}
	}
}

func TestTheWithdrawalAsks(t *testing.T) {
	for _, tag := range wanted {
		for state, form := range map[web.Withdrawal]bool{web.WithdrawAsk: true, web.WithdrawDone: false, web.WithdrawBad: false} {
			var b strings.Builder
			if err := web.Withdraw(&b, web.WithdrawPage{State: state, Locale: tag, Token: `a.b"><script>`}); err != nil {
				t.Fatal(err)
			}
			page := b.String()
			if !strings.Contains(page, "<h1>"+sentences(t, tag)[string(state)+".h"]+"</h1>") || strings.Contains(page, "<form") != form || strings.Contains(page, "<script>") {
				t.Errorf("%s, %s: %s", tag, state, page)
			}
		}
	}
}
