"""`make` is safe: it uses the checkout's own memory and deletes none without asking."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


class Checkout:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copy(PROJECT / "Makefile", folder)
        (folder / ".venv").mkdir()
        self.memory = folder / ".data"
        (self.memory / "postgres").mkdir(parents=True)

    def make(
        self, *words: str, answer: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["make", *words],
            cwd=self.folder,
            env={"PATH": os.environ["PATH"], **variables},
            input=answer,
            capture_output=True,
            text=True,
            check=False,
        )

    def data_dir_of_targets(self, **variables: str) -> str:
        shown = self.make('--eval=show:; @echo "$$DATA_DIR"', "show", **variables)
        return shown.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_clean_deletes_the_environment_and_no_data(checkout: Checkout) -> None:
    assert checkout.make("clean").returncode == 0
    assert not (checkout.folder / ".venv").exists()
    assert checkout.memory.is_dir()


@pytest.mark.parametrize("answer", ["", "\n", "no\n", "y\n"])
def test_clean_data_deletes_nothing_without_a_yes(checkout: Checkout, answer: str) -> None:
    assert checkout.make("clean-data", answer=answer).returncode != 0
    assert checkout.memory.is_dir()


def test_clean_data_deletes_the_memory_after_a_yes(checkout: Checkout) -> None:
    assert checkout.make("clean-data", answer="yes\n").returncode == 0
    assert not checkout.memory.exists()


def test_clean_data_leaves_a_running_memory_alone(checkout: Checkout) -> None:
    (checkout.memory / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n")
    assert "stop it first" in checkout.make("clean-data", answer="yes\n").stdout
    assert checkout.memory.is_dir()


def test_targets_use_the_memory_of_the_checkout(checkout: Checkout) -> None:
    assert checkout.data_dir_of_targets() == str(checkout.memory)


def test_a_data_dir_of_the_environment_comes_first(checkout: Checkout) -> None:
    assert checkout.data_dir_of_targets(DATA_DIR="/mine") == "/mine"


def test_a_data_dir_of_the_env_file_comes_first(checkout: Checkout) -> None:
    (checkout.folder / ".env").write_text("DATA_DIR=/mine\n")
    assert checkout.data_dir_of_targets() == ""
