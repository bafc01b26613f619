"""The machine's own Chromium, driven by Playwright: for the browser test and the screenshots."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Page, sync_playwright

# As Debian, Alpine and others call it.
_NAMES = ("chromium", "chromium-browser")
WIDTH, HEIGHT = 1440, 900


def chromium() -> str | None:
    """Where Chromium is, if it is installed. None is downloaded."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def open_page(base_url: str, executable: str) -> Iterator[Page]:
    # Root has no sandbox of its own; what is opened is our own server.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=arguments)
        try:
            context = browser.new_context(
                base_url=base_url,
                viewport={"width": WIDTH, "height": HEIGHT},
                color_scheme="light",
                timezone_id="UTC",
                locale="en-GB",
            )
            yield context.new_page()
        finally:
            browser.close()
