"""terms: texts of an interface are translated with the terms of a glossary."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gta_bench.datasets.folders import GroupEntry
from gta_bench.forge.draft import (
    CheckTable,
    TaskDice,
    TaskDraft,
    TaskFamily,
    TaskLevel,
    Work,
    Wrong,
    group,
    leaf,
)
from gta_bench.forge.files import write_csv
from gta_bench.forge.inside import guard_check
from gta_bench.forge.phrases import (
    ALWAYS,
    DENIAL,
    DENYING,
    FILLER,
    LANGUAGES,
    MAY_DENY,
    MEANINGS,
    OTHER_TERMS,
    OTHER_WORDS,
    PHRASES,
    TERMS,
    Phrase,
)

FILE: Final = "translated.csv"
TEXTS: Final = "texts.csv"
GLOSSARY: Final = "glossary.csv"
KEYS: Final = "keys.csv"
# Texts, and terms of the glossary that no text has.
SIZES: Final = {1: (8, 0), 2: (16, 4), 3: (26, 10)}
# Keys and names are no text in the language.
SHARE: Final = 0.7
FIELD: Final = re.compile(r"\{\w+\}")
CHECK: Final = "texts.py"
FUNCTIONS: Final = ("has_fields", "has_terms", "has_own_words", "has_meaning")
# The functions that decide; LANGUAGE, TEXTS, TERMS and NAME stand before them.
RULES: Final = '''
import re


def read_texts(work):
    """Return the texts by their keys; those of unknown keys are left out."""
    found = {}
    for table in work.tables("translated.csv"):
        head = [cell.strip() for cell in table[0]] if table else []
        if "Key" in head and LANGUAGE in head:
            for row in table[1:]:
                row = [*row, *[""] * len(head)]
                key = row[head.index("Key")].strip()
                if key in TEXTS:
                    found[key] = row[head.index(LANGUAGE)]
    return found


def decide(work, find, wanted):
    """Return whether there are most of the texts, and `find` finds nothing bad in them."""
    texts = read_texts(work)
    if 2 * len(texts) < len(TEXTS):
        return {"score": 0, "found": f"{len(texts)} texts with a key", "wanted": wanted}
    bad = [key for key, text in texts.items() if find(key, text)]
    found = f"{bad[0]}: {texts[bad[0]]}" if bad else f"{len(texts)} texts"
    return {"score": not bad, "found": found, "wanted": wanted}


def has_fields(work):
    def find(key, text):
        return sorted(re.findall(r"\\{.*?\\}", text)) != sorted(TEXTS[key]["fields"])
    return decide(work, find, "the words in braces of the given text, and no others")


def has_terms(work):
    def find(key, text):
        own = TEXTS[key]["term"]
        found = [one for one in TERMS if re.search(rf"\\b{re.escape(one)}\\b", text)]
        return own not in text or len({*found} - {own}) > 1
    return decide(work, find, "the term of the given text, and at most one other")


def has_own_words(work):
    """Whether texts differ in more than fields, terms, the name, keys and numbers."""
    def strip(key, text):
        for one in (*TERMS, NAME, key):
            text = text.replace(one, " ")
        return " ".join(re.findall(r"[^\\W\\d_]+", re.sub(r"\\{.*?\\}", " ", text).lower()))
    texts = {key: strip(key, text) for key, text in read_texts(work).items()}
    def find(key, text):
        return sum(one == texts[key] for one in texts.values()) > 1
    return decide(work, find, "another text for each key")


def has_meaning(work):
    """Whether each text has words that a translation of its own text needs."""
    def find(key, text):
        said = text.lower()
        # Terms, fields and names are other leaves' concern.
        for one in (*TERMS, NAME):
            said = said.replace(one.lower(), " ")
        said = re.sub(r"\\{.*?\\}", " ", said)
        if TEXTS[key]["denies"] and re.search(rf"\\b(?:{TEXTS[key]['denies']})\\b", said):
            return True
        return not all(re.search(rf"\\b(?:{one})", said) for one in TEXTS[key]["says"])
    return decide(work, find, "words that say what the given text says, and do not deny it")
'''


@dataclass(frozen=True)
class Truth:
    """What a translation must keep and use."""

    language: str
    company: str
    texts: tuple[Phrase, ...]
    terms: Mapping[str, str]
    others: Mapping[str, str]

    @property
    def code(self) -> str:
        """The language's code."""
        return LANGUAGES[self.language]

    def english(self, one: Phrase) -> str:
        """A text as it is given."""
        return one.en.replace("COMPANY", self.company)

    def translated(self, one: Phrase) -> str:
        """A text in the language."""
        return self.fill(one, one.translate(self.code))

    def reworded(self, one: Phrase) -> str:
        """A text in the language, in other words where there are some."""
        return self.fill(one, OTHER_WORDS.get(one.key, {}).get(self.code, one.translate(self.code)))

    def fill(self, one: Phrase, text: str) -> str:
        """Put the term and the company's name into a text."""
        return text.replace("<>", self.terms.get(one.term, "")).replace("COMPANY", self.company)

    def half(self, one: Phrase) -> str:
        """A text in English with the term in the language; those without a term in the language."""
        return self.english(one).replace(one.term, self.terms[one.term]) if one.term else (
            self.translated(one)
        )  # fmt: skip

    def build(self, write: Callable[[Phrase], str], *changed: tuple[str, str]) -> Work:
        """Write all texts; those in `changed`, by their keys, as it says."""
        new = dict(changed)
        rows = [(one.key, new.get(one.key, write(one))) for one in self.texts]
        return Work({FILE: write_csv([("Key", self.language), *rows])})


def make(dice: TaskDice, level: TaskLevel) -> TaskDraft:
    """Make a task."""
    count, unused = SIZES[level]
    language = dice.choice([*LANGUAGES])
    code = LANGUAGES[language]
    # A short list has no further text without a term, so that the terms' texts are most of it.
    more_texts = [one for one in PHRASES if one.term or level > 1]
    texts = [*ALWAYS, *dice.sample(more_texts, count - len(ALWAYS))]
    dice.shuffle(texts)
    terms, others = {}, {}
    for name, variants in TERMS.items():
        pair = variants[code]
        at = dice.randrange(2)
        if any(one.term == name for one in texts):
            terms[name], others[name] = pair[at], pair[1 - at]
    truth = Truth(language, dice.company(), tuple(texts), terms, others)
    more = [(name, OTHER_TERMS[name][code]) for name in dice.sample([*OTHER_TERMS], unused)]
    glossary = sorted([*terms.items(), *more])
    source = write_csv([("Key", "English"), *((one.key, truth.english(one)) for one in texts)])
    return TaskDraft(
        request=_ask(dice, truth),
        category="Creative Design & Expressive Generation",
        tools=("ReadCSV", "CsvFileGenerator"),
        inputs={TEXTS: source, GLOSSARY: write_csv([("English", language), *glossary])},
        deliverables={FILE: "csv"},
        nodes=_score(truth),
        gold={
            "plain": truth.build(truth.translated),
            "other-words": truth.build(truth.reworded),
        },
        wrong=_break(truth),
        cheat={"source-copied": Work({FILE: source})},
        checks={
            KEYS: write_csv([("Key",), *((one.key,) for one in texts)]),
            CHECK: _write_check(truth),
        },
    )


def _write_check(truth: Truth) -> bytes:
    texts = {
        one.key: {
            "fields": FIELD.findall(one.en),
            "term": truth.terms.get(one.term, ""),
            "says": MEANINGS[one.key][truth.code],
            "denies": "" if one.key in MAY_DENY else DENYING[truth.code],
        }
        for one in truth.texts
    }
    facts = {"LANGUAGE": truth.language, "TEXTS": texts, "TERMS": [*truth.terms.values()],
             "NAME": truth.company}  # fmt: skip
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in facts.items()]
    return guard_check("\n".join(lines) + f"\n{RULES}", FUNCTIONS)


def _ask(dice: TaskDice, truth: Truth) -> str:
    opening = dice.choice(
        (
            f"The shop of {truth.company} opens in another country. Translate the "
            f"{len(truth.texts)} texts of its pages in inputs/{TEXTS} from English to "
            f"{truth.language}.",
            f"inputs/{TEXTS} has {len(truth.texts)} texts that the shop of {truth.company} shows "
            f"to its customers. Write them in {truth.language}.",
        )
    )
    return (
        f"{opening} Deliver {FILE} with the columns Key and {truth.language}, in this order, and "
        "with the keys of the given texts in their order, each once. Words in braces such as "
        "{name} are filled in later: keep them as they are, and add no others. Where a text has "
        f"a term of inputs/{GLOSSARY}, use the glossary's translation, in exactly that form; terms "
        "of other texts do not belong there. "
        f"{truth.company} is a name and stays as it is."
    )


def _score(truth: Truth) -> tuple[GroupEntry, ...]:
    texts, count = truth.texts, len(truth.texts)
    head: CheckTable = {"is": "table.shape", "file": FILE, "head": ["Key", truth.language]}

    def lines(kept: Mapping[str, list[str]]) -> CheckTable:
        """Every key is followed by what its text keeps."""
        parts = [
            re.escape(key) + "," + "".join(f"(?=.*{re.escape(one)})" for one in wanted)
            for key, wanted in kept.items()
            if wanted
        ]
        return {"is": "text.regex", "file": FILE, "pattern": rf"^(?:{'|'.join(parts)})",
                "min": len(parts)}  # fmt: skip

    def decided(function: str) -> CheckTable:
        return {"is": "python", "run": f"checks/{CHECK}:{function}"}

    named = {one.key: [truth.company] for one in texts if "COMPANY" in one.en}
    order = r"(?:.*\n)*?".join(f"{re.escape(one.key)},.*\\n" for one in texts)
    return (
        group(
            "table",
            leaf("keys", f"The file has the {count} keys, each once, and no others.", head,
                 {"is": "table.same", "file": FILE, "reference": f"checks/{KEYS}",
                  "key": ["Key"]}),
            leaf("order", "The keys are in the order of the given texts.", head,
                 {"is": "text.regex", "file": FILE, "pattern": f"^{order}"}, needs=("keys",)),
        ),
        group(
            "texts",
            leaf("fields", "Every text has the words in braces that the given text with its key "
                 "has, unchanged, and no others.", head, decided("has_fields"), weight=2),
            leaf("terms", "Every text with a term of the glossary has the term's translation in "
                 "exactly the form that the glossary gives, and no text has the terms of several "
                 "other texts.", head, decided("has_terms"), weight=2),
            leaf("meaning", "Every text has words that say what the text with its key says; which "
                 "ones, is listed for each text and language with some alternatives. No text that "
                 "states something denies it.", head,
                 decided("has_meaning"), weight=2),
            leaf("own", "Every key has a text of its own: no two are the same apart from terms, "
                 "names, numbers and words in braces.", head, decided("has_own_words")),
            leaf("brand", "Texts about the company have its name as it is given.", head,
                 lines(named)),
            leaf("translated", "No text is left as it was given.",
                 {**head, "rows": {"min": count // 2}},
                 {"is": "text.contains", "file": FILE, "all": [truth.language],
                  "none": [truth.english(one) for one in texts]}),
            leaf("language", f"The texts are in {truth.language}.", head,
                 {"is": "text.language", "file": FILE, "language": truth.code, "share": SHARE},
                 weight=2),
            weight=4,
        ),
    )  # fmt: skip


def _break(truth: Truth) -> dict[str, Wrong]:
    by_key = {one.key: one for one in truth.texts}
    greeting, failure, about, cart = (by_key[one.key] for one in ALWAYS)
    written = truth.translated
    ordered = (*truth.texts[1:], truth.texts[0])
    without = tuple(one for one in truth.texts if one is not failure)
    other = replace(truth, terms=truth.others).translated(cart)
    # Everything that any text must keep, in one sentence for all of them.
    every = [
        *truth.terms.values(),
        *sorted({*FIELD.findall(" ".join(map(truth.english, ordered)))}),
    ]
    # With common words in the sentence, terms and fields do not change its language.
    prose = f"{written(failure)} {FILLER[truth.code].removesuffix('.')}"
    same = f"{prose} {' '.join(every)} {truth.company}."
    texts = {one.key: written(one) for one in truth.texts}
    second = texts[greeting.key].replace("{name}", "").strip(" .,")
    short = written(about).replace(truth.company, truth.company.split()[0])
    made: dict[str, tuple[Work, *tuple[str, ...]]] = {
        "text-lost": (replace(truth, texts=without).build(written), "keys"),
        "first-text-last": (replace(truth, texts=ordered).build(written), "order"),
        "field-lost": (
            truth.build(written, (cart.key, written(cart).replace("{count} ", ""))), "fields"),
        "field-changed": (
            truth.build(written, (greeting.key, written(greeting).replace("{name}", "{Name}"))),
            "fields"),
        "other-term": (truth.build(written, (cart.key, other)), "terms"),
        "name-shortened": (truth.build(written, (about.key, short)), "brand"),
        "left-in-English": (
            truth.build(written, (greeting.key, truth.english(greeting))),
            "translated", "meaning"),
        "only-terms-translated": (truth.build(truth.half), "language", "meaning"),
        "words-without-meaning": (
            truth.build(written, (failure.key, FILLER[truth.code])), "meaning"),
        "text-denied": (
            truth.build(written, (cart.key, f"{written(cart)} {DENIAL[truth.code]}")), "meaning"),
        "field-added": (
            truth.build(written, (failure.key, f"{written(failure)} {{name}}")), "fields"),
        "text-repeated": (
            truth.build(written, (failure.key, f"{second}.")), "own", "meaning"),
    }  # fmt: skip
    wrong = {name: Wrong(work, tuple(broken), "plain") for name, (work, *broken) in made.items()}
    constant = truth.build(lambda one: same)
    return wrong | {
        "one-text-for-all": Wrong(constant, ("fields", "terms", "meaning", "own"), "plain")
    }


FAMILY: Final = TaskFamily(
    "terms",
    "texts of an interface are translated with the terms of a glossary; fields and names stay",
    (
        "8 texts, a glossary of their terms",
        "16 texts, 4 more terms in the glossary",
        "26 texts, 10 more terms in the glossary",
    ),
    make,
)
