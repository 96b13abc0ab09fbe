// The plain component in Go: each value comes back as it came.
package main

import _ "plain/wit_exports"

func main() {}
