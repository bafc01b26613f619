"""Who may ask a server that has no passwords: told by Host, Origin and Sec-Fetch-Site."""

import pytest

from memory_core.kernel.admission import Admission, is_loopback
from memory_core.kernel.settings import Settings

LOCAL = Admission.of("127.0.0.1")
HOST = "127.0.0.1:3001"


def status(admission: Admission, method: str = "GET", **headers: str | list[str]) -> int:
    """200 for a request that is let through."""
    given = {"host": HOST, **headers}
    listed = {
        name.replace("_", "-"): [value] if isinstance(value, str) else value
        for name, value in given.items()
    }
    refusal = admission.refusal(method, listed)
    return refusal.status if refusal else 200


class TestHost:
    @pytest.mark.parametrize(
        "host", ["127.0.0.1:3001", "localhost:3001", "LOCALHOST", "[::1]:3001", "localhost.:3001"]
    )
    def test_loopback_names_are_known_with_any_port(self, host: str) -> None:
        assert status(LOCAL, host=host) == 200

    @pytest.mark.parametrize(
        "host",
        [
            "evil.example",
            "evil.example:3001",
            "localhost.evil.example:3001",
            "127.0.0.1.evil.example",
            "127.0.0.1:3001@evil.example",
            "evil.example#127.0.0.1",
            "localhost:3001:3001",
            "localhost:port",
            "",
            " ",
            "192.168.0.7:3001",
            "2130706433",
        ],
    )
    def test_every_other_name_is_refused(self, host: str) -> None:
        assert status(LOCAL, host=host) == 421

    def test_a_request_without_a_host_or_with_two_is_refused(self) -> None:
        assert status(LOCAL, host=[]) == 421
        assert status(LOCAL, host=[HOST, HOST]) == 421

    def test_the_address_it_is_bound_to_is_known(self) -> None:
        assert status(Admission.of("192.168.0.7"), host="192.168.0.7:3001") == 200
        assert status(Admission.of("fe80::1"), host="[fe80::1]:3001") == 200

    def test_bound_to_every_address_only_loopback_is_known(self) -> None:
        everywhere = Admission.of("0.0.0.0")
        assert status(everywhere, host=HOST) == 200
        assert status(everywhere, host="0.0.0.0:3001") == 421
        assert status(everywhere, host="evil.example:3001") == 421

    def test_an_allowed_host_counts_with_its_port_or_with_any(self) -> None:
        admission = Admission.of("0.0.0.0", ["memory.example", "box:8443"])
        assert status(admission, host="memory.example") == 200
        assert status(admission, host="memory.example:444") == 200
        assert status(admission, host="box:8443") == 200
        assert status(admission, host="box:8444") == 421

    def test_the_refusal_shows_little_of_what_was_sent(self) -> None:
        refusal = LOCAL.refusal("GET", {"host": ["x" * 10_000 + "/"]})
        assert refusal is not None
        assert len(refusal.reason) < 250


class TestOrigin:
    def test_programs_that_are_no_browser_send_none(self) -> None:
        assert status(LOCAL, "POST") == 200

    @pytest.mark.parametrize("scheme", ["http", "https"])
    def test_our_own_page_may_ask(self, scheme: str) -> None:
        assert status(LOCAL, "POST", origin=f"{scheme}://{HOST}") == 200

    @pytest.mark.parametrize(
        "origin",
        [
            "http://evil.example",
            "null",
            "http://localhost:3399",
            "http://127.0.0.1:3002",
            "http://127.0.0.1",
            f"ftp://{HOST}",
            f"http://{HOST}.evil.example",
            f"http://evil.example@{HOST}",
            "",
        ],
    )
    def test_no_other_page_may(self, origin: str) -> None:
        assert status(LOCAL, "POST", origin=origin) == 403

    def test_pages_of_this_machine_may_where_the_server_says_so(self) -> None:
        admission = Admission.of("127.0.0.1", local_pages=True)
        assert status(admission, "POST", origin="http://localhost:6274") == 200
        assert status(admission, "POST", origin="http://evil.example") == 403

    def test_an_allowed_origin_may(self) -> None:
        admission = Admission.of("127.0.0.1", origins=["https://ui.example/"])
        assert status(admission, "POST", origin="https://ui.example") == 200
        assert status(admission, "POST", origin="https://ui.example:444") == 403

    def test_two_origins_are_none_of_ours(self) -> None:
        assert status(LOCAL, "POST", origin=[f"http://{HOST}", f"http://{HOST}"]) == 403


class TestFetchMetadata:
    @pytest.mark.parametrize("site", ["cross-site", "same-site"])
    @pytest.mark.parametrize("destination", ["image", "script", "iframe", "empty"])
    def test_what_another_page_embeds_is_refused(self, site: str, destination: str) -> None:
        mode = "navigate" if destination == "iframe" else "no-cors"
        headers = {"sec_fetch_site": site, "sec_fetch_mode": mode, "sec_fetch_dest": destination}
        assert status(LOCAL, **headers) == 403

    @pytest.mark.parametrize("site", ["none", "same-origin"])
    def test_an_address_that_was_typed_and_our_own_pages_are_let_through(self, site: str) -> None:
        assert status(LOCAL, sec_fetch_site=site) == 200

    def test_a_link_on_another_page_opens_ours(self) -> None:
        link = {
            "sec_fetch_site": "cross-site",
            "sec_fetch_mode": "navigate",
            "sec_fetch_dest": "document",
        }
        assert status(LOCAL, "GET", **link) == 200
        assert status(LOCAL, "POST", **link) == 403


class TestSettings:
    def test_they_name_hosts_and_origins(self) -> None:
        settings = Settings(
            _env_file=None,
            allowed_hosts="memory.example, box:8443",
            allowed_origins="https://ui.example",
        )
        admission = settings.admission("127.0.0.1")
        assert status(admission, host="box:8443", origin="https://ui.example") == 200

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("allowed_hosts", "*"),
            ("allowed_hosts", "http://memory.example"),
            ("allowed_origins", "*"),
            ("allowed_origins", "memory.example"),
            ("allowed_origins", "https://memory.example/path"),
        ],
    )
    def test_what_would_never_match_is_refused(self, name: str, value: str) -> None:
        with pytest.raises(ValueError, match="must be"):
            Settings(_env_file=None, **{name: value})

    def test_dagster_stays_on_loopback_when_the_mcp_server_does_not(self) -> None:
        assert Settings(_env_file=None, mcp_host="0.0.0.0").dagster_host == "127.0.0.1"


@pytest.mark.parametrize(
    ("host", "answer"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("[::1]", True),
        ("localhost", True), ("0.0.0.0", False), ("::", False), ("192.168.0.7", False),
        ("box.example", False), ("", False),
    ],
)  # fmt: skip
def test_which_addresses_this_machine_alone_can_reach(host: str, answer: bool) -> None:
    assert is_loopback(host) is answer
