"""What is a secret, and how it leaves texts and files without harming what stands beside it."""

import base64
import gzip
import io
import json
import os
import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gta_bench import redaction
from gta_bench.confine.files import redact_tree
from gta_bench.records.base import Record
from gta_bench.redaction import (
    Redactor,
    current_redactor,
    find_address_secrets,
    find_text_secrets,
    is_secret,
    mask_text,
    protect,
)
from gta_bench.runs.directory import write_record
from gta_bench.settings import Settings, read_secrets

KEY = "sk-live-7f3a/9+x"
REDACTOR = Redactor({KEY: "A_KEY"})


class Note(Record):
    text: str


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((dummy, False) for dummy in ("", "none", "test", "EMPTY", "local", "inspect", "dummy")),
        *((word, False) for word in ("password", "Barcelona", "not-needed", "customer_id")),
        *((number, False) for number in ("12345678", "100000000", "0" * 40, "aaaaaaaaaaaaaaaa1")),
        *((key, True) for key in (KEY, "hf_token_4", "Passw0rd", "AKIAIOSFODNN7EXAMPLE")),
        ("correct horse battery staple", True),
    ],
)
def test_a_secret_can_be_told_from_ordinary_words(value: str, expected: bool) -> None:
    assert is_secret(value) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *((name, True) for name in ("OPENAI_API_KEY", "HF_TOKEN", "PGPASSWORD", "CLIENTSECRET")),
        *((name, True) for name in ("aws_secret_access_key", "MYAPIKEY", "KEY", "DB_PASSWORD_2")),
        *((name, False) for name in ("KEYBOARD", "MONKEY", "TOKENIZERS_PARALLELISM", "HOME")),
    ],
)
def test_variables_are_known_by_their_names(name: str, expected: bool) -> None:
    assert (read_secrets(Settings(), {name: KEY}) == {KEY: name}) is expected


def test_the_path_of_a_key_is_no_key(tmp_path: Path) -> None:
    file = tmp_path / "key-1.pem"
    file.write_text("")
    assert read_secrets(Settings(), {"SIGNING_KEY": str(file)}) == {}
    assert read_secrets(Settings(), {"SIGNING_KEY": "/" + "a1B2" * 200}) != {}


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("http://me:s3cret-password@h/x", {"s3cret-password"}),
        ("http://s3cret-token-1@h/x", {"s3cret-token-1"}),
        ("http://me:p%40ss-w0rd@h", {"p%40ss-w0rd", "p@ss-w0rd"}),
        ("http://h/x?n=2&api_key=abc-123-def&sig=Zx9Zx8Zx7", {"abc-123-def", "Zx9Zx8Zx7"}),
        ("http://me:weak@h/x", {"me:weak@h/x"}),
        ("http://h/x?key=weak&n=2", {"h/x?key=weak&n=2"}),
        *((plain, set[str]()) for plain in ("http://h/x?n=2", "http://[::1", "http://h:8000")),
    ],
)
def test_secrets_of_addresses(address: str, expected: set[str]) -> None:
    assert find_address_secrets(address, "A") == dict.fromkeys(expected, "A")


def test_a_command_is_shown_without_its_secrets_however_plain() -> None:
    command = (
        "env TOKEN=abc agent --api-key hunter2 --password=pw -m keys --max-token 100 "
        "--token-limit x --url https://u:p@h/x?key=zz -H 'Authorization: Bearer abcdef-123456' "
        "ghp_abcdefghijklmnop1 {task_file} --key-file {workspace} hunter2s"
    )
    assert mask_text(command, "harness").replace("[redacted:harness]", "#") == (
        "env TOKEN=# agent --api-key # --password=# -m keys --max-token 100 "
        "--token-limit x --url https://# -H 'Authorization: Bearer #' "
        "# {task_file} --key-file {workspace} hunter2s"
    )
    assert set(find_text_secrets(command, "harness")) == {
        *("u:p@h/x?key=zz", "abcdef-123456", "ghp_abcdefghijklmnop1"),
    }


@given(st.binary(max_size=12), st.binary(max_size=12))
def test_base64_and_hex_of_a_secret_go_wherever_it_stands(before: bytes, after: bytes) -> None:
    data = before + KEY.encode() + after
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        clean = REDACTOR.text(encode(data).decode())
        decoded = base64.urlsafe_b64decode(clean.replace("+", "-").replace("/", "_"))
        assert KEY.encode()[1:-1] not in decoded
        assert len(decoded) == len(data)
        assert decoded.startswith(before[:-1]) and decoded.endswith(after[1:])
    assert KEY.encode().hex() not in REDACTOR.text(data.hex())


@given(st.text(min_size=8, max_size=20), st.text(max_size=10))
def test_json_stays_json_and_has_no_secret(secret: str, beside: str) -> None:
    redactor = Redactor({secret: "A_KEY"})
    for ascii_only in (True, False):
        text = json.dumps({"a": [f"{beside}{secret}"]}, ensure_ascii=ascii_only)
        try:
            data = text.encode()
        except UnicodeEncodeError:
            continue
        clean = json.loads(redactor.json(data))
        assert secret not in clean["a"][0].replace("[redacted:A_KEY]", "")


@pytest.mark.parametrize(
    ("secret", "text"),
    [
        ("nvapi-7f3a9x", "line\nvapi-7f3a9x"),
        ("12ab-7f3a9x", "\u00e912ab-7f3a9x"),
        ("00e9-7f3a9x", "\u00e9-7f3a9x"),
        ("sk-live-7f3a9\\", 'sk-live-7f3a9\\" and "more'),
        ('"sk-live-7f3a9', '"sk-live-7f3a9'),
        ("sk-</live>-7f3a9é", "sk-</live>-7f3a9é \ud800"),
    ],
)
def test_json_with_a_secret_across_an_escape_stays_json(secret: str, text: str) -> None:
    redactor = Redactor({secret: 'A "KEY\\'})
    whole = json.dumps({text: text, "n": [1.50, 2]})
    expected = text.replace(secret, "[redacted:A__KEY_]")
    for form in (whole, whole.replace("/", "\\/").replace("<", "\\u003C").replace("00e9", "00E9")):
        clean = redactor.json(form.encode())
        assert json.loads(clean) == {expected: expected, "n": [1.5, 2]}
        assert clean.endswith(b'"n": [1.5, 2]}')


def test_a_number_in_json_stays_a_number_and_what_is_no_json_loses_secrets() -> None:
    redactor = Redactor({"1234567890123456": "CARD_KEY"})
    lines = b'{"n": 1234567890123456, "t": 12345678.5}\n{"n": "1234567890123456"}\n'
    assert redactor.json(lines) == (b'{"n": 0, "t": 12345678.5}\n{"n": "[redacted:CARD_KEY]"}\n')
    assert redactor.json(b'"\\x 1234567890123456"') == b'"\\x ' + b"*" * 16 + b'"'
    assert redactor.json(b"\xff1234567890123456") == b"\xff" + b"*" * 16


def test_a_record_with_a_secret_across_an_escape_can_be_read(tmp_path: Path) -> None:
    protect({"nvapi-7f3a9x": "A_KEY"})
    write_record(tmp_path / "run.json", Note(text="line\nvapi-7f3a9x"))
    assert Note.model_validate_json((tmp_path / "run.json").read_bytes()).text.startswith("line\n")


@pytest.mark.parametrize(
    "form",
    [
        *("sk/live+&lt;7f3a&gt;&amp;\"é'=", "sk/live+&lt;7f3a&gt;&amp;&#34;é&#39;="),
        *("sk/live+&lt;7f3a&gt;&amp;&quot;é&#x27;=", "sk/live+&lt;7f3a&gt;&amp;&quot;é&apos;="),
        *("sk/live%2B%3C7f3a%3E%26%22%C3%A9%27%3D", "sk%2flive%2b%3c7f3a%3e%26%22%c3%a9%27%3d"),
        *("sk\\/live+<7f3a>&\\\"\\u00e9'=", "sk/live+\\u003c7f3a\\u003e\\u0026\\\"é'="),
        *("sk/live+<7f3a>&\\\"\\u00E9'=", "sk/live+<7f3a>&\\\\\\\"é'="),
    ],
)
def test_a_secret_is_found_as_other_programs_write_it(form: str) -> None:
    redactor = Redactor({"sk/live+<7f3a>&\"é'=": "A_KEY"})
    assert redactor.text(f"a {form} b") == "a [redacted:A_KEY] b"
    assert redactor.data(form.encode()) == b"*" * len(form.encode())


def test_a_secret_that_is_no_utf_8() -> None:
    raw = b"sk-live-\xff\xe97f3a"
    redactor = Redactor({os.fsdecode(raw): "A_KEY"})
    assert redactor.data(b"a " + raw) == b"a " + b"*" * len(raw)
    assert redactor.data(base64.b64encode(raw)) != base64.b64encode(raw)
    for text in (os.fsdecode(raw), raw.decode(errors="replace"), "sk-live-%FF%E97f3a"):
        assert redactor.text(text) == "[redacted:A_KEY]"
        assert redactor.json(json.dumps([text]).encode()) == b'["[redacted:A_KEY]"]'


def test_text_beside_a_secret_stays() -> None:
    assert REDACTOR.text(f"a {KEY} b") == "a [redacted:A_KEY] b"
    assert REDACTOR.text("sk-live-7f3a and none and test") == "sk-live-7f3a and none and test"
    assert REDACTOR.data(b"\x89PNG" + KEY.encode()) == b"\x89PNG" + b"*" * len(KEY)
    assert REDACTOR.data(f"ä{KEY}".encode("utf-16")) == f"ä{'*' * len(KEY)}".encode("utf-16")


def packed(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return stream.getvalue()


def test_archives_are_packed_anew_only_where_they_hold_a_secret() -> None:
    plain = packed(("a.txt", b"nothing here"))
    assert REDACTOR.data(plain) is plain
    inner = packed(("deep.txt", KEY.encode() * 30))
    outer = packed(("inner.docx", inner), ("x.gz", gzip.compress(KEY.encode())), ("a.txt", b"kept"))
    with zipfile.ZipFile(io.BytesIO(REDACTOR.data(outer))) as archive:
        assert archive.testzip() is None
        assert archive.read("a.txt") == b"kept"
        assert gzip.decompress(archive.read("x.gz")) == b"*" * len(KEY)
        with zipfile.ZipFile(io.BytesIO(archive.read("inner.docx"))) as deep:
            assert deep.read("deep.txt") == b"*" * len(KEY) * 30
    broken = b"PK\x03\x04" + KEY.encode()
    assert REDACTOR.data(broken) == b"PK\x03\x04" + b"*" * len(KEY)
    assert REDACTOR.data(b"\x1f\x8b" + KEY.encode()) == b"\x1f\x8b" + b"*" * len(KEY)


def test_all_archives_of_a_file_share_one_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "LARGEST", 100_000)
    monkeypatch.setattr(redaction, "MOST_MEMBERS", 20)
    key = packed(("a.txt", KEY.encode() * 2))

    def is_kept(*members: tuple[str, bytes]) -> bool:
        whole = packed(*members)
        return REDACTOR.data(whole) == whole

    large = packed(("zeros", bytes(30_000)))
    assert not is_kept(("key", key), *((f"{n}", large) for n in range(3)))
    assert is_kept(("key", key), *((f"{n}", large) for n in range(4)))
    assert is_kept(("key", key), *((f"{n}.gz", gzip.compress(bytes(30_000))) for n in range(4)))
    many = packed(*((f"{n}", b"") for n in range(7)))
    assert not is_kept(("key", key), ("0", many), ("1", many))
    assert is_kept(("key", key), ("0", many), ("1", many), ("2", many))
    monkeypatch.setattr(redaction, "LONGEST", -1.0)
    assert is_kept(("key", key))


def test_an_archive_that_stays_packed_loses_what_can_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redaction, "LARGEST", 10)
    whole = packed(("zeros", bytes(11))) + KEY.encode()
    assert REDACTOR.data(whole) == whole.replace(KEY.encode(), b"*" * len(KEY))


def test_nested_archives_cost_no_more_than_their_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction, "LARGEST", 16 * 2**20)
    bomb = bytes(2**20)
    for _ in range(3):
        bomb = packed(*((f"{n}", bomb) for n in range(12)))
    begin = time.thread_time()
    assert REDACTOR.data(bomb) == bomb
    assert time.thread_time() - begin < 2  # it holds 1.7 GB


def test_zeros_are_searched_fast() -> None:
    redactor = Redactor({f"sk-live-7f3a9x{n}": "A" for n in range(12)})
    begin = time.thread_time()
    redactor.data(bytes(8 * 2**20))
    assert time.thread_time() - begin < 0.5


def test_an_archive_behind_other_bytes_is_packed_anew_behind_them() -> None:
    clean = REDACTOR.data(b"#!/usr/bin/python\n" + packed(("__main__.py", KEY.encode() * 9)))
    assert clean.startswith(b"#!/usr/bin/python\nPK")
    with zipfile.ZipFile(io.BytesIO(clean)) as archive:
        assert archive.read("__main__.py") == b"*" * len(KEY) * 9


def test_a_damaged_member_hides_no_secret_of_others() -> None:
    whole = packed(("bad", b"bad"), ("good", KEY.encode() * 9))
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        crc = archive.getinfo("bad").CRC.to_bytes(4, "little")
    with zipfile.ZipFile(io.BytesIO(REDACTOR.data(whole.replace(crc, b"0000")))) as archive:
        assert archive.namelist() == ["good"]
        assert archive.read("good") == b"*" * len(KEY) * 9


def test_members_named_by_secrets_keep_apart() -> None:
    other = "sk-live-7f3a9x"
    redactor = Redactor({other: "A"})
    names = (f"{other}.txt", "REDACTED.txt", f"{other.encode().hex()}.txt")
    with zipfile.ZipFile(io.BytesIO(redactor.data(packed(*((n, b"") for n in names))))) as archive:
        assert archive.namelist() == ["REDACTED.txt", "REDACTED-2.txt", "REDACTED-3.txt"]


def test_a_secret_is_named_where_it_is_found() -> None:
    redactor = Redactor({KEY: "A_KEY", "other-secret-2": "B_KEY"})
    assert redactor.finds(packed(("x", b"other-secret-2"))) == "B_KEY"
    assert redactor.finds(b"nothing") is None


def test_a_folder_loses_secrets_in_contents_names_and_links(tmp_path: Path) -> None:
    key = "sk-live-7f3a9x"
    (tmp_path / f"of-{key}").mkdir()
    file = tmp_path / f"of-{key}" / f"{key}.txt"
    file.write_text(f"a {key}")
    file.chmod(0o600)
    (tmp_path / "link").symlink_to(f"/nowhere/{key}")
    (tmp_path / "kept").symlink_to("/nowhere")
    redact_tree(tmp_path, Redactor({key: "A"}))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "of-REDACTED"]
    clean = tmp_path / "of-REDACTED" / "REDACTED.txt"
    assert clean.read_text() == "a " + "*" * len(key)
    assert clean.stat().st_mode & 0o777 == 0o600


def test_renaming_replaces_nothing_and_leaves_no_secret(tmp_path: Path) -> None:
    key = "Sk7f3a9x"
    (tmp_path / "REDACTED").mkdir()
    (tmp_path / "REDACTED" / "kept").write_text("kept")
    (tmp_path / "REDACTED.txt").write_text("kept")
    (tmp_path / key).mkdir()
    (tmp_path / key / "inner").write_text("inner")
    (tmp_path / f"{key}.txt").write_text("named")
    (tmp_path / f"REDACTED{'x' * 247}").write_text("kept")
    (tmp_path / f"{key}{'x' * 247}").write_text("long")
    redact_tree(tmp_path, Redactor({key: "A"}))
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sorted(path.read_text() for path in files) == ["inner", *["kept"] * 3, "long", "named"]
    assert not [path for path in files if key in str(path)]


def test_what_a_process_knows_only_grows() -> None:
    assert not current_redactor()
    protect({KEY: "A_KEY"})
    protect({"other-secret-2": "B_KEY"})
    protect({})
    assert current_redactor().text(f"{KEY} other-secret-2") == "[redacted:A_KEY] [redacted:B_KEY]"
