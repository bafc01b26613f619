"""docs/changes.md lists every type of change, and no other."""

import re

from memory_core.log.change import ChangeType
from tests.documented import ROOT

PAGE = (ROOT / "docs" / "changes.md").read_text(encoding="utf-8")


def test_every_type_is_listed_once_in_the_order_of_the_code() -> None:
    table = PAGE.split("## Types")[1].split("## ")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]

    assert re.findall(r"`([a-z.]+)`", " ".join(rows)) == [kind.value for kind in ChangeType]
