"""Prices of tokens, where they are set."""

import math
from dataclasses import dataclass

_MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Per million tokens, in the currency of the setting."""

    prompt: float
    completion: float

    def of(self, prompt_tokens: int, completion_tokens: int) -> float:
        return (prompt_tokens * self.prompt + completion_tokens * self.completion) / _MILLION


def parse_prices(text: str) -> dict[str, Price]:
    """Parse `model=in/out`, several separated by commas. Raises ValueError."""
    prices = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        # Model names may have slashes and equals signs; prices have neither.
        model, _, amounts = entry.rpartition("=")
        try:
            prompt, completion = (float(amount) for amount in amounts.split("/"))
        except ValueError:
            raise ValueError(f"{entry!r} must be of the form model=in/out") from None
        sound = all(math.isfinite(amount) and amount >= 0 for amount in (prompt, completion))
        if not model.strip() or not sound:
            raise ValueError(f"{entry!r} must be of the form model=in/out")
        prices[model.strip()] = Price(prompt, completion)
    return prices
