"""What tests of extraction have in common."""

from tests.pipeline_client import Pipeline
from tests.scripted_provider import ScriptedProvider

SHORT = "Decision: we launch the beta in May.\nBob Roth will test it."
PARAGRAPHS = [
    f"Paragraph {n}. Carol Diaz will deliver part {n} of the plan for room {n * 7} by Friday, as "
    f"she told everybody in the hall. The lamps of floor {n} were counted and found complete."
    for n in range(12)
]
LONG = "\n\n".join(PARAGRAPHS)


async def ids(pipeline: Pipeline) -> list[str]:
    return [str(row["event_id"]) for row in await pipeline.events()]


def asked(provider: ScriptedProvider) -> list[str]:
    """The passages that were sent to be extracted."""
    return [
        call.body["messages"][-1]["content"]
        for call in provider.chats
        if "event_merge" not in str(call.body["response_format"])
    ]
