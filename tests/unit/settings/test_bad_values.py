"""Unknown names and values out of bounds are refused in every source, with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.names import nearest, setting_names


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(overrides: dict[str, str] | None = None, env: dict[str, str] | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_settings(overrides or {}, env=env or {})
    return str(caught.value)


@pytest.mark.parametrize(
    ("source", "text", "said"),
    [
        (
            "--set",
            "processor.max_inflight",
            "--set processor.max_inflight: there is no setting processor.max_inflight; "
            "did you mean processor.max_in_flight?",
        ),
        ("--set", "xyzzy", "--set xyzzy: there is no setting xyzzy; `waitreg config --all` lists them all"),
        (
            "environment",
            "WAITREG_PROCESSOR__MAX_INFLIGHT",
            "environment variable WAITREG_PROCESSOR__MAX_INFLIGHT: there is no setting processor.max_inflight; "
            "did you mean WAITREG_PROCESSOR__MAX_IN_FLIGHT?",
        ),
        (
            "environment",
            "WAITREG_LOG_LEVEL",
            "environment variable WAITREG_LOG_LEVEL: there is no setting log_level; did you mean WAITREG_LOG__LEVEL?",
        ),
        ("environment", "WAITREG_PROCESSOR", "environment variable WAITREG_PROCESSOR: there is no setting processor"),
        (
            ".env",
            "WAITREG_WAIT__PARTITION=3",
            ".env: WAITREG_WAIT__PARTITION: there is no setting wait.partition; did you mean WAITREG_WAIT__PARTITIONS?",
        ),
        (
            "waitreg.toml",
            "[sinc]\npoll_interval_s = 2",
            "waitreg.toml: sinc.poll_interval_s: there is no setting sinc.poll_interval_s; "
            "did you mean sink.poll_interval_s?",
        ),
    ],
)
def test_an_unknown_name_has_its_source_and_the_nearest(empty_folder: Path, source: str, text: str, said: str) -> None:
    if source in (".env", "waitreg.toml"):
        (empty_folder / source).write_text(f"{text}\n")
    overrides = {text: "1"} if source == "--set" else {}
    assert refused(overrides, {text: "{}"} if source == "environment" else {}).startswith(said)


def test_all_unknown_names_of_all_sources_are_reported_at_once(empty_folder: Path) -> None:
    (empty_folder / "waitreg.toml").write_text("[wait]\ntopik = 'x'\n")
    text = refused({"log.levle": "INFO"}, {"WAITREG_SINK__POLL_INTERVL_S": "1"})
    for near in ("wait.topic?", "log.level?", "WAITREG_SINK__POLL_INTERVAL_S?"):
        assert near in text


def test_the_value_of_an_unknown_name_is_not_shown() -> None:
    assert "hunter2" not in refused(env={"WAITREG_KAFKA__SECURITY__PASWORD": "hunter2"})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("processor.max_in_flight", "0", "max_in_flight is '0'; allowed: 'auto' or whole number >= 1, <= 100000"),
        ("processor.max_in_flight", "many", "is 'many'; allowed: 'auto' or whole number"),
        ("processor.max_in_flight_min", "0", "is '0'; allowed: whole number >= 1"),
        ("processor.ttl_s", "-1", "processor.ttl_s is '-1'; allowed: number > 0 s"),
        ("processor.ttl_s", "1e12", "processor.ttl_s is '1e12'; allowed: number > 0 s, <= 315360000 s"),
        ("dead_letter.retention_ms", "0", "dead_letter.retention_ms is '0'; allowed: whole number >= -1 ms"),
        ("dead_letter.retention_ms", "3599999", "saw less than an hour, expected 3600000 or more, or -1"),
        ("sweeper.transaction_timeout_ms", "60000", "whole number >= 1000 ms, <= 30000 ms"),
        ("kafka.security.protocol", "TLS", "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ("postgres.schema", "Shop", "like ^[a-z_][a-z0-9_]*$"),
        ("spark.driver_memory", "lots", r"like ^\d+[mg]$"),
        ("processor.http.retry_statuses", "500,five", "is ['500', 'five']; allowed: list of whole number"),
        ("wait.topic", "", "allowed: text not empty"),
        ("processor.topics", "[orders", "begins like a JSON list but isn't one"),
        ("kafka.librdkafka", "debug=all", "kafka.librdkafka is a table, given as a JSON object"),
    ],
)
def test_a_bad_value_is_answered_with_what_was_seen_and_what_is_allowed(name: str, value: str, says: str) -> None:
    text = refused({name: value})
    assert says in text
    assert f"--set {name}: " in text


@pytest.mark.guarantee("P8.8")
@pytest.mark.parametrize("value", ["inf", "nan"])
@pytest.mark.parametrize("name", ["processor.ttl_s", "processor.handler_timeout_s", "sweeper.interval_s"])
def test_a_time_that_is_infinite_or_not_a_number_is_refused(name: str, value: str, empty_folder: Path) -> None:
    assert f"{name} is {value!r}; allowed: number > 0 s" in refused({name: value})
    section, _, key = name.partition(".")
    (empty_folder / "waitreg.toml").write_text(f"[{section}]\n{key} = {value}\n")
    assert "Input should be a finite number" in refused()


def test_a_bad_value_says_what_the_setting_is() -> None:
    assert "from registration to expiry, s" in refused({"processor.ttl_s": "soon"})


def test_a_bad_value_names_the_source_that_won() -> None:
    text = refused(env={"WAITREG_WAIT__PARTITIONS": "none"})
    assert text.startswith("environment variable WAITREG_WAIT__PARTITIONS: wait.partitions is 'none'")


def test_several_bad_values_are_reported_at_once() -> None:
    text = refused({"wait.partitions": "0", "telemetry.port": "70000"})
    assert len(text.splitlines()) == 2


def test_an_endpoint_of_traces_that_is_no_url_is_refused() -> None:
    assert refused({"telemetry.traces_endpoint": "collector:4318"}).startswith(
        "--set telemetry.traces_endpoint: telemetry.traces_endpoint is 'collector:4318'; allowed: text like ^(https?://"
    )


@pytest.mark.parametrize("name", setting_names())
def test_every_setting_is_found_again_after_a_slip_of_the_finger(name: str) -> None:
    slipped = name[:-1]
    found = nearest(slipped)
    assert found is not None
    assert found.removesuffix("_file").startswith(slipped[:-2])
