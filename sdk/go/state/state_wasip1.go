package state

import (
	"time"

	"sallyport/internal/contract"
	wit "sallyport/internal/runtime/types"
	host "sallyport/internal/wit/sallyport_plugin_state"
)

func toError(err host.Error) error {
	switch err.Tag() {
	case host.ErrorNotGranted:
		return contract.Errorf(contract.Denied, "state is not granted")
	case host.ErrorInvalid:
		return contract.Errorf(contract.Failed, "%s", err.Invalid())
	case host.ErrorQuotaReached:
		return contract.Errorf(contract.Failed, "%s", err.QuotaReached())
	case host.ErrorConflict:
		return &ConflictError{err.Conflict().SomeOr(0)}
	case host.ErrorUnavailable:
		return contract.Errorf(contract.Unavailable, "%s", err.Unavailable())
	}
	return contract.Errorf(contract.Failed, "state failed: %s", err.Other())
}

func load(key string) (Entry, bool, error) {
	result := host.Get(key)
	if result.IsErr() {
		return Entry{}, false, toError(result.Err())
	}
	entry := result.Ok()
	if entry.IsNone() {
		return Entry{}, false, nil
	}
	return Entry{entry.Some().Value, entry.Some().Version}, true, nil
}

func set(key string, value []byte, keep time.Duration) error {
	expires := wit.None[uint64]()
	if keep > 0 {
		expires = wit.Some(uint64(max(keep.Milliseconds(), 1)))
	}
	if result := host.Set(key, value, expires); result.IsErr() {
		return toError(result.Err())
	}
	return nil
}

func replace(key string, expected uint64, value []byte) (uint64, error) {
	before := host.MakeExpectedNothing()
	if expected != 0 {
		before = host.MakeExpectedVersion(expected)
	}
	result := host.CompareAndSet(key, before, value, wit.None[uint64]())
	if result.IsErr() {
		return 0, toError(result.Err())
	}
	return result.Ok(), nil
}

func remove(key string) (bool, error) {
	result := host.Remove(key)
	if result.IsErr() {
		return false, toError(result.Err())
	}
	return result.Ok(), nil
}

func keys(prefix, after string, limit int) ([]string, error) {
	from := wit.None[string]()
	if after != "" {
		from = wit.Some(after)
	}
	result := host.ListKeys(prefix, from, uint32(limit))
	if result.IsErr() {
		return nil, toError(result.Err())
	}
	return result.Ok().Keys, nil
}
