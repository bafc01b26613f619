"""A bind beyond loopback needs clients that prove who they are."""

import pytest

from memory_core.kernel.errors import ConfigurationFault
from memory_core.kernel.settings import Settings
from stack import exposure

OPEN = ["0.0.0.0", "192.168.0.7", "::", "", "box.example"]


def settings(**values: str) -> Settings:
    return Settings(_env_file=None, **values)


def test_on_loopback_there_is_nothing_to_say() -> None:
    assert exposure.check(settings()) is None
    assert exposure.check(settings(mcp_host="localhost", dagster_host="::1")) is None


@pytest.mark.parametrize("name", ["mcp_host", "dagster_host"])
@pytest.mark.parametrize("host", OPEN)
def test_without_authentication_it_is_refused_with_the_remedy(name: str, host: str) -> None:
    with pytest.raises(ConfigurationFault) as refused:
        exposure.check(settings(**{name: host}))

    said = refused.value.message
    assert said.startswith(f"{name.upper()}={host} would let other machines connect")
    assert "AUTH=keys" in said
    assert "127.0.0.1" in said


@pytest.mark.parametrize("host", OPEN)
def test_with_keys_the_mcp_server_may_listen_anywhere(host: str) -> None:
    assert exposure.check(settings(mcp_host=host, auth="keys")) is None


def test_dagster_asks_for_no_key_and_so_it_is_said_in_one_line() -> None:
    said = exposure.check(settings(dagster_host="0.0.0.0", auth="keys"))

    assert said is not None
    assert said.startswith("DAGSTER_HOST=0.0.0.0: other machines can connect")
    assert "\n" not in said


def test_the_mcp_server_alone_does_not_speak_of_dagster() -> None:
    assert exposure.check(settings(dagster_host="0.0.0.0"), dagster=False) is None
