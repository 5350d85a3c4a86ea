"""What a process may lack for a call: nothing is known about the record then, and the process can't go on."""

from __future__ import annotations

from wait_registry.errors import TransientError


class ShortageError(TransientError):
    """The host gives this process too little: end it without an outcome for the record, which stays in the registry."""
