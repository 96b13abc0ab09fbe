// Package log writes to the log of the host.
package log

import (
	"fmt"
	"strings"
)

// A Level says how important a line is.
type Level uint8

// The levels of the host.
const (
	LevelTrace Level = iota
	LevelDebug
	LevelInfo
	LevelWarn
	LevelError
)

// Logf writes a line. The format is that of fmt.Sprintf.
func Logf(level Level, format string, args ...any) {
	write(level, strings.ToValidUTF8(fmt.Sprintf(format, args...), "\uFFFD"))
}

// Tracef writes a very fine detail.
func Tracef(format string, args ...any) { Logf(LevelTrace, format, args...) }

// Debugf writes a line for the plugin's author.
func Debugf(format string, args ...any) { Logf(LevelDebug, format, args...) }

// Infof writes a line that is worth knowing.
func Infof(format string, args ...any) { Logf(LevelInfo, format, args...) }

// Warnf writes that something is off.
func Warnf(format string, args ...any) { Logf(LevelWarn, format, args...) }

// Errorf writes that something failed.
func Errorf(format string, args ...any) { Logf(LevelError, format, args...) }
