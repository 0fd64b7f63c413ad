package token

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
)

// box encrypts what is kept beside the journal and must be read again: AES-256-GCM under a key of its own, derived as the others are.
func box(secret string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "qm:seal", 32)
	if err != nil {
		return nil, fmt.Errorf("token: derive the sealing key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("token: make the sealing cipher: %w", err)
	}
	return cipher.NewGCM(block)
}

// KeyID names the current secret, as kid does in tokens.
func (k *Keyring) KeyID() string { return k.current.kid }

// Seal encrypts plain under the current secret. It opens again only with the same about, which says what it is for.
func (k *Keyring) Seal(plain []byte, about string) []byte {
	nonce := make([]byte, k.current.box.NonceSize(), k.current.box.NonceSize()+len(plain)+k.current.box.Overhead())
	rand.Read(nonce)
	return k.current.box.Seal(nonce, nonce, plain, []byte(about))
}

// Open decrypts what Seal made under either secret. old: it was the previous one, and should be sealed anew before that goes.
func (k *Keyring) Open(sealed []byte, about string) (plain []byte, old, ok bool) {
	for _, ks := range []*keys{k.current, k.previous} {
		if ks == nil || len(sealed) < ks.box.NonceSize() {
			continue
		}
		n := ks.box.NonceSize()
		if plain, err := ks.box.Open(nil, sealed[:n], sealed[n:], []byte(about)); err == nil {
			return plain, ks != k.current, true
		}
	}
	return nil, false, false
}
