// Package export_sallyport_plugin_tools implements the exports of the component. The generated
// package wit_exports imports it by this name.
package export_sallyport_plugin_tools

import (
	"encoding/json"
	"strings"
	"time"

	"sallyport/internal/contract"
	wit "sallyport/internal/runtime/types"
	types "sallyport/internal/wit/sallyport_plugin_types"
)

// ListTools lists the tools of the plugin.
func ListTools() []types.ToolSpec {
	specs := make([]types.ToolSpec, 0, len(contract.Tools))
	for _, tool := range contract.Tools {
		specs = append(specs, types.ToolSpec{
			Name:        tool.Name,
			Title:       optional(tool.Title),
			Description: tool.Description,
			Parameters:  tool.Parameters,
			Output:      optional(tool.Output),
			Hints: types.Hints{
				ReadOnly:    claim(tool.Hints.ReadOnly),
				Destructive: claim(tool.Hints.Destructive),
				Idempotent:  claim(tool.Hints.Idempotent),
				OpenWorld:   claim(tool.Hints.OpenWorld),
			},
		})
	}
	return specs
}

// CallTool calls a tool.
func CallTool(context types.CallContext, name, arguments string) wit.Result[types.ToolOutput, types.ToolError] {
	call := &contract.Call{
		ID:             context.CallId,
		SessionID:      context.SessionId,
		UserID:         context.UserId,
		ConversationID: context.ConversationId.SomeOr(""),
		TimeLeft:       time.Duration(context.DeadlineMs.SomeOr(0)) * time.Millisecond,
	}
	data, output, err := contract.Run(call, name, arguments)
	if err != nil {
		return wit.Err[types.ToolOutput, types.ToolError](toolError(err))
	}
	result := types.ToolOutput{Data: data, Speech: optional(output.Speech)}
	for _, part := range output.Parts {
		result.Content = append(result.Content, content(part))
	}
	return wit.Ok[types.ToolOutput, types.ToolError](result)
}

// text replaces bytes that are not UTF-8, because the host does not take them.
func text(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }

func optional(value string) wit.Option[string] {
	if value == "" {
		return wit.None[string]()
	}
	return wit.Some(text(value))
}

func claim(value *bool) wit.Option[bool] {
	if value == nil {
		return wit.None[bool]()
	}
	return wit.Some(*value)
}

func content(part contract.Part) types.Content {
	blob := types.Blob{MediaType: text(part.MediaType), Data: part.Data}
	switch part.Kind {
	case contract.ImagePart:
		return types.MakeContentImage(blob)
	case contract.AudioPart:
		return types.MakeContentAudio(blob)
	case contract.LinkPart:
		return types.MakeContentLink(types.ResourceLink{Uri: text(part.URI), Title: optional(part.Title)})
	case contract.ResourcePart:
		return types.MakeContentEmbedded(types.ResourceContents{
			Uri:       text(part.URI),
			MediaType: optional(part.MediaType),
			Data:      types.MakeResourceDataText(text(part.Text)),
		})
	}
	return types.MakeContentText(text(part.Text))
}

func toolError(err *contract.Error) types.ToolError {
	message := text(err.Message)
	switch err.Kind {
	case contract.InvalidArguments:
		return types.MakeToolErrorInvalidArguments(message)
	case contract.NotFound:
		return types.MakeToolErrorNotFound(message)
	case contract.Denied:
		return types.MakeToolErrorDenied(message)
	case contract.AuthRequired:
		return types.MakeToolErrorAuthRequired(types.SignIn{
			Message: message, Connection: optional(err.Connection), Scopes: err.Scopes,
		})
	case contract.Unavailable:
		return types.MakeToolErrorUnavailable(message)
	case contract.Other:
		// A map of texts can always be written.
		object, _ := json.Marshal(map[string]string{"kind": "other", "message": message})
		return types.MakeToolErrorOther(string(object))
	}
	return types.MakeToolErrorFailed(message)
}
