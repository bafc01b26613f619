"""A bind beyond loopback is said in one line."""

import pytest

from memory_core.kernel.settings import Settings
from stack import exposure


def warning(**hosts: str) -> str | None:
    return exposure.warning(Settings(_env_file=None, **hosts))


def test_on_loopback_there_is_nothing_to_say() -> None:
    assert warning() is None
    assert warning(mcp_host="localhost", dagster_host="::1") is None


@pytest.mark.parametrize("name", ["mcp_host", "dagster_host"])
@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.0.7", "::"])
def test_it_names_the_variable_that_opens_it(name: str, host: str) -> None:
    said = warning(**{name: host})
    assert said is not None
    assert said.startswith(f"{name.upper()}={host}: other machines can connect")
    assert "\n" not in said


def test_the_mcp_server_alone_does_not_speak_of_dagster() -> None:
    settings = Settings(_env_file=None, dagster_host="0.0.0.0")
    assert exposure.warning(settings, dagster=False) is None
