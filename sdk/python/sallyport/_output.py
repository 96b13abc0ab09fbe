"""The result of a tool: data for the model, and optional parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class ContentPart:
    """A part of an output besides its data.

    `kind` is text, image, audio, link, resource or other. Use the methods of `Output` to add parts.
    """

    kind: str
    text: str = ""
    data: bytes | None = None
    media_type: str | None = None
    name: str | None = None
    uri: str = ""
    description: str | None = None
    value: dict[str, Any] | None = None


@dataclass
class Output:
    """Data for the model, with further parts and a sentence to be spoken.

    A tool that returns only data can return the data itself.
    """

    data: Any = None
    content: list[ContentPart] = field(default_factory=list)
    speech: str | None = None

    def text(self, text: str) -> Output:
        """Adds plain text."""
        return self._add(ContentPart("text", text=text))

    def image(self, data: bytes, media_type: str, name: str | None = None) -> Output:
        """Adds a picture."""
        return self._add(ContentPart("image", data=data, media_type=media_type, name=name))

    def audio(self, data: bytes, media_type: str, name: str | None = None) -> Output:
        """Adds a sound."""
        return self._add(ContentPart("audio", data=data, media_type=media_type, name=name))

    def link(
        self,
        uri: str,
        title: str | None = None,
        media_type: str | None = None,
        description: str | None = None,
    ) -> Output:
        """Adds a reference. The host shows it and never fetches it."""
        part = ContentPart("link", uri=uri, name=title, media_type=media_type)
        part.description = description
        return self._add(part)

    def resource(self, uri: str, data: str | bytes, media_type: str | None = None) -> Output:
        """Adds a resource with its text or bytes."""
        part = ContentPart("resource", uri=uri, media_type=media_type)
        if isinstance(data, str):
            part.text = data
        else:
            part.data = data
        return self._add(part)

    def other(self, value: dict[str, Any]) -> Output:
        """Adds anything else, as an object with a `type`."""
        return self._add(ContentPart("other", value=value))

    def say(self, sentence: str) -> Output:
        """Sets the sentence that is spoken to the user as it is, in a spoken session."""
        self.speech = sentence
        return self

    def _add(self, part: ContentPart) -> Output:
        self.content.append(part)
        return self
