"""Remove the chosen safeguard: with this folder on PYTHONPATH, Python imports this module before any other."""

from __future__ import annotations

from tests.safeguards.catalogue import remove_chosen

remove_chosen()
