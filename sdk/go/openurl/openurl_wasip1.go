package openurl

import (
	"strings"

	"sallyport/internal/contract"
	host "sallyport/internal/wit/sallyport_plugin_open_url"
)

func open(url string) error {
	result := host.Open(strings.ToValidUTF8(url, "\uFFFD"))
	if result.IsOk() {
		return nil
	}
	switch err := result.Err(); err.Tag() {
	case host.ErrorDenied:
		return contract.Errorf(contract.Denied, "%s", err.Denied())
	case host.ErrorInvalid:
		return contract.Errorf(contract.Failed, "%s", err.Invalid())
	default:
		return contract.Errorf(contract.Failed, "the page was not opened: %s", err.Other())
	}
}
