"""What must be known for the braces of ``dead_letter.topic`` to become topics."""

from __future__ import annotations

from wait_registry.settings.root import Settings


def unset_in_braces(settings: Settings) -> list[str]:
    """Return the names of the settings that stand in its braces and aren't set; none: all its topics are known."""
    template, processor = settings.dead_letter.topic, settings.processor
    stands_for = {"{topic}": ("processor.topics", processor.topics), "{group}": ("processor.group", processor.group)}
    return [name for braces, (name, value) in stands_for.items() if braces in template and not value]
