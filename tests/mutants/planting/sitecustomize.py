"""Plant the chosen mutant: with this folder on PYTHONPATH, Python imports this module before any other."""

from __future__ import annotations

from tests.mutants.mutant import plant_chosen

plant_chosen()
