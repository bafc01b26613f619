"""Texts in scripts without spaces between words are found by a part of a sentence."""

import psycopg
import pytest

from memory_core.text.scripts import in_pairs
from tests.integration.searched_text import found_texts, note
from tests.tool_client import ToolClient

TEXTS = {
    "zh": "我们决定下个月在东京举行会议，预算是五万元。",
    "ja": "来月の会議は東京都で開催されます。予算は五万円です。",
    "th": "เราตัดสินใจจัดการประชุมที่กรุงเทพในเดือนหน้า",
    "ko": "다음 달 회의는 서울에서 열립니다.",
    "de": "Die Besprechung im Oktober findet in München statt.",
    "ru": "Совещание в октябре пройдёт в Москве.",
}


@pytest.mark.parametrize(
    ("query", "language"),
    [
        ("举行会议", "zh"),
        ("東京都", "ja"),
        ("ประชุม", "th"),
        ("서울", "ko"),
        ("München", "de"),
        ("совещание", "ru"),
    ],
)
async def test_a_part_of_a_sentence_finds_it(tools: ToolClient, query: str, language: str) -> None:
    for name, text in TEXTS.items():
        await note(tools, text, source_id=name)

    answer = await tools("hybrid_search", query=query)

    first = answer["results"][0]
    assert first["text"] == TEXTS[language]
    assert "full_text" in first["sources"]


@pytest.mark.parametrize("query", ["MySQL", "EQ0123", "2031"])
async def test_a_latin_word_between_characters_finds_it(tools: ToolClient, query: str) -> None:
    mixed = "我们把数据库从MySQL迁移。设备EQ0123，编号2031号。"
    await note(tools, mixed, source_id="mixed")
    for name, text in TEXTS.items():
        await note(tools, text, source_id=name)

    answer = await tools("hybrid_search", query=query)

    assert [hit["text"] for hit in answer["results"]] == [mixed]
    assert "full_text" in answer["results"][0]["sources"]
    assert answer["note"] == ""


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("会议 -东京", "会议在大阪举行。"),
        ("会议 -举行会议", "会议在大阪举行。"),
        ("-大阪", "东京举行会议。"),
    ],
)
async def test_excluded_characters_do_not_come_back(
    tools: ToolClient, query: str, expected: str
) -> None:
    for text in ("东京举行会议。", "会议在大阪举行。"):
        await note(tools, text, source_id=text)

    assert await found_texts(tools, query) == [expected]


@pytest.mark.parametrize("query", ["猫", "猫？", "会议 猫"])
async def test_one_character_finds_the_words_that_begin_with_it(
    tools: ToolClient, query: str
) -> None:
    for number in range(110):
        await note(tools, f"第{number}号狗", source_id=f"{number}")
    await note(tools, "她有猫咪三只", source_id="cat")

    [hit, *_] = (await tools("hybrid_search", query=query))["results"]

    assert hit["text"] == "她有猫咪三只"
    assert "full_text" in hit["sources"]


async def test_a_memory_is_found_by_a_part_of_its_sentence(tools: ToolClient) -> None:
    await tools("memory_store", content="好きな色は青です。", type="preference", confidence=1)

    answer = await tools("hybrid_search", query="好きな色")

    assert "memory_full_text" in answer["results"][0]["sources"]


@pytest.mark.parametrize("text", [*TEXTS.values(), "京", "a東京b", "x" * 5, "東" * 250, ""])
def test_the_database_makes_the_same_pairs(sql: psycopg.Connection, text: str) -> None:
    row = sql.execute("SELECT in_pairs(%s)", [text]).fetchone()

    assert row is not None
    assert row[0] == in_pairs(text)
