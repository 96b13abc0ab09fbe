package secrets

import (
	"sallyport/internal/contract"
	host "sallyport/internal/wit/sallyport_plugin_secrets"
)

func get(name string) (string, error) {
	result := host.Get(name)
	if result.IsOk() {
		return result.Ok(), nil
	}
	switch err := result.Err(); err.Tag() {
	case host.ErrorNotGranted:
		return "", contract.Errorf(contract.Denied, "the secret %s is not granted", name)
	case host.ErrorUnavailable:
		return "", contract.Errorf(contract.Unavailable, "%s", err.Unavailable())
	default:
		return "", contract.Errorf(contract.Failed, "the secret %s cannot be read: %s", name, err.Other())
	}
}
