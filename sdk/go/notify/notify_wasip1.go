package notify

import (
	"sallyport/internal/contract"
	wit "sallyport/internal/runtime/types"
	host "sallyport/internal/wit/sallyport_plugin_notify"
)

func send(text, speech string) error {
	message := host.Message{Text: text, Audience: host.MakeAudienceConversation()}
	if speech != "" {
		message.Speech = wit.Some(speech)
	}
	result := host.Send(message)
	if result.IsOk() {
		return nil
	}
	switch err := result.Err(); err.Tag() {
	case host.ErrorNotGranted:
		return contract.Errorf(contract.Denied, "messages are not granted")
	case host.ErrorInvalid:
		return contract.Errorf(contract.Failed, "%s", err.Invalid())
	case host.ErrorTooMany:
		return contract.Errorf(contract.Unavailable, "%s", err.TooMany())
	case host.ErrorUnavailable:
		return contract.Errorf(contract.Unavailable, "%s", err.Unavailable())
	default:
		return contract.Errorf(contract.Failed, "the message was not sent: %s", err.Other())
	}
}
