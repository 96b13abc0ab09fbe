// Package export_acme_typed_echo is what the bindings call for the interface `echo`.
package export_acme_typed_echo

import (
	. "plain/acme_typed_echo"

	. "go.bytecodealliance.org/pkg/wit/types"
)

func Integers(a int8, b uint8, c int16, d uint16, e int32, f uint32, g int64, h uint64) (int8, uint8, int16, uint16, int32, uint32, int64, uint64) {
	return a, b, c, d, e, f, g, h
}

func Floats(narrow float32, wide float64) (float32, float64) { return narrow, wide }

func Texts(letter rune, text string, truth bool) (rune, string, bool) { return letter, text, truth }

func Bytes(bytes []uint8) []uint8 { return bytes }

func Places(places []Place) []Place { return places }

func Shapes(shapes []Shape) []Shape { return shapes }

func Choices(colour Colour, days Days) (Colour, Days) { return colour, days }

func Options(plain Option[uint32], nested Option[Option[string]]) (Option[uint32], Option[Option[string]]) {
	return plain, nested
}

func Results(outcome Result[uint32, string], empty Result[Unit, Unit]) (Result[uint32, string], Result[Unit, Unit]) {
	return outcome, empty
}
