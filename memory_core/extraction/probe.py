"""A probe of the model that extracts events: one tiny real question shows whether it answers in
JSON."""

from uuid import uuid4

from memory_core.extraction.chat_model import ChatModel, Question
from memory_core.extraction.ledger import Ledger
from memory_core.kernel.settings import Settings

_QUESTION = Question(
    kind="extract",
    schema_name="probe",
    schema={
        "type": "object",
        "properties": {"ok": {"type": "boolean"}},
        "required": ["ok"],
        "additionalProperties": False,
    },
    system='Answer with the JSON object {"ok": true}.',
    messages=("Are you there?",),
)


async def ask_model(settings: Settings) -> None:
    """Raises the ProviderFault that extraction would raise. There are no retries, because a person
    waits."""
    chat = ChatModel(settings.model_copy(update={"openai_max_retries": 0}))
    try:
        await chat.ask(_QUESTION, Ledger(uuid4(), generation=0))
    finally:
        await chat.close()
