//go:build !wasip1

package secrets

import "sallyport/internal/contract"

var values = map[string]string{}

// Set sets a secret in a native test. The package has it only there.
func Set(name, value string) { values[name] = value }

func get(name string) (string, error) {
	if value, isSet := values[name]; isSet {
		return value, nil
	}
	return "", contract.Errorf(contract.Denied, "the secret %s is not granted", name)
}
