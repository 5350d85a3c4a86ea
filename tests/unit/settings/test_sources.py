"""Settings come from command line, environment, .env, waitreg.toml and defaults, in this order of precedence."""

from __future__ import annotations

import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.settings.kafka import SecurityProtocol
from wait_registry.settings.loading import load_settings
from wait_registry.settings.masking import value_of
from wait_registry.settings.names import variable_of
from wait_registry.settings.tree import Settings
from waitreg.local.account import unprivileged_account


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_without_any_source_the_defaults_hold() -> None:
    assert load_settings(env={}) == Settings()


def test_each_source_wins_over_those_below_it(empty_folder: Path) -> None:
    (empty_folder / "waitreg.toml").write_text(
        "[processor]\nttl_s = 1\nmargin_s = 1\nmax_attempts = 1\nlinger_ms = 1\n"
    )
    (empty_folder / ".env").write_text(
        "WAITREG_PROCESSOR__MARGIN_S=2\nWAITREG_PROCESSOR__MAX_ATTEMPTS=2\nWAITREG_PROCESSOR__LINGER_MS=2\n"
    )
    environment = {"WAITREG_PROCESSOR__MAX_ATTEMPTS": "3", "WAITREG_PROCESSOR__LINGER_MS": "3"}
    processor = load_settings({"processor.linger_ms": "4"}, env=environment).processor
    assert (processor.ttl_s, processor.margin_s, processor.max_attempts, processor.linger_ms) == (1, 2, 3, 4)


def test_the_process_s_own_environment_is_read_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAITREG_LOG__LEVEL", "DEBUG")
    assert load_settings().log.level == "DEBUG"


def test_settings_created_in_code_read_no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAITREG_LOG__LEVEL", "DEBUG")
    assert Settings().log.level == "INFO"


def test_a_given_file_is_read_instead_of_the_one_in_the_folder(empty_folder: Path) -> None:
    (empty_folder / "waitreg.toml").write_text("[wait]\npartitions = 1\n")
    other = empty_folder / "other.toml"
    other.write_text("[wait]\npartitions = 2\n")
    assert load_settings(config_file=other, env={}).wait.partitions == 2


def test_a_given_file_that_is_not_there_is_refused(empty_folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"can't read the settings file .*absent\.toml: No such file"):
        load_settings(config_file=empty_folder / "absent.toml", env={})


def test_a_file_that_is_no_toml_is_refused_with_the_line(empty_folder: Path) -> None:
    (empty_folder / "waitreg.toml").write_text("[processor\n")
    with pytest.raises(ConfigurationError, match=r"waitreg\.toml isn't TOML: .*line 1"):
        load_settings(env={})


def test_variables_of_others_are_left_alone(empty_folder: Path) -> None:
    (empty_folder / ".env").write_text("COMPOSE_PROJECT_NAME=shop\nWAITREG_LOG__LEVEL=ERROR\n")
    assert load_settings(env={"PATH": "/bin", "KAFKA_OPTS": "x"}).log.level == "ERROR"


def test_a_dollar_sign_in_dotenv_stays_a_dollar_sign(empty_folder: Path) -> None:
    (empty_folder / ".env").write_text("WAITREG_KAFKA__SECURITY__PASSWORD='a${HOME}b'\n")
    password = load_settings(env={}).kafka.security.password
    assert password is not None
    assert password.get_secret_value() == "a${HOME}b"


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("processor.topics", "orders,refunds", ("orders", "refunds")),
        ("processor.topics", "orders, refunds ", ("orders", "refunds")),
        ("processor.topics", '["orders", "refunds"]', ("orders", "refunds")),
        ("processor.http.retry_statuses", "500,503", (500, 503)),
        ("postgres.schema", "shop", "shop"),
        ("kafka.security.protocol", "SASL_SSL", SecurityProtocol.SASL_SSL),
        ("kafka.security.mechanism", "", None),
        ("spark.conf", '{"spark.executor.memoryOverhead": "1g"}', {"spark.executor.memoryOverhead": "1g"}),
    ],
)
def test_a_text_becomes_a_value_of_the_setting_s_type(name: str, text: str, value: object) -> None:
    assert value_of(load_settings({name: text}, env={}), name) == value
    assert value_of(load_settings(env={variable_of(name): text}), name) == value


def test_tables_are_merged_key_by_key_over_all_sources(empty_folder: Path) -> None:
    (empty_folder / "waitreg.toml").write_text(
        '[kafka.librdkafka]\n"socket.timeout.ms" = 1\nsocket.keepalive.enable = true\ndebug = "broker"\n'
    )
    environment = {
        "WAITREG_KAFKA__LIBRDKAFKA__SOCKET_TIMEOUT_MS": "2",
        "WAITREG_KAFKA__LIBRDKAFKA__fetch.min.bytes": "3",
    }
    settings = load_settings({"kafka.librdkafka.debug": "cgrp"}, env=environment)
    assert settings.kafka.librdkafka == {
        "socket.timeout.ms": "2",
        "socket.keepalive.enable": True,
        "debug": "cgrp",
        "fetch.min.bytes": "3",
    }


def test_secrets_and_certificates_are_read_from_files(empty_folder: Path) -> None:
    (empty_folder / "password").write_text("pa ss\n")
    (empty_folder / "ca.pem").write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    conf = empty_folder / "conf"
    conf.mkdir()
    (conf / "waitreg.toml").write_text('[kafka.security]\nca_file = "../ca.pem"\n')
    environment = {"WAITREG_KAFKA__SECURITY__PASSWORD_FILE": "password"}
    security = load_settings(config_file=conf / "waitreg.toml", env=environment).kafka.security
    assert security.password is not None
    assert security.password.get_secret_value() == "pa ss"
    assert security.ca is not None
    assert security.ca.startswith("-----BEGIN CERTIFICATE-----\nx")


def test_a_secret_given_as_text_and_as_file_at_once_is_refused() -> None:
    environment = {"WAITREG_POSTGRES__URL": "postgresql://x", "WAITREG_POSTGRES__URL_FILE": __file__}
    with pytest.raises(ConfigurationError, match="give only one of them"):
        load_settings(env=environment)


def test_a_secret_file_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"URL_FILE: can't read nowhere: No such file"):
        load_settings(env={"WAITREG_POSTGRES__URL_FILE": "nowhere"})


@pytest.mark.parametrize("name", ["processor.topics", "postgres.url", "kafka.librdkafka.gr\udcfcn", "processor.group"])
@pytest.mark.parametrize("text", ["gr\udcfcn,a", "a\0"])
def test_a_value_that_is_not_text_is_refused_and_not_shown(name: str, text: str) -> None:
    for source in ({"overrides": {name: text}}, {"env": {variable_of(name): text}}):
        with pytest.raises(ConfigurationError, match=r"isn't text in UTF-8 without NUL: write it in UTF-8") as refused:
            load_settings(**{"env": {}, **source})  # type: ignore[arg-type]
        assert text not in str(refused.value)


def test_the_loaded_tree_is_frozen_and_equal_trees_are_equal() -> None:
    settings = load_settings({"wait.partitions": "3"}, env={})
    with pytest.raises(ValueError, match="frozen"):
        settings.wait.partitions = 4  # type: ignore[misc]
    assert settings == load_settings(env={"WAITREG_WAIT__PARTITIONS": "3"})


def _load_in_forbidden(folder: Path) -> None:
    os.chdir(folder)
    folder.chmod(0)
    account = unprivileged_account()
    if account is not None:  # no permission binds root
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
    load_settings(env={})


@pytest.mark.parametrize("file", ["waitreg.toml", None])
def test_a_forbidden_folder_is_reported_without_a_traceback(tmp_path: Path, file: str | None) -> None:
    if file is not None:
        (tmp_path / file).write_text('[wait]\ntopic = "other"\n')
    load_settings(env={})
    said = r"can't look for waitreg\.toml in the current folder: Permission denied\..*a folder that this user may enter"
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("fork")) as child:
            with pytest.raises(ConfigurationError, match=said):
                child.submit(_load_in_forbidden, tmp_path).result(60)
    finally:
        tmp_path.chmod(0o700)
