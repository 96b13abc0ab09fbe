//go:build !wasip1

package openurl

// Opened are the addresses of a native test. The package has it only there.
var Opened []string

func open(url string) error {
	Opened = append(Opened, url)
	return nil
}
