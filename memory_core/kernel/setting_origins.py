"""Every setting with its value (secrets removed) and its origin."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from memory_core.kernel.dsn import redact_dsn
from memory_core.kernel.env_file import ENV_FILE
from memory_core.kernel.settings import SECRET_FIELDS, Settings

_MASK = "***"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    name: str  # name of the variable
    value: str  # without secrets
    source: str
    is_set: bool  # set by the user, not a default


def origins(settings: Settings) -> Iterator[SettingOrigin]:
    in_environment = {name.upper() for name, value in os.environ.items() if value}
    env_file = ENV_FILE.resolve()
    for field in type(settings).model_fields:
        name, is_set = field.upper(), field in settings.model_fields_set
        source = _source(name, is_set, in_environment, env_file)
        yield SettingOrigin(name, _shown(settings, field), source, is_set)


def _source(name: str, is_set: bool, in_environment: set[str], env_file: Path) -> str:
    if not is_set:
        return "default"
    return "environment" if name in in_environment else str(env_file)


def _shown(settings: Settings, field: str) -> str:
    value = getattr(settings, field)
    if value is None:
        return ""
    text = value.get_secret_value() if isinstance(value, SecretStr) else str(value)
    if "://" in text:
        return redact_dsn(text)  # an address may contain a password too
    return _MASK if field in SECRET_FIELDS else text
