"""One POST to the receiver of alerts: whether it took the message."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

import aiohttp
import orjson
from pydantic import SecretStr
from yarl import URL

from sweeper.alerts.forms import Json


class Undelivered(NamedTuple):
    """Why the receiver didn't take a message, and whether it answered at all."""

    reason: str
    answered: bool


def post(url: SecretStr, body: Json, timeout_s: float) -> Undelivered | None:
    """Send a message once.

    A redirection isn't followed: the body would go to an address that is in no settings.

    Args:
        url: of the receiver; it is in no message of an error.
        body: as JSON.
        timeout_s: for the whole exchange, s.

    Returns:
        None if the receiver answered with a status of 200 to 299; else why it didn't take the message.
    """
    return asyncio.run(_post(URL(url.get_secret_value()), orjson.dumps(body), timeout_s))


async def _post(url: URL, body: bytes, timeout_s: float) -> Undelivered | None:
    headers = {"Content-Type": "application/json"}
    try:
        # With the proxy of the environment, because many hosts reach Slack or Teams by one alone.
        async with asyncio.timeout(timeout_s), aiohttp.ClientSession(trust_env=True) as session:
            async with session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                status = response.status
    except TimeoutError:
        return Undelivered(f"{url.host} didn't answer within {timeout_s:g} s", False)
    except (aiohttp.ClientError, OSError) as error:
        # Its own text may have the whole address.
        return Undelivered(f"{url.host} can't be reached ({type(error).__name__})", False)
    if 200 <= status < 300:
        return None
    hint = ", which leads elsewhere: set alerts.webhook.url to the final address" if 300 <= status < 400 else ""
    return Undelivered(f"{url.host} answered with status {status}{hint}", True)
