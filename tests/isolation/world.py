"""All that is stored, and by plain rules who may see it: the oracle of the isolation tests.

Each text has words of its own, so that a word in an answer tells which text it comes from.
"""

import random
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.isolation.principals import Person

WORD = re.compile(r"zq[a-z]{7}k", re.IGNORECASE)
_LETTERS = "abcdefghijlmnoprtuvw"
CONVERSATIONS = ("planning", "review")  # the same names for all


@dataclass(slots=True)
class Item:
    """Something that is stored: `ids` and `words` are found in nothing else."""

    kind: str
    owner: Person
    scope: str = "me"
    listed: tuple[str, ...] = ()
    ids: set[str] = field(default_factory=set)
    words: set[str] = field(default_factory=set)
    is_gone: bool = False
    seen_once: set[Person] = field(default_factory=set)  # by them too, before its scope changed

    def is_seen_by(self, who: Person) -> bool:
        """The rules of visibility, written down once more."""
        if who.tenant != self.owner.tenant:
            return False
        if who.user == self.owner.user or self.scope == "org":
            return True
        if self.scope == "team":
            return bool(who.groups & self.owner.groups)
        groups = {f"group:{name}" for name in who.groups}
        return self.scope == "custom" and bool(set(self.listed) & ({f"user:{who.user}"} | groups))


@dataclass(slots=True)
class Document(Item):
    uid: str = ""
    source_id: str = ""
    people: tuple[str, ...] = ()
    contents: dict[str, str] = field(default_factory=dict)  # by revision; the last is the latest
    jobs: dict[str, str] = field(default_factory=dict)  # states, by job

    @property
    def latest(self) -> str:
        return list(self.contents)[-1]


@dataclass(slots=True)
class Memory(Item):
    memory_id: str = ""
    content: str = ""


@dataclass(slots=True)
class Conversation(Item):
    name: str = ""
    turns: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Event:
    event_id: str
    document: Document
    revision_id: str
    category: str
    is_latest: bool


class World:
    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.items: list[Item] = []
        self.events: dict[str, Event] = {}
        self._given: set[str] = set()

    def word(self) -> str:
        """One that nothing has yet, which stemming leaves as it is."""
        while True:
            word = "zq" + "".join(self.rng.choices(_LETTERS, k=7)) + "k"
            if word not in self._given:
                self._given.add(word)
                return word

    def add(self, item: Item) -> None:
        self.items.append(item)

    def kept(self, kind: type[Item] = Item) -> list[Item]:
        return [item for item in self.items if isinstance(item, kind) and not item.is_gone]

    def documents(self, who: Person | None = None) -> list[Document]:
        """Those that there are; of them, those that a person sees."""
        documents = [item for item in self.items if isinstance(item, Document) and not item.is_gone]
        return [item for item in documents if who is None or item.is_seen_by(who)]

    def memories(self, who: Person | None = None) -> list[Memory]:
        memories = [item for item in self.items if isinstance(item, Memory) and not item.is_gone]
        return [item for item in memories if who is None or item.is_seen_by(who)]

    def conversation(self, who: Person, name: str) -> Conversation:
        for item in self.items:
            if isinstance(item, Conversation) and (item.owner, item.name) == (who, name):
                return item
        made = Conversation("conversation", who, name=name)
        self.add(made)
        return made

    def latest_events(self, who: Person) -> list[Event]:
        return [
            event
            for event in self.events.values()
            if event.is_latest and not event.document.is_gone and event.document.is_seen_by(who)
        ]

    def foreign(self, who: Person) -> Iterator[Item]:
        """What a person may learn nothing of. What was deleted too: it may be in a cache."""
        return (item for item in self.items if not item.is_seen_by(who))

    def leaks(
        self, who: Person, text: str, asked: str = "", *, is_history: bool = False
    ) -> set[str]:
        """Words and ids in a text that belong to nothing the reader may see; or, in a history, has
        ever seen. What the reader has said is no secret to it."""
        said = asked.lower()
        words = {word.lower() for word in WORD.findall(text)}
        ids = set(_ID.findall(text))
        leaked: set[str] = set()
        for item in self.foreign(who):
            if is_history and who in item.seen_once:
                continue
            leaked |= {one for one in (item.words & words) | (item.ids & ids) if one not in said}
        return leaked


_ID = re.compile(
    r"(?:uid|rev|art|mem)_[0-9a-f]{16}"
    r"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
)


def words_in(*texts: str) -> set[str]:
    return {word.lower() for text in texts for word in WORD.findall(text)}


def ids_in(*texts: str) -> set[str]:
    return {id_ for text in texts for id_ in _ID.findall(text)}


def content_of(words: Iterable[str], person: str) -> str:
    """A text from which the rules read a decision, a promise and a risk. "launch" and "report" are
    in all of them."""
    one, two, three = words
    return (
        f"Decision: we will launch the {one} beta in May.\n\n"
        f"{person} will deliver the {two} report by 2027-01-15.\n\n"
        f"Risk: the {three} launch may slip because of the vendor.\n"
    )
