"""A random walk over the queue, on many connections: the ledger alone tells where it led."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from memory_assets.unclaimed import PartitionState
from memory_core.kernel.database import Database
from memory_core.kernel.errors import Conflict, ErrorCode, MemoryFault
from memory_core.queue import jobs
from memory_core.queue.cancel import cancel
from memory_core.queue.jobs import Job, JobCanceled, LeaseLost
from memory_core.queue.listing import JobDetails
from memory_core.queue.request_columns import request_columns
from tests.integration.job_queue import RATE_LIMIT, Queue

JOBS = 40
WALKERS = 12
REFUSED = MemoryFault("No.", code=ErrorCode.OPENAI_AUTH_ERROR)


class Walker:
    """Runs, people and accidents, one at a time, each as the product does it."""

    def __init__(self, database: Database, keys: list[str], number: int, seed: int) -> None:
        self._database, self._keys, self._number = database, keys, number
        self._random = random.Random(seed * 1000 + number)
        self._runs = 0
        self._held: list[Job] = []
        self.taken: Counter[str] = Counter()

    async def walk(self, steps: int) -> None:
        choices = {
            self.claim: 5, self.complete: 4, self.fail: 3, self.beat: 2, self.redo: 1,
            self.force: 2, self.cancel: 2, self.die: 1, self.vanish: 1, self.expire: 1,
            self.be_impatient: 2,
        }  # fmt: skip
        for _ in range(steps):
            [step] = self._random.choices(list(choices), list(choices.values()))
            await step()
            self.taken[step.__name__] += 1

    def _some(self) -> list[str]:
        return self._random.sample(self._keys, self._random.randint(1, 5))

    def _pop(self) -> Job | None:
        if not self._held:
            return None
        return self._held.pop(self._random.randrange(len(self._held)))

    async def claim(self) -> None:
        self._runs += 1
        run = f"run-{self._number}-{self._runs}"
        self._held += await jobs.claim(self._database, self._some(), run, max_attempts=4)

    async def redo(self) -> None:
        run = f"ui-{self._number}-{self._runs}"
        self._held += await jobs.claim(self._database, self._some(), run, asked_by="ui")

    async def complete(self) -> None:
        if job := self._pop():
            try:
                async with self._database.transaction() as session:
                    await jobs.hold(session, job)
                    await jobs.complete(session, job)
            except LeaseLost:
                return
            except JobCanceled:
                await jobs.cancel_held(self._database, job)

    async def fail(self) -> None:
        if job := self._pop():
            await jobs.fail(self._database, job, self._random.choice([RATE_LIMIT, REFUSED]))

    async def beat(self) -> None:
        for run in {job.run_id for job in self._held}:
            mine = [job for job in self._held if job.run_id == run]
            held = await jobs.heartbeat(self._database, run, [job.job_id for job in mine])
            for job in mine:
                if job.job_id in held.canceled:
                    await jobs.cancel_held(self._database, job)

    async def die(self) -> None:
        if job := self._pop():
            await jobs.release_run(self._database, job.run_id, "killed by signal 9")

    async def vanish(self) -> None:
        """Killed, and Dagster did not notice."""
        self._held.clear()

    async def force(self) -> None:
        async with self._database.transaction() as session:
            id_ = await self._any()
            await session.run(
                "reset_job",
                job_id=id_,
                max_attempts=4,
                bypass_cache=True,
                **request_columns("tool"),
            )

    async def cancel(self) -> None:
        try:
            await cancel(self._database, await self._any())
        except Conflict:
            return

    async def _any(self) -> Any:
        async with self._database.session() as session:
            [state] = await session.rows(
                PartitionState, "state_of_partitions", keys=[self._random.choice(self._keys)]
            )
            job = await session.only(
                JobDetails, "job_of_revision", uid=state.artifact_uid, revision=None
            )
        return job.job_id

    async def expire(self) -> None:
        await self._by_hand(
            "UPDATE event_jobs SET locked_at = now() - interval '2 minutes' "
            "WHERE status = 'PROCESSING' AND artifact_uid = %s"
        )

    async def be_impatient(self) -> None:
        await self._by_hand(
            "UPDATE event_jobs SET next_run_at = now() WHERE status = 'PENDING' "
            "AND artifact_uid = %s"
        )

    async def _by_hand(self, statement: str) -> None:
        uid = f"uid_{self._random.randint(1, JOBS)}"
        async with self._database.session() as session:
            await session.connection.execute(statement, [uid])  # type: ignore[arg-type]


def replayed(queue: Queue) -> dict[Any, tuple[Any, ...]]:
    """Where each job stands, by the ledger alone. Every sequence must be a path in the picture."""
    drawn = {
        (row["prev_status"], row["next_status"])
        for row in queue.run("SELECT * FROM job_transition")
    }
    state: dict[Any, tuple[Any, ...]] = {}
    for row in queue.run("SELECT * FROM job_event ORDER BY id"):
        before = state.get(row["job_id"], (None,))[0]
        assert row["prev_status"] == before, "no step is missing"
        assert (before, row["next_status"]) in drawn
        detail = row["detail"]
        state[row["job_id"]] = (
            row["next_status"], detail["attempt"], detail["generation"], detail.get("run"),
            detail["origin"], detail.get("error"),
        )  # fmt: skip
    return state


async def walk(crowd: Database, queue: Queue, steps: int, seed: int) -> None:
    keys = queue.add(JOBS)
    walkers = [Walker(crowd, keys, number, seed) for number in range(WALKERS)]
    await asyncio.gather(*(walker.walk(steps // WALKERS) for walker in walkers))

    columns = ("status", "attempts", "generation", "locked_by", "origin", "last_error_code")
    stands = {row["job_id"]: tuple(row[name] for name in columns) for row in queue.all()}
    assert replayed(queue) == stands
    seen = {row["next_status"] for row in queue.run("SELECT DISTINCT next_status FROM job_event")}
    assert seen == {"PENDING", "PROCESSING", "DONE", "FAILED", "CANCELED"}


@pytest.mark.parametrize("seed", [1, 2])
async def test_the_ledger_alone_tells_where_every_job_stands(
    crowd: Database, queue: Queue, seed: int
) -> None:
    await walk(crowd, queue, 750, seed)


@pytest.mark.slow
async def test_the_ledger_tells_it_after_ten_thousand_steps(crowd: Database, queue: Queue) -> None:
    await walk(crowd, queue, 10_000, seed=3)
