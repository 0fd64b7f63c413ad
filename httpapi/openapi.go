package httpapi

import (
	"crypto/sha256"
	"encoding/hex"

	"qm/docs"
)

// openAPI serves the contract as an OpenAPI document.
func (s *Server) openAPI(x *exchange) error {
	sum := sha256.Sum256(docs.OpenAPI)
	x.file("application/json; charset=utf-8", hex.EncodeToString(sum[:]), docs.OpenAPI)
	return nil
}
