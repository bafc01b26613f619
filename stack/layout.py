"""The layout of DATA_DIR: which file is where."""

from dataclasses import dataclass
from pathlib import Path

from memory_core.kernel.errors import StackFault


@dataclass(frozen=True, slots=True)
class Layout:
    root: Path

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def chroma(self) -> Path:
        return self.root / "chroma"

    @property
    def dagster_home(self) -> Path:
        return self.root / "dagster"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def supervisor_lock(self) -> Path:
        """Held by the one supervisor of this data dir while it lives."""
        return self.root / "supervisor.lock"

    @property
    def users_lock(self) -> Path:
        """Held, shared, by every command that uses the services."""
        return self.root / "users.lock"

    @property
    def transition_lock(self) -> Path:
        """Held for moments, while a process starts, joins or leaves the services."""
        return self.root / "transition.lock"

    @property
    def state(self) -> Path:
        return self.root / "stack.json"

    def log_of(self, child: str) -> Path:
        return self.logs / f"{child}.log"

    def create(self) -> None:
        # Documents are stored here. If we are root, the account that runs the embedded Postgres
        # must be able to pass through the root folder; everything below it is private.
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            self.root.chmod(0o711)
            for folder in (self.chroma, self.dagster_home, self.logs):
                folder.mkdir(exist_ok=True)
                folder.chmod(0o700)
        except OSError as error:
            raise StackFault(
                f"DATA_DIR={self.root} cannot be used: {error.strerror} ({error.filename}). "
                "Set DATA_DIR to a directory of your own that can be written to."
            ) from error
