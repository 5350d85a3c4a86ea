"""A proof shows what is hidden to one person, of one dead letter, for ten minutes."""

from __future__ import annotations

from console.access.permission import Reveal
from console.acting.reveals import LIFETIME_S, Reveals
from tests.unit.console.test_permission import olga
from wait_registry.records.operation import Place

KEY = b"k" * 32
PLACE = Place("orders.dlq", 0, 17)
ADA = olga("admin", name="ada")


def test_a_proof_is_for_one_person_place_and_time() -> None:
    now_s = [1_000.0]
    reveals = Reveals(KEY, lambda: now_s[0])
    proof = reveals.proof(Reveal(ADA, PLACE, "shop"))
    assert reveals.holds(ADA, PLACE, proof)
    assert not reveals.holds(olga("admin"), PLACE, proof)
    assert not reveals.holds(ADA, PLACE._replace(offset=1), proof)
    assert not Reveals(b"x" * 32, lambda: 1_000.0).holds(ADA, PLACE, proof)
    now_s[0] += LIFETIME_S
    assert not reveals.holds(ADA, PLACE, proof)


def test_no_other_text_is_a_proof() -> None:
    reveals = Reveals(KEY, lambda: 0.0)
    proof = reveals.proof(Reveal(ADA, PLACE, "shop"))
    for other in ("", ".", "ä", "\ud800", f"{proof}=", f"{proof}A", proof[:-1], proof[1:]):
        assert not reveals.holds(ADA, PLACE, other)
    for index in range(len(proof)):
        changed = f"{proof[:index]}{'A' if proof[index] != 'A' else 'B'}{proof[index + 1 :]}"
        assert not reveals.holds(ADA, PLACE, changed)
