// Package httpclient sends HTTP requests through the host, which decides about each of them. It
// needs [[request.net]].
package httpclient

import (
	"net/http"
)

// New makes a client whose requests pass the host. It does not follow redirects beyond ten, as
// http.Client never does; the host decides about each address anew.
func New() *http.Client { return &http.Client{Transport: Transport()} }

// Transport returns the transport of New, for a client of your own.
func Transport() http.RoundTripper { return transport() }
