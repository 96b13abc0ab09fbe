// Package secrets reads secrets that the policy reveals to this plugin. It needs
// [[request.secrets]] with reveal = true. A secret that the host sends for the plugin needs neither.
package secrets

// Get reads the value of a secret.
func Get(name string) (string, error) { return get(name) }
