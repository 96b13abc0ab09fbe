module plain

go 1.26

require go.bytecodealliance.org/pkg v0.0.0

// The runtime of the bindings. The build writes it.
replace go.bytecodealliance.org/pkg => ./runtime
