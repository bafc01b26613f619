"""The accented letters of languages in Latin script. They show which of several decodings of the
same bytes is a real language."""

_ALPHABETS = tuple(
    frozenset(letters + letters.upper())
    for letters in (
        "äöüß", "àâæçéèêëîïôœùûüÿ", "áéíóúüñ", "áâãàçéêíóôõúü", "àèéìîòóù", "åäöé", "æøåéäö",
        "éëïóöüèáíú", "áðéíóúýþæö", "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž",
        "áéíóöőúüű", "ăâîșțşţ", "čćđšž", "āčēģīķļņšūžō", "ąčęėįšųūž", "äöõüšž", "çğıİöşüâîû",
        "àéèíïóòúüç",
    )
)  # fmt: skip
_PUNCTUATION = frozenset("“”„‚‘’–—…€£«»‹›°§·•©®™¿¡½²³\xa0")


def plausibility(text: str) -> float:
    """The share of the non-ASCII characters that the letters of one language, or its punctuation,
    explain."""
    foreign = [character for character in text if ord(character) > 127]
    letters = [character for character in foreign if character not in _PUNCTUATION]
    if not letters:
        return 1.0
    best = max(sum(letter in alphabet for letter in letters) for alphabet in _ALPHABETS)
    return (best + len(foreign) - len(letters)) / len(foreign)
