"""What becomes of an order, without Kafka: `python -m pytest test_orders.py` in this folder."""

from __future__ import annotations

from orders import Order, ReserveStock
from waitreg.testing import DeadLetter, Discarded, outcome_of, record

ITEMS = [{"article": "tea", "quantity": 1, "price": "4.50"}]


def test_a_cancelled_order_is_discarded() -> None:
    order = Order.model_validate({"id": "o-1", "status": "cancelled", "items": ITEMS})
    assert outcome_of(ReserveStock, record(order)) == Discarded("the order was cancelled")


def test_an_order_without_items_is_malformed() -> None:
    outcome = outcome_of(ReserveStock, record({"id": "o-1", "status": "placed", "items": []}))
    assert isinstance(outcome, DeadLetter)
    assert outcome.reason == "malformed"
    assert (
        str(outcome.error) == "the value isn't Order: items: List should have at least 1 item after validation, not 0"
    )
