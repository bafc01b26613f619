"""Where webhooks may go: attacks by address, name, form of URL and second resolution."""

from collections.abc import Iterator

import pytest

from memory_core.kernel.errors import InvalidInput
from memory_core.webhooks.addresses import NameUnknown, is_public, parse_url
from memory_core.webhooks.sender import Sender, SendFault
from tests.webhook_receiver import Receiver


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.0.1"),
        *("169.254.169.254", "100.100.100.200", "168.63.129.16", "224.0.0.1", "255.255.255.255"),
        *("::", "::1", "fe80::1", "fe80::1%eth0", "fd00:ec2::254", "fec0::1", "ff02::1"),
        *("::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "64:ff9b::7f00:1"),
        *("2002:7f00:1::", "2001:db8::1", "2001:0:7f00:1::", "not an address"),
    ],
)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.216.34", "2606:4700::1111", "64:ff9b::5db8:d822"])
def test_a_public_address_is_taken(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        *("http://hooks.example/", "ftp://hooks.example/", "file:///etc/passwd", "hooks.example"),
        *("https://user:word@hooks.example/", "https://user@hooks.example/", "https:///path"),
        *("https://hooks.example:22/", "https://hooks.example:25/", "https://hooks.example:99999/"),
        *("https://hooks.example/#part", "https://hooks.example/a b", "https://a\r\nHost: b/"),
        "https://hooks.example/" + "x" * 3000,
    ],
)
def test_a_url_that_no_receiver_needs_is_refused_without_being_repeated(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_url(url, allow_private=False)
    assert url not in refused.value.message


@pytest.mark.parametrize(
    "addresses",
    [["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["::ffff:127.0.0.1"], ["169.254.169.254"]],
    ids=str,
)
async def test_a_name_that_resolves_to_a_private_address_is_not_connected_to(
    addresses: list[str],
) -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return addresses

    sender = Sender(allow_private=False, resolver=resolver)
    with pytest.raises(SendFault, match="private"):
        await sender.send("https://127.0.0.1.nip.example/", {}, b"{}")
    await sender.close()


async def test_numbers_that_stand_for_loopback_are_not_connected_to() -> None:
    sender = Sender(allow_private=False)
    for host in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "[::1]", "localhost"):
        with pytest.raises((SendFault, InvalidInput)):
            await sender.send(f"https://{host}/", {}, b"{}")
    await sender.close()


async def test_the_connection_goes_to_the_address_that_was_checked(receiver: Receiver) -> None:
    """The name is asked for once, keeps its Host header, and is never resolved by the client."""
    asked: list[str] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["127.0.0.1"]

    sender = Sender(allow_private=True, resolver=resolver)
    answer = await sender.send(f"http://hooks.invalid:{receiver.port}/", {}, b"{}")
    await sender.close()

    assert answer.status == 200
    assert asked == ["hooks.invalid"]
    assert receiver.received[0].headers["host"] == f"hooks.invalid:{receiver.port}"


async def test_a_name_without_an_address_is_a_failure_that_can_pass() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        raise NameUnknown("the receiver's name cannot be resolved")

    sender = Sender(allow_private=False, resolver=resolver)
    with pytest.raises(SendFault, match="cannot be resolved"):
        await sender.send("https://hooks.example/", {}, b"{}")
    await sender.close()
