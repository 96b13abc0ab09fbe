module cron-explain

go 1.26

require sallyport v0.0.0

// The SDK. `sallyport plugin build` writes it.
replace sallyport => ./.build/sdk
