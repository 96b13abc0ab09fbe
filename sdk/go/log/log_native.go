//go:build !wasip1

package log

import (
	"fmt"
	"os"
)

// write stands in for the host in native tests.
func write(level Level, message string) {
	names := [...]string{"trace", "debug", "info", "warn", "error"}
	fmt.Fprintf(os.Stderr, "%s: %s\n", names[level], message)
}
