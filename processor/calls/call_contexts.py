"""The context variables of calls: what one call sets, no other call sees."""

from __future__ import annotations

import contextvars
import decimal


class CallContexts:
    """Makes contexts as they are now, where this object is made: what entering the handler has set is in them."""

    def __init__(self) -> None:
        self._base = contextvars.copy_context()
        # A copied context shares its objects, and the precision of decimals is an attribute of one of them.
        self._decimal = next((one for one in self._base.values() if isinstance(one, decimal.Context)), None)

    def fresh(self) -> contextvars.Context:
        """Return a context that no other call shares."""
        context = self._base.copy()
        if self._decimal is not None:
            context.run(decimal.setcontext, self._decimal.copy())
        return context
