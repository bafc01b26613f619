"""Word lists: stop words, and words that decide the meaning of a sentence."""


def listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Words that carry little meaning of their own.
STOPWORDS = listed("""
    a about after all also am an and any are as at be been before being but by can could did do
    does doing each for from had has have he her here hers him his how i if in into is it its it's
    just may me might more most must my of on only or other our out over own same shall she should
    so some such than that the their them then there these they this those through to too under up
    us very was we were what when where which while who whom why will with would you your
""")

_NEGATIONS = listed("""
    no not never none nobody nothing nor neither nowhere cannot without hardly
    nicht nie niemals kein keine keinen keiner nichts ohne
    ne pas jamais aucun aucune rien sans nunca ninguno ninguna nada sin
    не ни нет никогда без 不 没 沒 无 無 未 非
""")

_NUMERALS = listed("""
    zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
    sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety
    hundred thousand million billion half twice first second third
    一 二 三 四 五 六 七 八 九 十 百 千 万 億 亿
""")


def burden(word: str) -> str:
    """What a folded word decides on its own: a number, a negation, or (usually) nothing.

    A quote that differs from its source in such a word says something else, not the same in other
    words.
    """
    if word in _NUMERALS or any(character.isdigit() for character in word):
        return word
    if word in _NEGATIONS or word.endswith("n't"):
        return "not"
    return ""
