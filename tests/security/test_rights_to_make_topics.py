"""deploy/kafka/topics.sh: whoever sets the system up makes its topics and looks at them, and can do nothing else."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.support.naming import Names
from tests.support.rights import grant, rights_in
from tests.support.secured_broker import SecuredBroker
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topics import create_topics, require_topics


def test_with_these_rights_the_topics_are_made_and_no_others(
    secured: SecuredBroker, settings_for: SettingsFactory, names: Names
) -> None:
    user = f"{names.prefix}-setup"
    settings = settings_for(secured.security("SASL_SSL", user, secured.add_user(user)))
    own = Topics(secured.operator)
    own.create(settings.processor.topics[0], 1)
    own.delete_at_end(settings.wait.topic, settings.dead_letter.topic)
    with pytest.raises(ConfigurationError, match="CREATE"):
        create_topics(settings)
    named = {"WAIT_TOPIC": settings.wait.topic, "DEAD_LETTER_TOPICS": settings.dead_letter.topic}
    grant(secured, user, rights_in("topics.sh", {**named, "INPUT_TOPICS": settings.processor.topics[0]}))
    assert sorted(create_topics(settings)) == sorted([settings.wait.topic, settings.dead_letter.topic])
    require_topics(settings, "processor")
    other = settings.model_copy(update={"wait": settings.wait.model_copy(update={"topic": names("other")})})
    with pytest.raises(ConfigurationError, match=r"other.*(DESCRIBE|CREATE)"):
        create_topics(other)
    own.close()
