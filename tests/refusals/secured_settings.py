"""Settings of one test against the broker that asks who one is: each service a user of its own."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, cast

from tests.support.naming import Names
from tests.support.rights import grant_all
from tests.support.secured_broker import Protocol, SecuredBroker
from tests.support.settings import settings_against
from tests.support.topics import Topics
from wait_registry.settings.relations import Service
from wait_registry.settings.tree import Settings


class SecuredSettings:
    """Makes settings, the topics they name, and the users in them."""

    def __init__(self, secured: SecuredBroker, postgres_url: str, names: Names) -> None:
        self.secured = secured
        self.topics = Topics(secured.operator)
        self._postgres_url = postgres_url
        self._names = names
        self._passwords: dict[str, str] = {}
        self._users: dict[str, str] = {}

    def user(self, service: str) -> str:
        return self._users.setdefault(service, f"{service}-{uuid.uuid4().hex[:8]}")

    def of(
        self, service: Service, protocol: str, overrides: Mapping[str, Any] | None = None, *, granted: bool = True
    ) -> Settings:
        """Return the settings of a service whose topics exist.

        Args:
            service: who connects; its user is made by and by.
            protocol: of the listener.
            overrides: as for `settings_for`; they win.
            granted: whether the user has the rights of the service.
        """
        of_the_topics = {name: value for name, value in (overrides or {}).items() if not name.startswith("kafka.")}
        operator = settings_against(self.secured.operator, self._postgres_url, self._names, of_the_topics)
        self.topics.create_own(operator)
        user = self.user(service)
        if protocol != "SSL" and user not in self._passwords:
            self._passwords[user] = self.secured.add_user(user)
        security = self.secured.security(cast("Protocol", protocol), user, self._passwords.get(user, ""))
        settings = settings_against(
            self.secured.operator, self._postgres_url, self._names, {**security, **(overrides or {})}
        )
        if granted:
            grant_all(self.secured, user, service, settings)
        return settings

    def close(self) -> None:
        """Delete the topics; users and rights go with the broker."""
        self.topics.close()
