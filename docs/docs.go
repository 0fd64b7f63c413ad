// Package docs is what the guides are made of, as this build carries it.
package docs

import _ "embed"

// OpenAPI is the OpenAPI 3.1 document of the routes that visitors, edges and connectors may ask. It is written by hand, here and nowhere
// else: the reference pages are made of it, and httpapi's tests hold the running server to it. Do not write to it.
//
//go:embed openapi.json
var OpenAPI []byte
