// Package openurl opens pages in the user's browser. It needs [[request.open-url]].
package openurl

// Open opens a page. Where there is no browser, the user is shown the address.
func Open(url string) error { return open(url) }
