"""For each tool: a call at random, and what its answer must be by the rules of the world."""

from collections.abc import Awaitable, Callable
from typing import Any

from tests.isolation.asking import Asking
from tests.isolation.filling import SCOPES
from tests.isolation.world import CONVERSATIONS, Document
from tests.tool_client import Json

Oracle = Callable[[Asking], Awaitable[None]]
_ALL = 50  # more than anyone sees of anything
_NOT_FOUND = "NOT_FOUND"


async def _of_document(ask: Asking, tool: str, /, **more: Any) -> tuple[Document, Json] | None:
    """The answer about a document that is seen; None for others, which are not found."""
    document = ask.any_document()
    if not document.is_seen_by(ask.who):
        await ask.missing(tool, artifact_uid=document.uid)
        return None
    return document, await ask(tool, artifact_uid=document.uid, **more)


async def artifact_get(ask: Asking) -> None:
    if visible := await _of_document(ask, "artifact_get", include_content=True):
        document, answer = visible
        ask.equal(answer.get("content"), document.contents[document.latest], "the content")


async def artifact_history(ask: Asking) -> None:
    if history := await _of_document(ask, "artifact_history"):
        document, answer = history
        got = {one["revision_id"] for one in answer["revisions"]}
        ask.equal(got, set(document.contents), "the revisions")


async def artifact_ingest(ask: Asking) -> None:
    """New, or from the source of another person's document, which must not be met; or what there is
    already, for other eyes."""
    other = ask.any_document()
    if other.owner == ask.who:
        await ask.filled.relabel(other, *ask.rng.choice(SCOPES))
        return
    visible = {document.source_id for document in ask.world.documents(ask.who)}
    source = None if other.source_id in visible else other.source_id
    scope = ask.rng.choice(("me", "team", "org"))
    if len(ask.world.documents(ask.who)) < _ALL // 2:
        await ask.filled.store(ask.who, scope, source=source)


async def artifact_delete(ask: Asking) -> None:
    document = ask.any_document()
    if not document.is_seen_by(ask.who):
        await ask.missing("artifact_delete", artifact_uid=document.uid)
    elif len(ask.world.documents(ask.who)) > 8 and ask.rng.random() < 0.3:
        answer = await ask("artifact_delete", artifact_uid=document.uid)
        ask.equal(answer["revisions"], len(document.contents), "what was deleted")
        document.is_gone = True


async def _search(ask: Asking, tool: str, kind: str | None = None, **more: Any) -> None:
    query = ask.some_words()
    answer = await ask(tool, query=query, limit=_ALL, **more)
    got = {one["artifact_uid"] for one in answer["results"] if one.get("artifact_uid")}
    seen = {document.uid for document in ask.world.documents(ask.who)}
    ask.equal(got - seen, set(), f"{tool} {query!r}")
    if query == "launch":
        ask.equal(got, seen, f"{tool} {query!r}, which all documents have")


async def artifact_search(ask: Asking) -> None:
    await _search(ask, "artifact_search")


async def hybrid_search(ask: Asking) -> None:
    await _search(ask, "hybrid_search", include_memory=ask.rng.random() < 0.3)


def _ids(events: list[Json]) -> set[str]:
    return {event["event_id"] for event in events}


async def event_search(ask: Asking) -> None:
    """Without words: exactly what is seen. With words: nothing but what is seen."""
    seen = ask.world.latest_events(ask.who)
    kind = ask.rng.choice(("all", "category", "document", "words", "actor", "subject"))
    if kind in {"words", "actor", "subject"}:
        words = {"words": {"query": ask.some_words()}, "actor": {"actor": ask.some_name()}}
        asked: Json = words.get(kind, {"subject": ask.some_name()})
    else:
        document, category = ask.any_document(), ask.rng.choice(("Decision", "Commitment"))
        chosen = {"category": {"category": category}, "document": {"artifact_uid": document.uid}}
        asked = chosen.get(kind, {})
        seen = [
            event
            for event in seen
            if asked.get("category", event.category) == event.category
            and asked.get("artifact_uid", event.document.uid) == event.document.uid
        ]
    answer = await ask("event_search", limit=_ALL, **asked)
    if "error" in answer:
        ask.equal(answer["error_code"], _NOT_FOUND, "the error")
        return
    got, wanted = _ids(answer["events"]), {event.event_id for event in seen}
    ask.equal(got - wanted, set(), f"event_search {asked}")
    ask.expect(
        answer["total"] <= len(wanted), "more in total than there is:", asked, answer["total"]
    )
    if kind in {"all", "category", "document"}:
        ask.equal(answer["total"], len(wanted), f"the total of {asked}")
        if len(wanted) <= _ALL:
            ask.equal(got, wanted, f"event_search {asked}")


async def event_get(ask: Asking) -> None:
    event = ask.pick([one for one in ask.world.events.values() if not one.document.is_gone])
    if event is None:
        return
    if not event.document.is_seen_by(ask.who):
        await ask.missing("event_get", event_id=event.event_id)
    else:
        answer = await ask("event_get", event_id=event.event_id)
        ask.equal(answer["artifact_uid"], event.document.uid, "the document")


async def event_list_for_revision(ask: Asking) -> None:
    if visible := await _of_document(ask, "event_list_for_revision"):
        document, answer = visible
        wanted = {
            event.event_id
            for event in ask.world.events.values()
            if (event.document, event.revision_id) == (document, document.latest)
        }
        ask.equal(_ids(answer["events"]), wanted, "the events of a document")
        ask.equal(answer["total"], len(wanted), "their number")


async def event_diff(ask: Asking) -> None:
    document = ask.any_document()
    if not document.is_seen_by(ask.who):
        await ask.missing("event_diff", artifact_uid=document.uid)
    else:
        await ask("event_diff", artifact_uid=document.uid)


async def event_reextract(ask: Asking) -> None:
    if visible := await _of_document(ask, "event_reextract"):
        document, answer = visible
        document.ids.add(answer["job_id"])
        document.jobs[answer["job_id"]] = answer["status"]


async def job_status(ask: Asking) -> None:
    if ask.rng.random() < 0.5:
        if visible := await _of_document(ask, "job_status"):
            ask.expect(visible[1]["job_id"] in visible[0].jobs, "a job of another", visible[1])
        return
    document = ask.any_document()
    job = ask.rng.choice(list(document.jobs))
    if document.is_seen_by(ask.who):
        answer = await ask("job_status", job_id=job)
        ask.equal(answer["artifact_uid"], document.uid, "the document of a job")
    else:
        await ask.missing("job_status", job_id=job)


async def job_list(ask: Asking) -> None:
    got: set[str] = set()
    cursor: Json = {}
    while True:
        answer = await ask("job_list", limit=7, **cursor)
        got |= {job["job_id"] for job in answer["jobs"]}
        if answer["next_cursor"] is None:
            break
        cursor = {"cursor": answer["next_cursor"]}
    wanted = {job for document in ask.world.documents(ask.who) for job in document.jobs}
    ask.equal(got, wanted, "the jobs")


async def job_cancel(ask: Asking) -> None:
    document = ask.any_document()
    job = ask.rng.choice(list(document.jobs))
    if not document.is_seen_by(ask.who):
        await ask.missing("job_cancel", job_id=job)
    else:
        answer = await ask("job_cancel", job_id=job)
        ask.expect(answer.get("error_code") != _NOT_FOUND, "an own job:", answer)


async def stakeholder_map(ask: Asking) -> None:
    words = ask.rng.choice(
        ({}, {"query": ask.some_words()}, {"artifact_uid": ask.any_document().uid})
    )
    answer = await ask("stakeholder_map", limit=100, **words)
    if "error" in answer:
        return
    seen = ask.world.latest_events(ask.who)
    if "artifact_uid" in words:
        seen = [event for event in seen if event.document.uid == words["artifact_uid"]]
    if "query" not in words:
        ask.equal(answer["events_total"], len(seen), f"the events of {words}")
    ask.expect(answer["events_total"] <= len(seen), "events of others:", words, answer)
    for person in answer["stakeholders"]:
        ask.expect(person["events"] <= len(seen), "events of others:", person)


async def commitment_list(ask: Asking) -> None:
    by = ask.rng.choice(({}, {"actor": ask.some_name()}))
    answer = await ask("commitment_list", limit=100, **by)
    promises = {e.event_id for e in ask.world.latest_events(ask.who) if e.category == "Commitment"}
    got = {item["promised"]["event_id"] for item in answer["commitments"]}
    ask.equal(got - promises, set(), f"promises {by}")
    if not by:
        ask.equal((got, answer["total"]), (promises, len(promises)), "all promises")


async def timeline(ask: Asking) -> None:
    by = ask.rng.choice(({}, {"actor": ask.some_name()}, {"query": ask.some_words()}))
    answer = await ask("timeline", limit=100, **by)
    seen = {event.event_id for event in ask.world.latest_events(ask.who)}
    got = {event["event_id"] for day in answer["days"] for event in day["events"]}
    ask.equal(got - seen, set(), f"the timeline {by}")
    ask.expect(answer["total"] <= len(seen), "more in total than there is:", by, answer["total"])
    if not by:
        ask.equal(answer["total"], len(seen), "the total of the timeline")


async def memory_store(ask: Asking) -> None:
    """Also what another person has stored already, word by word."""
    if len(ask.world.memories(ask.who)) >= _ALL // 2:
        return
    if (other := ask.pick(ask.world.memories())) is None or other.owner == ask.who:
        await ask.filled.memorise(ask.who)
        return
    answer = await ask("memory_store", content=other.content, type="preference", confidence=0.9)
    ask.equal(answer["status"], "created", "what another has stored")
    ask.expect(answer["memory_id"] != other.memory_id, "the memory of another")
    await ask("memory_delete", memory_id=answer["memory_id"])


async def memory_list(ask: Asking) -> None:
    answer = await ask("memory_list", limit=_ALL)
    wanted = {memory.memory_id for memory in ask.world.memories(ask.who)}
    got = {memory["memory_id"] for memory in answer["memories"]}
    ask.equal((got, answer["total"]), (wanted, len(wanted)), "the memories")


async def memory_search(ask: Asking) -> None:
    memory = ask.pick(ask.world.memories())
    word = sorted(memory.words)[0] if memory else "launch"
    answer = await ask("memory_search", query=ask.rng.choice(("launch", word)), limit=20)
    wanted = {memory.memory_id for memory in ask.world.memories(ask.who)}
    got = {memory["memory_id"] for memory in answer["memories"]}
    ask.equal(got - wanted, set(), "memories found")


async def memory_delete(ask: Asking) -> None:
    if (memory := ask.pick(ask.world.memories())) is None:
        return
    if memory.owner != ask.who:
        await ask.missing("memory_delete", memory_id=memory.memory_id)
    elif len(ask.world.memories(ask.who)) > 1:
        answer = await ask("memory_delete", memory_id=memory.memory_id)
        ask.equal(answer.get("deleted"), True, "what was deleted")
        memory.is_gone = True


async def history_append(ask: Asking) -> None:
    await ask.filled.append(ask.who, ask.rng.choice(CONVERSATIONS))


async def history_get(ask: Asking) -> None:
    name = ask.rng.choice(CONVERSATIONS)
    turns = ask.world.conversation(ask.who, name).turns
    answer = await ask("history_get", conversation_id=name, limit=20)
    ask.equal(answer.get("total", 0), len(turns), "the number of turns")
    got = [turn["content"] for turn in answer.get("turns", [])]
    ask.equal(got, turns[-len(got) :] if got else [], "the turns")


async def history_delete(ask: Asking) -> None:
    if ask.rng.random() > 0.2:
        return await history_get(ask)
    name = ask.rng.choice(CONVERSATIONS)
    conversation = ask.world.conversation(ask.who, name)
    answer = await ask("history_delete", conversation_id=name)
    ask.equal(answer.get("turns", 0), len(conversation.turns), "the turns deleted")
    conversation.turns.clear()
    return None


async def embedding_health(ask: Asking) -> None:
    answer = await ask("embedding_health")
    ask.equal(answer["collections"], {}, "how much the index has, of all users together")


ORACLES: dict[str, Oracle] = {
    oracle.__name__: oracle
    for oracle in (
        *(artifact_get, artifact_history, artifact_ingest, artifact_delete, artifact_search),
        *(hybrid_search, event_search, event_get, event_list_for_revision, event_diff),
        *(event_reextract, job_status, job_list, job_cancel, stakeholder_map, commitment_list),
        *(timeline, memory_store, memory_list, memory_search, memory_delete, history_append),
        *(history_get, history_delete, embedding_health),
    )
}
