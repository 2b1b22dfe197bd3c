"""How long a tool's text may be; what is cut is said."""

MOST_CHARACTERS = 20_000


def bounded(text: str, *, length: int | None = None) -> str:
    """The text, or its beginning and a line that says how much there was (`length`)."""
    whole = len(text) if length is None else length
    if whole <= MOST_CHARACTERS:
        return text
    return f"{text[:MOST_CHARACTERS]}\n[The first {MOST_CHARACTERS} of {whole} characters.]"
