package progress

import (
	wit "sallyport/internal/runtime/types"
	host "sallyport/internal/wit/sallyport_plugin_progress"
)

func report(part *float64, message string) {
	done, text := wit.None[float64](), wit.None[string]()
	if part != nil {
		done = wit.Some(*part)
	}
	if message != "" {
		text = wit.Some(message)
	}
	host.Report(done, text)
}
