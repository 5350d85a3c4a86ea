"""A handler that takes everything."""

from wait_registry.handler import Record


async def handle(record: Record) -> None:
    """Do nothing, with success."""
