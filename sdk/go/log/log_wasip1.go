package log

import host "sallyport/internal/wit/sallyport_plugin_log"

func write(level Level, message string) { host.Log(uint8(level), message) }
