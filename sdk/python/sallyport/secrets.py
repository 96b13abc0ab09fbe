"""Values that the operator chose to show to this plugin.

A plugin rarely needs it: the host puts a secret into the header of a request, and then no plugin
holds it. The manifest requests the secret with `reveal = true`.
"""

from __future__ import annotations

from . import _host


def get(name: str) -> str:
    """Returns the value of a secret. Every use is on record. Raises Denied or Unavailable."""
    return _host.active().secret(name)
