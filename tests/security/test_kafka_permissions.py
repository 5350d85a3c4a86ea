"""deploy/kafka: what the files of the services give is what stands here, each right with its reason and nothing else.

Where a test takes the right away and shows what breaks, it is named. A right that a file gives beyond these, or on more
than these, turns this red: say here what it is for, and show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from tests.conftest import SettingsFactory
from tests.evidence import all_tests
from tests.support.naming import Names
from tests.support.rights import Right, grant, rights_in
from tests.support.secured_broker import SecuredBroker
from tests.support.topics import Topics
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topics import create_topics, require_topics
from wait_registry.records.topics import redelivery_topic

AT_START = "test_each_permission_missing_for_a_start_is_named"
OF_A_PROCESSOR = "test_a_processor_without_a_right_ends_and_has_committed_nothing"
EMPTYING = "test_a_processor_that_may_not_delete_says_that_retry_topics_fill"
TO_WRITE = "test_a_processor_without_write_ends_at_a_record"
OF_A_SINKS_GROUP = "test_a_sink_without_commit_permission_says_that_lag_is_not_shown"
OF_ANOTHER_SINK = "test_a_sink_that_cannot_see_the_connect_group_trusts_the_setting"
OF_A_SWEEPER = "test_a_sweeper_needs_each_right_on_the_wait_topic"
OF_A_TAIL = "test_reading_a_long_tail_needs_permission_on_the_group"
TRANSACTIONS = "test_a_sweeper_without_transactions_exports_nothing"
BARRED = "test_rows_of_a_forbidden_topic_are_unsendable"
OF_A_REWIND = "test_a_rewind_without_a_permission_names_it_and_moves_nothing"
OF_A_REDRIVE = "test_a_redrive_without_a_permission_names_it_and_sends_nothing"
OF_A_DOCTOR = "test_doctor_names_each_permission_of_a_redrive_that_is_missing"
OF_A_PURGE = "test_a_purge_without_a_permission_names_it_and_deletes_nothing"
UNSENT = "test_a_topic_that_may_not_be_written_to_is_a_category"
LIMITS = "every start compares the topic's limits with the settings"

NAMES = {
    "GROUP": "group",
    "INPUT_TOPICS": "input",
    "WAIT_TOPIC": "wait",
    "DEAD_LETTER_TOPICS": "dlq",
    "REDELIVERY_TOPICS": "redelivery",
    "CONSUMER_GROUPS": "group",
    "OPERATIONS_TOPIC": "operations",
}
# Right -> what it is for, and the test that takes it away; none where it is the right of another line on another topic.
NEEDED: Mapping[str, Mapping[str, tuple[str, str | None]]] = {
    "processor": {
        "READ topic input": ("to consume", OF_A_PROCESSOR),
        "DESCRIBE_CONFIGS topic input": (LIMITS, OF_A_PROCESSOR),
        "READ topic input.group.*": ("to consume retry and redelivery topics", None),
        "WRITE topic input.group.*": ("retry records", None),
        "DELETE topic input.group.*": ("to delete there what is committed; works without", EMPTYING),
        "DESCRIBE_CONFIGS topic input.group.*": (LIMITS, None),
        "READ group group": ("to join, to commit, to ask where it stands", OF_A_PROCESSOR),
        "WRITE topic wait": ("wait records and tombstones", TO_WRITE),
        "DESCRIBE_CONFIGS topic wait": (LIMITS, AT_START),
        "WRITE topic dlq": ("dead letters", OF_A_PROCESSOR),
        "DESCRIBE_CONFIGS topic dlq": (LIMITS, AT_START),
    },
    "sink": {
        "READ topic wait": ("the view is made of it", AT_START),
        "DESCRIBE_CONFIGS topic wait": (LIMITS, AT_START),
        "READ topic dlq": ("the table dead_letter is made of it", AT_START),
        "DESCRIBE_CONFIGS topic dlq": (LIMITS, AT_START),
        "READ topic operations": ("the tables operation and dead_letter_mark are made of it", AT_START),
        "DESCRIBE_CONFIGS topic operations": (LIMITS, AT_START),
        "READ group waitreg.sink.wait": ("its offsets are mirrored for lag tools", OF_A_SINKS_GROUP),
        "DESCRIBE group connect-wait.sink": (
            "to start only without a Kafka Connect sink; works without",
            OF_ANOTHER_SINK,
        ),
    },
    "sweeper": {
        "READ topic wait": ("the tail", OF_A_SWEEPER),
        "WRITE topic wait": ("tombstones", OF_A_SWEEPER),
        "DESCRIBE_CONFIGS topic wait": (LIMITS, AT_START),
        "WRITE topic dlq": ("dead letters", BARRED),
        "DESCRIBE_CONFIGS topic dlq": (LIMITS, AT_START),
        "WRITE topic redelivery": ("records of groups that want them again", None),
        "DESCRIBE_CONFIGS topic redelivery": ("what is too large for it is dead-lettered instead", None),
        "DESCRIBE group waitreg.sweep.wait": ("the client that reads the tail asks for the group it names", OF_A_TAIL),
        # WRITE and the DESCRIBE that it brings along are all that there is to a transactional id.
        "WRITE transactional_id waitreg.sweep.wait.*": ("to fence, and to export in a transaction", TRANSACTIONS),
        "DESCRIBE group group": ("to warn of groups with another allowance for clocks; works without", BARRED),
    },
    "redrive": {
        "READ topic operations": ("the marks that the tables don't show yet", OF_A_REDRIVE),
        "WRITE topic operations": ("marks", OF_A_REDRIVE),
        "DESCRIBE_CONFIGS topic operations": ("`waitreg doctor redrive` compares its configuration", OF_A_DOCTOR),
        "WRITE topic redelivery": ("the redriven records", UNSENT),
        "DESCRIBE_CONFIGS topic redelivery": ("how large a record it takes", UNSENT),
        "DESCRIBE topic wait": ("how far the tables are behind it", OF_A_DOCTOR),
        "DESCRIBE topic dlq": ("how far the tables are behind it", OF_A_DOCTOR),
        "DESCRIBE group waitreg.redrive.operations": ("the client that reads the marks names it", OF_A_REDRIVE),
        "DESCRIBE group group": ("whether a member reads what is sent", OF_A_REDRIVE),
        "WRITE transactional_id waitreg.redrive.group": ("to fence, and to send in a transaction", OF_A_REDRIVE),
    },
    "purge": {
        "READ topic dlq": ("its records are compared with the tables", OF_A_PURGE),
        "DELETE topic dlq": ("to delete its records", OF_A_PURGE),
        "READ topic operations": ("marks that the tables don't show yet", OF_A_PURGE),
        "WRITE topic operations": ("who deletes what, and why", OF_A_PURGE),
        "DESCRIBE group waitreg.redrive.operations": ("the client that reads the marks names it", OF_A_PURGE),
    },
    "rewind": {
        "READ topic input": ("to commit offsets of it", OF_A_REWIND),
        "READ group group": ("to commit for the group, and to see its members", OF_A_REWIND),
        "DESCRIBE topic wait": ("its identity is in the metadata of the offsets", OF_A_REWIND),
    },
}


def _told(right: Right) -> Iterator[str]:
    for operation in right.operations:
        yield f"{operation} {right.resource} {right.name}{'*' if right.prefixed else ''}"


@pytest.mark.parametrize("service", NEEDED)
def test_the_file_of_a_service_gives_these_rights_and_no_others(service: str) -> None:
    given = [told for right in rights_in(f"{service}.sh", NAMES) for told in _told(right)]
    assert sorted(given) == sorted(NEEDED[service])


def test_every_test_that_is_said_to_show_a_right_exists() -> None:
    shown = {test for rights in NEEDED.values() for _, test in rights.values() if test is not None}
    assert shown - {test.name for test in all_tests()} == set()


def test_topics_sh_grants_what_creating_the_topics_takes_and_no_more(
    secured: SecuredBroker, settings_for: SettingsFactory, names: Names
) -> None:
    user = f"{names.prefix}-setup"
    settings = settings_for(secured.security("SASL_SSL", user, secured.add_user(user)))
    own = Topics(secured.operator)
    own.create(settings.processor.topics[0], 1)
    again = redelivery_topic(settings.processor.topics[0], settings.processor.group)
    made = sorted([settings.wait.topic, settings.dead_letter.topic, settings.operations.topic, again])
    own.delete_at_end(*made)
    with pytest.raises(ConfigurationError, match="CREATE"):
        create_topics(settings)
    named = {"WAIT_TOPIC": settings.wait.topic, "DEAD_LETTER_TOPICS": settings.dead_letter.topic}
    named |= {"OPERATIONS_TOPIC": settings.operations.topic, "REDELIVERY_TOPICS": again}
    grant(secured, user, rights_in("topics.sh", {**named, "INPUT_TOPICS": settings.processor.topics[0]}))
    assert sorted(create_topics(settings)) == made
    require_topics(settings, "processor")
    other = settings.model_copy(update={"wait": settings.wait.model_copy(update={"topic": names("other")})})
    with pytest.raises(ConfigurationError, match=r"other.*(DESCRIBE|CREATE)"):
        create_topics(other)
    own.close()
