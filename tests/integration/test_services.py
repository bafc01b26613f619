"""Commands without a running stack: Postgres and Chroma come, are shared, and go again."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from memory_core.index.chroma import ChromaClient, ChromaFault
from memory_core.kernel import file_locks as locks
from memory_core.kernel.errors import StackFault
from memory_core.kernel.settings import Settings
from stack import ports, probes, stack_state
from stack.connection import Membership, connected, joined_runtime
from stack.layout import Layout
from stack.orphans import MARKER
from stack.postgres import EmbeddedPostgres, identity
from stack.stack_state import StackState
from tests.patience import PATIENCE

# What a command does: join, say so, stay until its input ends.
COMMAND = """
import sys
from pathlib import Path
from memory_core.kernel.settings import Settings
from stack.connection import connected
with connected(Settings(_env_file=None, data_dir=Path(sys.argv[1]))) as resolved:
    print(resolved.chroma_address, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data dir for all tests here: each of them must leave it usable for the next."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def data_dir(folder: Path) -> Iterator[Path]:
    """Nothing runs on it before the test, and nothing after it."""
    assert processes_of(folder) == []
    yield folder
    eventually(lambda: processes_of(folder) == [])


@pytest.fixture
def alone(data_dir: Path) -> Settings:
    return Settings(_env_file=None, data_dir=data_dir)


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """Every process that belongs to the data dir: its supervisor, children, grandchildren."""
    processes = []
    for process in psutil.process_iter():
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
            environment = process.environ()
            supervises = process.cmdline()[-1:] == ["services"]
        except psutil.Error:
            continue
        if environment.get(MARKER) == str(data_dir) or (
            supervises and environment.get("DATA_DIR") == str(data_dir)
        ):
            processes.append(process)
    return processes


def eventually(question: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE
    while not (answer := question()):
        assert time.monotonic() < deadline, "it did not come to pass"
        time.sleep(0.05)
    return answer


def running(data_dir: Path) -> StackState:
    stack = stack_state.running(Layout(data_dir))
    assert stack is not None
    return stack


def postmaster(data_dir: Path) -> int:
    return int((Layout(data_dir).postgres / "postmaster.pid").read_text().splitlines()[0])


def answers(settings: Settings) -> bool:
    """Both stores do what they are for."""
    with psycopg.connect(settings.dsn) as connection:
        connection.execute("SELECT count(*) FROM event_jobs")
    asyncio.run(probes.chroma(settings.chroma_host or "", settings.chroma_port))
    return True


def remember(settings: Settings, note: str) -> None:
    with psycopg.connect(settings.dsn) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS note (text TEXT PRIMARY KEY)")
        connection.execute("INSERT INTO note VALUES (%s)", [note])


def remembered(settings: Settings, note: str) -> bool:
    with psycopg.connect(settings.dsn) as connection:
        row = connection.execute("SELECT 1 FROM note WHERE text = %s", [note]).fetchone()
    return row is not None


@contextmanager
def command(data_dir: Path) -> Iterator[subprocess.Popen[str]]:
    """Another command, which has joined when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, str(data_dir)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        assert process.stdout.readline().strip()
        yield process
    finally:
        process.stdin.close()
        process.wait(PATIENCE)
        process.stdout.close()


class TestOneCommand:
    def test_it_gets_both_stores_and_leaves_no_process(
        self, alone: Settings, data_dir: Path
    ) -> None:
        with connected(alone) as resolved:
            assert answers(resolved)
            assert len(processes_of(data_dir)) > 2
            layout = Layout(data_dir)
            for private in (layout.postgres, layout.chroma, layout.logs, layout.state):
                assert private.stat().st_mode & 0o077 == 0, f"others may read {private}"
        eventually(lambda: processes_of(data_dir) == [])

    def test_the_next_finds_what_it_wrote_at_the_same_address(self, alone: Settings) -> None:
        with connected(alone) as first:
            remember(first, "from an earlier command")
        with connected(alone) as second:
            assert (second.dsn, second.chroma_address) == (first.dsn, first.chroma_address)
            assert remembered(second, "from an earlier command")

    def test_they_go_also_when_it_is_killed(self, data_dir: Path) -> None:
        with command(data_dir) as victim:
            victim.kill()
            eventually(lambda: processes_of(data_dir) == [])

    def test_stores_that_live_elsewhere_are_not_started(
        self, services: Settings, data_dir: Path
    ) -> None:
        elsewhere = services.model_copy(update={"data_dir": data_dir})
        with connected(elsewhere) as resolved:
            assert resolved == elsewhere
            assert processes_of(data_dir) == []

    def test_only_what_is_missing_is_started(self, services: Settings, data_dir: Path) -> None:
        own_chroma = Settings(_env_file=None, data_dir=data_dir, events_db_dsn=services.dsn)
        with connected(own_chroma) as resolved:
            assert resolved.dsn == services.dsn
            assert answers(resolved)
            assert "postgres" not in {process.name() for process in processes_of(data_dir)}

    def test_a_dot_env_that_it_did_not_read_does_not_reach_its_servers(
        self, alone: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / ".env").write_text("EVENTS_DB_DSN=postgresql://nobody@127.0.0.1:1/nothing\n")
        monkeypatch.chdir(tmp_path)
        with connected(alone) as resolved:
            assert answers(resolved)


class TestWhoMayConnect:
    def test_the_servers_get_none_of_our_variables(
        self, alone: Settings, data_dir: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "canary")
        with connected(alone):
            children = [one for one in processes_of(data_dir) if "services" not in one.cmdline()]
            assert {"postgres", "chroma"} <= {one.name() for one in children}
            for child in children:
                values = child.environ().items()
                assert [item for item in values if "canary" in item[1]] == [], child.name()

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
    def test_the_account_that_runs_postgres_is_no_user_of_it(
        self, alone: Settings, data_dir: Path
    ) -> None:
        # Given a data dir of a version that let in everybody who could reach its socket
        with connected(alone):
            pass
        eventually(lambda: processes_of(data_dir) == [])
        (Layout(data_dir).postgres / "pg_hba.conf").write_text("local all all trust\n")
        # When it is started now
        with connected(alone) as resolved:
            server = EmbeddedPostgres(Layout(data_dir).postgres)
            program = Path(psutil.Process(postmaster(data_dir)).exe()).with_name("psql")
            asked = subprocess.run(
                [program, "-h", server.socket_dir, "-U", "postgres", "-c", "SELECT 1"],
                **identity(server.account),
                env={},
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
            )
            # Then other processes of the server's account are refused, and we are not
            assert asked.returncode != 0
            assert "Peer authentication failed" in asked.stderr
            assert answers(resolved)

    @pytest.mark.skipif(os.geteuid() != 0, reason="others run it as themselves")
    def test_started_as_root_it_says_the_account_and_what_it_opened(self, tmp_path: Path) -> None:
        closed = tmp_path / "closed"
        closed.mkdir(mode=0o700)
        server = EmbeddedPostgres(closed / "data" / "postgres")
        server.prepare()
        said = server.notice()
        assert said is not None
        assert "it runs as nobody" in said
        assert str(closed) in said
        assert "\n" not in said


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it listens on loopback")
class TestPrivateChroma:
    def test_no_port_of_this_machine_leads_to_it(self, alone: Settings, data_dir: Path) -> None:
        with connected(alone) as resolved:
            assert str(resolved.chroma_host).startswith(f"unix:{data_dir}")
            assert answers(resolved)
            [chroma] = [one for one in processes_of(data_dir) if one.name() == "chroma"]
            ours = Path("/proc/self/ns/net").readlink()
            assert Path(f"/proc/{chroma.pid}/ns/net").readlink() != ours

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can ask as another user")
    def test_another_user_cannot_connect_to_it(self, alone: Settings) -> None:
        with connected(alone) as resolved:
            place = str(resolved.chroma_host).removeprefix("unix:")
            connect = "import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
            done = subprocess.run(
                ["/usr/bin/env", "python3", "-c", connect, place],
                **{"user": 12345, "group": 12345, "extra_groups": []},
                cwd="/",
                capture_output=True,
                text=True,
                check=False,
            )
        assert "PermissionError" in done.stderr

    def test_killed_from_outside_it_leaves_no_second_server_on_its_folder(
        self, alone: Settings, data_dir: Path
    ) -> None:
        with connected(alone) as resolved:
            [chroma] = [one for one in processes_of(data_dir) if one.name() == "chroma"]
            chroma.parent().kill()
            psutil.wait_procs([chroma], timeout=PATIENCE)
            assert not chroma.is_running()
            eventually(lambda: [one for one in processes_of(data_dir) if one.name() == "chroma"])
            eventually(lambda: _quietly(lambda: answers(resolved)))

    def test_many_requests_at_once_and_large_ones_pass(self, alone: Settings) -> None:
        async def store(count: int, dimensions: int) -> int:
            client = ChromaClient(str(resolved.chroma_host), resolved.chroma_port)
            collection = await client.make("passing", {"made": "here"})
            vector = [0.5] * dimensions
            async with asyncio.TaskGroup() as group:
                for number in range(40):
                    ids = [f"{number}-{n}" for n in range(count)]
                    about = [{"n": "x" * 2_000}] * count
                    group.create_task(
                        collection.call(
                            "upsert", ids=ids, embeddings=[vector] * count, metadatas=about
                        )
                    )
            stored = await collection.call("count")
            await client.close()
            return stored

        with connected(alone) as resolved:
            assert asyncio.run(store(count=50, dimensions=256)) == 2_000

    def test_who_asks_for_a_port_gets_one(self, data_dir: Path) -> None:
        port = ports.free_port()
        with connected(Settings(_env_file=None, data_dir=data_dir, chroma_port=port)) as resolved:
            assert resolved.chroma_address == f"127.0.0.1:{port}"
            assert answers(resolved)


class TestManyCommands:
    def test_the_first_to_leave_does_not_take_the_servers_away(
        self, alone: Settings, data_dir: Path
    ) -> None:
        first = Membership(alone)
        first.join()
        with command(data_dir):
            server = postmaster(data_dir)
            first.leave()
            with connected(alone) as resolved:
                assert answers(resolved)
                assert postmaster(data_dir) == server
        eventually(lambda: processes_of(data_dir) == [])

    def test_eight_at_the_same_moment_start_them_once(
        self, alone: Settings, data_dir: Path
    ) -> None:
        all_joined = threading.Barrier(8)

        def one() -> tuple[int, bool]:
            with connected(alone) as resolved:
                all_joined.wait(PATIENCE)
                return postmaster(data_dir), answers(resolved)

        with ThreadPoolExecutor(8) as pool:
            results = [future.result() for future in [pool.submit(one) for _ in range(8)]]
        assert len({server for server, _ in results}) == 1
        assert all(answered for _, answered in results)
        eventually(lambda: processes_of(data_dir) == [])

    def test_one_that_comes_while_they_are_stopping_gets_new_ones(
        self, alone: Settings, data_dir: Path
    ) -> None:
        with command(data_dir) as victim:
            old = running(data_dir).pid
            victim.kill()
            eventually(lambda: stack_state.running(Layout(data_dir)) is None)
            with connected(alone) as resolved:
                assert answers(resolved)
                assert running(data_dir).pid != old


class TestKilled:
    def test_after_its_supervisor_the_next_command_recovers(
        self, alone: Settings, data_dir: Path
    ) -> None:
        # Given services whose supervisor was killed, with its children still there
        with connected(alone) as resolved:
            remember(resolved, "before the supervisor died")
            left = {process.pid for process in processes_of(data_dir)}
            supervisor = running(data_dir).pid
            os.kill(supervisor, signal.SIGKILL)
            eventually(lambda: not locks.is_held(Layout(data_dir).supervisor_lock))
        orphans = left - {supervisor}
        assert orphans & {process.pid for process in processes_of(data_dir)}
        # When the next command comes
        with connected(alone) as resolved:
            # Then it works, nothing is lost, and nothing old is left
            assert answers(resolved)
            assert remembered(resolved, "before the supervisor died")
            assert not orphans & {process.pid for process in processes_of(data_dir)}
        eventually(lambda: processes_of(data_dir) == [])

    def test_after_everything_at_once_the_next_command_recovers(
        self, alone: Settings, data_dir: Path
    ) -> None:
        # Given a machine that lost its power: no one got to tidy up
        with connected(alone) as resolved:
            remember(resolved, "before everything died")
            for process in [psutil.Process(running(data_dir).pid), *processes_of(data_dir)]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
        # and a pid file that names, by now, a stranger's process
        bystander = subprocess.Popen(["sleep", "600"])
        pid_file = Layout(data_dir).postgres / "postmaster.pid"
        lines = pid_file.read_text().splitlines()
        pid_file.write_text("\n".join([str(bystander.pid), *lines[1:], ""]))
        try:
            with connected(alone) as resolved:
                assert answers(resolved)
                assert remembered(resolved, "before everything died")
            assert bystander.poll() is None, "a stranger's process was ended"
        finally:
            bystander.kill()
            bystander.wait()

    def test_a_killed_postgres_comes_back_under_the_same_command(
        self, alone: Settings, data_dir: Path
    ) -> None:
        with connected(alone) as resolved:
            remember(resolved, "before Postgres died")
            victim = postmaster(data_dir)
            os.kill(victim, signal.SIGKILL)
            eventually(lambda: _quietly(lambda: postmaster(data_dir) != victim))
            assert eventually(lambda: _quietly(lambda: answers(resolved)))
            assert remembered(resolved, "before Postgres died")

    def test_a_data_dir_whose_making_was_killed_is_made_again(self, tmp_path: Path) -> None:
        # Given what a kill in the middle of the very first start leaves behind
        layout = Layout(tmp_path / "data")
        layout.create()
        half = layout.root / "postgres.new"
        half.mkdir()
        (half / "PG_VERSION").write_text("16\n")
        layout.state.write_text('{"pid": 1, "mode": "fu')
        with connected(Settings(_env_file=None, data_dir=layout.root)) as resolved:
            assert answers(resolved)
        assert not half.exists()


class TestMembership:
    def test_it_is_lost_when_the_supervisor_is(self, alone: Settings, data_dir: Path) -> None:
        membership = Membership(alone)
        assert not membership.lost
        membership.join()
        try:
            assert not membership.lost
            os.kill(running(data_dir).pid, signal.SIGKILL)
            eventually(lambda: membership.lost)
            resolved = membership.join()
            assert not membership.lost
            assert answers(resolved)
        finally:
            membership.leave()
            membership.leave()  # once more is no error

    async def test_a_runtime_joins_again_by_itself(self, alone: Settings, data_dir: Path) -> None:
        runtime = joined_runtime(
            alone.model_copy(update={"embedder": "local"}), unasked="a test looks at what is stored"
        )
        try:
            await runtime.open()
            async with runtime.database.session() as session:
                await session.run("ping")
            os.kill(running(data_dir).pid, signal.SIGTERM)
            layout = Layout(data_dir)
            await asyncio.to_thread(eventually, lambda: not locks.is_held(layout.supervisor_lock))
            await runtime.open()
            async with runtime.database.session() as session:
                assert await session.value(int, "ping") == 1
            await runtime.vectors.heartbeat()
        finally:
            await runtime.close()


class TestClearErrors:
    def test_a_taken_chroma_port_names_its_variable(
        self, data_dir: Path, services: Settings
    ) -> None:
        taken = Settings(_env_file=None, data_dir=data_dir, chroma_port=services.chroma_port)
        with pytest.raises(StackFault, match=f"CHROMA_PORT={services.chroma_port} is taken"):
            Membership(taken).join()

    def test_a_data_dir_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "file").touch()
        with pytest.raises(StackFault, match=r"DATA_DIR=.*file cannot be used"):
            Membership(Settings(_env_file=None, data_dir=tmp_path / "file")).join()

    def test_postgres_that_cannot_start_tells_why(self, tmp_path: Path) -> None:
        # Given a data dir that is broken
        broken = Settings(_env_file=None, data_dir=tmp_path / "broken")
        layout = Layout(broken.data_dir)
        layout.create()
        layout.postgres.mkdir()
        (layout.postgres / "PG_VERSION").write_text("16\n")
        with pytest.raises(StackFault) as caught:
            Membership(broken).join()
        assert "Gave up" in caught.value.message
        assert "postgresql.conf" in caught.value.message
        eventually(lambda: processes_of(broken.data_dir) == [])


class TestPaths:
    @pytest.mark.parametrize(
        "name",
        [
            "a b (ü) & 100% +?#",
            "/".join(["a long name of a folder"] * 6),  # no Unix socket fits in there
        ],
    )
    def test_any_data_dir_will_do(self, tmp_path: Path, name: str) -> None:
        settings = Settings(_env_file=None, data_dir=tmp_path / name)
        with connected(settings) as resolved:
            assert answers(resolved)
        shutil.rmtree(EmbeddedPostgres(Layout(settings.data_dir).postgres).socket_dir)
        shutil.rmtree(Path(str(resolved.chroma_host).removeprefix("unix:")).parent)


def _quietly(question: Callable[[], bool]) -> bool:
    """False while the answer is an error."""
    try:
        return question()
    except (OSError, ValueError, IndexError, psycopg.Error, ChromaFault):
        return False
