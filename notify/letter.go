package notify

import (
	"context"
	"errors"
)

// Letter is one mail. Its texts are plain Unicode: whoever posts it takes care that nothing in them can become a header.
type Letter struct {
	To       string // as ParseAddress gives it
	FromName string // what stands before the server's own address; may be empty
	Subject  string
	Text     string
	HTML     string
	ID       string // the same for the same mail, letters and digits: a second delivery of it can be told
	Withdraw string // where mails of this kind are ended: GET asks, POST does it (RFC 8058)
}

// Post delivers letters. Where its errors say what a server answered, they do not say to whom.
type Post interface {
	// Open reaches the mail server, as far as can be done without a letter. Nothing was sent when it fails.
	Open(ctx context.Context) (Delivery, error)
}

// Delivery is one letter's way: an open connection.
type Delivery interface {
	// Send delivers a letter. An error that wraps ErrRefused or ErrNotNow means that it was certainly not delivered; after any
	// other it may have been.
	Send(ctx context.Context, l Letter) error
	Close()
}

// Errors of Delivery.
var (
	// ErrRefused: the server will not take this letter, now or later.
	ErrRefused = errors.New("notify: the mail server refuses the letter")
	// ErrNotNow: the server did not take it, and may later.
	ErrNotNow = errors.New("notify: the mail server does not take the letter now")
)
