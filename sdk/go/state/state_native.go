//go:build !wasip1

package state

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"time"
)

// The stand-in for the host in native tests.
var (
	entries     = map[string]Entry{}
	lastVersion uint64
)

// Clear forgets all values in a native test. The package has it only there.
func Clear() { clear(entries) }

func load(key string) (Entry, bool, error) {
	entry, found := entries[key]
	return Entry{bytes.Clone(entry.Value), entry.Version}, found, nil
}

func set(key string, value []byte, _ time.Duration) error {
	lastVersion++
	entries[key] = Entry{bytes.Clone(value), lastVersion}
	return nil
}

func replace(key string, expected uint64, value []byte) (uint64, error) {
	if present := entries[key].Version; present != expected {
		return 0, &ConflictError{present}
	}
	return lastVersion + 1, set(key, value, 0)
}

func remove(key string) (bool, error) {
	_, found := entries[key]
	delete(entries, key)
	return found, nil
}

func keys(prefix, after string, limit int) ([]string, error) {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		if strings.HasPrefix(key, prefix) && key > after && len(found) < limit {
			found = append(found, key)
		}
	}
	return found, nil
}
