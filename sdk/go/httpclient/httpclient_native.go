//go:build !wasip1

package httpclient

import "net/http"

// transport is the usual one in native tests, for a server of package httptest.
func transport() http.RoundTripper { return http.DefaultTransport }
