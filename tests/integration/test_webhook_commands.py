"""`mcp-memory webhooks …` as a person uses it."""

import pytest

from memory_core.kernel.errors import InvalidInput
from tests.integration.commands import Command, answer
from tests.webhook_receiver import Receiver


def test_a_subscription_from_its_first_message_to_its_end(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEBHOOK_ALLOW_PRIVATE", "true")
    with Receiver() as receiver:
        made = answer(command, "webhooks", "add", receiver.url, "--types", "memory.*")
        id_ = made["subscription_id"]
        assert answer(command, "webhooks", "test", id_[:8])["status"] == 200
        rotated = answer(command, "webhooks", "rotate", id_)
        shown = command("webhooks", "list") + command("webhooks", "list", "--json")

    assert receiver.received[0].verified(made["secret"])["type"] == "webhook.test"
    assert id_ in shown
    assert made["secret"] not in shown
    assert rotated["secret"] not in shown
    assert "none" in command("webhooks", "deliveries")
    command("webhooks", "remove", id_)
    assert answer(command, "webhooks", "list") == {"subscriptions": []}


def test_a_private_address_is_refused(command: Command) -> None:
    with pytest.raises(InvalidInput, match="private"):
        command("webhooks", "add", "https://127.0.0.1:8443/", "--types", "memory.*")
