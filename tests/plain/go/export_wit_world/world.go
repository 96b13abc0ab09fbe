// Package export_wit_world is what the bindings call for the world itself.
package export_wit_world

import . "go.bytecodealliance.org/pkg/wit/types"

func Greet(name string, greeting Option[string]) string {
	return greeting.SomeOr("Hello") + ", " + name + "!"
}
