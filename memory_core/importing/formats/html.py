"""HTML as text: what a reader would see. Scripts, styles, forms and tracking pixels are dropped."""

import re
from collections import Counter
from typing import Any

from memory_core.importing import sandbox
from memory_core.importing.item import Unusable

_DROPPED = [
    "script", "style", "noscript", "template", "head", "iframe", "object", "embed", "canvas",
    "audio", "video", "img", "picture", "input", "select", "button", "textarea", "link", "meta",
    "base", "map", "frame", "frameset", "applet",
]  # fmt: skip
_BLOCKS = {
    "address", "article", "aside", "body", "caption", "center", "dd", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "header", "hr", "html", "legend", "li", "main", "nav",
    "ol", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul",
}  # fmt: skip
_SPACED = {"p", "pre", "blockquote", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table"}
_CELLS = {"td", "th"}
_INVISIBLE = re.compile(
    r"(?:^|;)(?:display:none|visibility:hidden|mso-hide:all|opacity:0{0,9}\.?0{1,9}(?:%|!|;|$))"
)
_FONT_SIZE = re.compile(r"(?:^|;)font-size:([\w.%]{1,20})")
_ZERO = re.compile(r"0*\.?0+[a-z%]{0,4}")
_SPACES = re.compile(r"[ \t\r\n\f]+")
_MAX_NODES = 2_000_000
_MAX_DEPTH = 2_000
# Parsing time grows with size times depth. Larger pages are parsed in a process with a time limit.
_INLINE_CHARS = 1_000_000
_INLINE_DEPTH = 500
_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]{0,30})")
# Void elements, or elements closed by what follows: these do not nest.
_FLAT = {
    "area", "base", "br", "col", "dd", "dt", "embed", "hr", "img", "input", "li", "link", "meta",
    "option", "p", "param", "source", "tbody", "td", "th", "tr", "track", "wbr",
}  # fmt: skip

_CHARSET = re.compile(
    rb"(?:charset[ \t\r\n]{0,9}=|<\?xml[^>]{1,100}encoding=)[ \t\r\n]{0,9}[\"']?([\w.:-]{1,40})",
    re.IGNORECASE,
)
_DECLARED_WITHIN = 1_024


def declared(data: bytes) -> str | None:
    """The charset that a page declares, where browsers look for it. A page that declares UTF-16 in
    ASCII is wrong."""
    charset = _CHARSET.search(data[:_DECLARED_WITHIN])
    label = charset[1].decode() if charset else None
    return None if label and label.lower().startswith(("utf-16", "utf-32")) else label


def read(data: str) -> tuple[str, str | None]:
    """The text and the title, in bounded time."""
    if len(data) <= _INLINE_CHARS and _depth(data) <= _INLINE_DEPTH:
        return parse(data)
    answer = sandbox.parse("html", data.encode(errors="replace"))
    return answer["text"], answer["title"]


def _depth(data: str) -> int:
    """An upper estimate: the open elements, if every closing tag closes its own."""
    counts: Counter[str] = Counter()
    depth = deepest = 0
    for match in _TAG.finditer(data):
        name = match[2].lower()
        if name in _FLAT:
            continue
        if not match[1]:
            counts[name] += 1
            depth += 1
            deepest = max(deepest, depth)
        elif counts[name]:
            counts[name] -= 1
            depth -= 1
    return deepest


def parse(data: str) -> tuple[str, str | None]:
    """The text and the title."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(data)
    tree.strip_tags(["svg", "math"])  # images have titles too
    title = tree.css_first("title")
    name = " ".join(title.text().split()) if title is not None else None
    tree.strip_tags(_DROPPED)
    if tree.body is None:
        return "", name
    return render(tree.body), name


def render(body: Any) -> str:
    writer = _Writer()
    node, depth, count = body, 0, 0
    while node is not None:
        count += 1
        if count > _MAX_NODES or depth > _MAX_DEPTH:
            raise Unusable("HTML of that size or depth is not read")
        hidden = _hidden(node)
        if not hidden:
            writer.enter(node)
        if not hidden and node.child is not None:
            node, depth = node.child, depth + 1
            continue
        # Go up until there is a sibling. Iterative, because hostile pages nest deeper than Python
        # recurses.
        while node is not None:
            if not _hidden(node):
                writer.leave(node)
            if node.mem_id == body.mem_id:
                return writer.text()
            if node.next is not None:
                node = node.next
                break
            node, depth = node.parent, depth - 1
    return writer.text()


def _hidden(node: Any) -> bool:
    """Preheaders and other text that a reader does not see."""
    if not node.is_element_node:
        return False
    attributes = node.attributes
    if not attributes:
        return False
    if "hidden" in attributes or (attributes.get("aria-hidden") or "").strip().lower() == "true":
        return True
    return _INVISIBLE.search(_style(attributes)) is not None


def _style(attributes: Any) -> str:
    return "".join((attributes.get("style") or "").split()).lower()


def _has_no_size(node: Any) -> bool | None:
    """Whether its own style hides text; None if the style says nothing about it. Newsletters hide
    cells and give the paragraphs inside a size again."""
    attributes = node.attributes if node.is_element_node else None
    size = _FONT_SIZE.search(_style(attributes)) if attributes else None
    return None if size is None else _ZERO.fullmatch(size[1]) is not None


class _Writer:
    def __init__(self) -> None:
        self._lines: list[str] = []
        self._current: list[str] = []
        self._quotes = 0
        self._pre = 0
        self._lists: list[int | None] = []
        self._vanished: list[bool] = []
        self._marker: str | None = None

    def enter(self, node: Any) -> None:
        tag = node.tag
        if (vanishes := _has_no_size(node)) is not None:
            self._vanished.append(vanishes)
        if tag == "-text":
            if not (self._vanished and self._vanished[-1]):
                self._write(node.text_content or "")
        elif tag == "br":
            self._break()
        elif tag in _SPACED:
            self._paragraph()
            if tag == "blockquote":
                self._quotes += 1
            elif tag == "pre":
                self._pre += 1
            elif tag in ("ul", "ol"):
                self._lists.append(0 if tag == "ol" else None)
            elif tag[0] == "h" and tag[1:].isdigit():
                self._current.append("#" * int(tag[1:]) + " ")
        elif tag in _BLOCKS:
            self._break_if_begun()
            if tag == "li":
                self._bullet()
        elif tag in _CELLS and self._begun:
            self._current.append(" | ")

    def leave(self, node: Any) -> None:
        tag = node.tag
        if self._vanished and _has_no_size(node) is not None:
            self._vanished.pop()
        if tag == "li" and not self._begun:
            self._current.clear()  # an entry without words
        if tag == "blockquote":
            self._end_quote()
        elif tag in _SPACED:
            self._paragraph()
            if tag == "pre":
                self._pre -= 1
            elif tag in ("ul", "ol") and self._lists:
                self._lists.pop()
        elif tag in _BLOCKS:
            self._break_if_begun()

    def text(self) -> str:
        self._break_if_begun()
        self._current.clear()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._lines)).strip("\n")

    def _write(self, text: str) -> None:
        text = text.replace("\xa0", " ").replace("\u200b", "")
        if self._pre:
            first, *rest = text.split("\n")
            self._current.append(first)
            for line in rest:
                self._break()
                self._current.append(line)
            return
        flat = _SPACES.sub(" ", text)
        if flat.startswith(" ") and (not self._current or self._current[-1].endswith(" ")):
            flat = flat[1:]
        if flat:
            self._current.append(flat)

    def _end_quote(self) -> None:
        self._break_if_begun()
        blank = ("> " * self._quotes).rstrip()
        while self._lines and self._lines[-1] == blank:
            self._lines.pop()
        self._quotes -= 1
        self._paragraph()

    def _bullet(self) -> None:
        if self._current:  # the list is the only content of the entry around it
            self._break()
        indent = "  " * max(len(self._lists) - 1, 0)
        if self._lists and (number := self._lists[-1]) is not None:
            self._lists[-1] = number + 1
            self._marker = f"{indent}{number + 1}. "
        else:
            self._marker = f"{indent}- "
        self._current.append(self._marker)

    @property
    def _begun(self) -> bool:
        return bool("".join(self._current).strip()) and self._current != [self._marker]

    def _break_if_begun(self) -> None:
        """The mark of an entry waits for its words, which may be in a paragraph."""
        if self._begun:
            self._break()
        elif self._current != [self._marker]:
            self._current.clear()

    def _break(self) -> None:
        line = "".join(self._current).rstrip()
        self._current.clear()
        if self._quotes:
            line = f"{'> ' * self._quotes}{line}".rstrip()
        self._lines.append(line)

    def _paragraph(self) -> None:
        self._break_if_begun()
        if self._current:
            return
        blank = ("> " * self._quotes).rstrip()
        if self._lines and self._lines[-1] not in ("", blank):
            self._lines.append(blank)
