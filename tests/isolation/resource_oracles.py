"""For each kind of resource, and for prompts: a question at random, and what its answer must be."""

import json

from mcp.shared.exceptions import MCPError

from tests.isolation.asking import Asking
from tests.isolation.tool_oracles import Oracle

_UNKNOWN_UID, _UNKNOWN_EVENT = "uid_0123456789abcdef", "0d9d8e0c-7a5e-4b3f-9b6a-1f2e3d4c5b6a"


async def _read(ask: Asking, address: str) -> str:
    """Its text, or what is said of an error."""
    client = ask.filled.tools[ask.who].client
    try:
        answer = await client.read_resource(address)
        text = "".join(getattr(content, "text", "") for content in answer.contents)
    except MCPError as error:
        text = f"{error.code}: {error.message} {error.data}"
    ask.look_through(address, text, address)
    return text


async def read_missing(ask: Asking, address: str, id_: str, unknown: str) -> None:
    got = await _read(ask, address)
    wanted = await _read(ask, address.replace(id_, unknown))
    ask.equal(got, wanted.replace(unknown, id_), f"{address}, which is not seen,")


async def latest_artifact(ask: Asking) -> None:
    document = ask.any_document()
    address = f"memory://artifact/{document.uid}"
    if not document.is_seen_by(ask.who):
        await read_missing(ask, address, document.uid, _UNKNOWN_UID)
    else:
        text = document.contents[document.latest]
        ask.equal(await _read(ask, address), text, address)


async def artifact_revision(ask: Asking) -> None:
    document = ask.any_document()
    revision = ask.rng.choice(list(document.contents))
    address = f"memory://artifact/{document.uid}/{revision}"
    if not document.is_seen_by(ask.who):
        await read_missing(ask, address, document.uid, _UNKNOWN_UID)
    else:
        ask.equal(await _read(ask, address), document.contents[revision], address)


async def event(ask: Asking) -> None:
    event = ask.pick([one for one in ask.world.events.values() if not one.document.is_gone])
    if event is None:
        return
    address = f"memory://event/{event.event_id}"
    if not event.document.is_seen_by(ask.who):
        await read_missing(ask, address, event.event_id, _UNKNOWN_EVENT)
    else:
        ask.expect(event.category in await _read(ask, address), "an own event:", address)


async def artifact_timeline(ask: Asking) -> None:
    document = ask.any_document()
    address = f"memory://timeline/{document.uid}"
    if not document.is_seen_by(ask.who):
        await read_missing(ask, address, document.uid, _UNKNOWN_UID)
    else:
        await _read(ask, address)


async def resource_list(ask: Asking) -> None:
    answer = await ask.filled.tools[ask.who].client.list_resources()
    ask.look_through("resources/list", answer.model_dump_json())
    wanted = {f"memory://artifact/{document.uid}" for document in ask.world.documents(ask.who)}
    ask.equal({str(one.uri) for one in answer.resources}, wanted, "the list of resources")


async def prompts(ask: Asking) -> None:
    client = ask.filled.tools[ask.who].client
    for prompt in (await client.list_prompts()).prompts:
        word = ask.rng.choice(sorted(ask.any_document().words))
        given = {argument.name: word for argument in prompt.arguments or []}
        answer = await client.get_prompt(prompt.name, given)
        ask.look_through(prompt.name, answer.model_dump_json(), json.dumps(given))


# By the address that the server says it has.
TEMPLATES: dict[str, Oracle] = {
    "memory://artifact/{artifact_uid}": latest_artifact,
    "memory://artifact/{artifact_uid}/{revision_id}": artifact_revision,
    "memory://event/{event_id}": event,
    "memory://timeline/{artifact_uid}": artifact_timeline,
}
RESOURCES: dict[str, Oracle] = {**TEMPLATES, "resources/list": resource_list, "prompts": prompts}
