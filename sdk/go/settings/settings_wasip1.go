package settings

import host "sallyport/internal/wit/sallyport_plugin_config"

func read(key string) (string, bool) {
	value := host.Get(key)
	return value.SomeOr(""), value.IsSome()
}
