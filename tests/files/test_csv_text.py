"""Text of csv files in encodings, below comments, and with separators that are read or named."""

import bz2
import gzip
import lzma
import re
import time
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import pytest

from anonymizer.errors import InputError
from anonymizer.files.csv_text import UTF_8, csv_text
from anonymizer.files.tables import read_table
from anonymizer.files.traces import read_trace
from anonymizer.networks import load_network

TEXTS = {
    "Chinese": ("\u59d3\u540d,\u57ce\u5e02,age", "\u738b\u4f1f,\u5317\u4eac"),
    "Japanese": (
        "\u540d\u524d,\u5e02,age",
        "\u5c71\u7530\u3055\u3093,\u6771\u4eac\u30bf\u30ef\u30fc",
    ),
    "Korean": ("\uc774\ub984,\ub3c4\uc2dc,age", "\uae40\ucca0\uc218,\uc11c\uc6b8"),
    "Russian": (
        "\u0438\u043c\u044f,\u0433\u043e\u0440\u043e\u0434,age",
        "\u0418\u0432\u0430\u043d,\u041c\u043e\u0441\u043a\u0432\u0430",
    ),
    "Greek": (
        "\u03cc\u03bd\u03bf\u03bc\u03b1,\u03c0\u03cc\u03bb\u03b7,age",
        "\u039d\u03af\u03ba\u03bf\u03c2,\u0391\u03b8\u03ae\u03bd\u03b1",
    ),
    "German": ("Name,Stra\u00dfe,age", "M\u00fcller,K\u00f6ln"),
}


def _written(language: str, codec: str) -> bytes:
    header, row = TEXTS[language]
    return "\n".join([header, *(f"{row},{i}" for i in range(40)), ""]).encode(codec)


@pytest.mark.parametrize(
    ("language", "codec"),
    [(language, codec) for language in TEXTS
     for codec in ("utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32")]
    + [("Chinese", "gbk"), ("Chinese", "gb18030"), ("German", "cp1252")],
)  # fmt: skip
def test_encodings_that_can_be_told_are_read(tmp_path: Path, language: str, codec: str) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(_written(language, codec))
    found = read_table(path).frame
    header, row = TEXTS[language]
    assert found.columns == header.split(",")
    assert found.row(0) == (*row.split(","), "0")


@pytest.mark.parametrize(
    ("language", "codec", "name"),
    [
        ("Japanese", "cp932", "Shift-JIS"),
        ("Japanese", "euc_jp", "EUC-JP"),
        ("Japanese", "iso2022_jp", "ISO-2022-JP"),
        ("Korean", "euc_kr", "EUC-KR"),
        ("Russian", "cp1251", "the code page 1251"),
        ("Russian", "koi8_r", "KOI8-R"),
        ("Russian", "cp866", "the code page 866"),
        ("Greek", "cp1253", "the code page 1253"),
    ],
)
def test_other_encodings_are_refused_by_name(
    tmp_path: Path, language: str, codec: str, name: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(_written(language, codec))
    with pytest.raises(InputError, match=f"is not UTF-8 text: .*it may be in .*{name}"):
        read_table(path, ["age"])


@pytest.mark.parametrize(
    ("words", "codec"),
    [
        ("Gda\u0144sk b\u00f3l Krak\u00f3w g\u0142owa", "cp1250"),
        ("Gda\u0144sk b\u00f3l Krak\u00f3w g\u0142owa", "iso8859-2"),
        ("Besan\u00e7on Gen\u00e8ve fi\u00e8vre r\u00e9tr\u00e9cie", "cp850"),
    ],
)
def test_latin_letters_of_other_code_pages_are_not_taken_for_western_or_russian_ones(
    tmp_path: Path, words: str, codec: str
) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"age,word\n" + b"".join(f"1,{w}\n".encode(codec) for w in words.split()))
    with pytest.raises(InputError, match="it may be in the code page 1250, 1254, 1257 or 850"):
        read_table(path, ["age"])


CITIES = {
    "Japanese": "\u6771\u4eac\u90fd \u5927\u962a\u5e9c \u4eac\u90fd\u5e02",
    "Chinese": "\u5317\u4eac \u4e0a\u6d77 \u5e7f\u5dde \u6b66\u6c49 \u897f\u5b89",
    "Korean": "\uc11c\uc6b8 \ubd80\uc0b0 \ub300\uad6c",
    "Russian": "\u041c\u043e\u0441\u043a\u0432\u0430 \u0422\u0432\u0435\u0440\u044c",
    "Hebrew": "\u05d7\u05d9\u05e4\u05d4 \u05ea\u05dc",
    "Thai": "\u0e01\u0e23\u0e38\u0e07\u0e40\u0e17\u0e1e",
    "Turkish": "\u0130stanbul I\u011fd\u0131r Mu\u015f",
    "Lithuanian": "\u0160iauliai Panev\u0117\u017eys",
    "German": "K\u00f6ln M\u00fcnchen D\u00fcsseldorf",
    "one German": "Berlin Hamburg Bremen K\u00f6ln",
    "French": "Orl\u00e9ans Besan\u00e7on N\u00eemes \u0153uvre",
    "Icelandic": "Akureyri Selfoss Reykjav\u00edk S\u00fa\u00f0av\u00edk \u00de\u00f3rsh\u00f6fn",
    "Finnish": "Helsinki Tampere Oulu J\u00e4rvenp\u00e4\u00e4 \u0160akki Hyvink\u00e4\u00e4",
}


def _of_cities(language: str, codec: str) -> bytes:
    words = CITIES[language].split()
    lines = [f"{i},{words[i % len(words)]}" for i in range(60)]
    return "\n".join(["age,city", *lines, ""]).encode(codec)


@pytest.mark.parametrize(
    ("language", "codec", "name"),
    [
        ("Japanese", "euc_jp", "EUC-JP"),
        ("Japanese", "cp932", "Shift-JIS"),
        ("Japanese", "iso2022_jp", "ISO-2022-JP"),
        ("Korean", "euc_kr", "EUC-KR"),
        ("Russian", "iso8859_5", "ISO 8859-5"),
        ("Hebrew", "cp1255", "1255"),
        ("Thai", "tis_620", "TIS-620"),
        ("Turkish", "cp1254", "1254"),
        ("Lithuanian", "cp1257", "1257"),
        ("German", "mac_roman", "Mac Roman"),
        ("one German", "mac_roman", "Mac Roman"),
        ("one German", "cp850", "850"),
    ],
)
def test_cells_below_a_header_of_ascii_are_never_read_as_other_letters(
    language: str, codec: str, name: str
) -> None:
    with pytest.raises(ValueError, match=f"it may be in .*{name}"):
        csv_text(lambda: BytesIO(_of_cities(language, codec)))


@pytest.mark.parametrize(
    ("language", "codec"),
    [
        ("Chinese", "gb18030"),
        ("German", "cp1252"),
        ("one German", "cp1252"),
        ("French", "cp1252"),
        ("Icelandic", "cp1252"),
        ("Finnish", "cp1252"),
        ("German", "utf-32-le"),
    ],
)
def test_an_encoding_that_is_guessed_is_named_without_letters_of_few_words(
    language: str, codec: str
) -> None:
    found = csv_text(lambda: BytesIO(_of_cities(language, codec)))
    assert found.data == _of_cities(language, "utf-8")
    assert found.encoding
    assert "with the letters" not in found.encoding


@pytest.mark.parametrize("least", [9, 10])
def test_letters_of_a_guess_are_in_many_different_words_and_tell_no_order(least: int) -> None:
    """A name that is repeated is one word, whatever number stands beside it."""
    words = [f"Gr\u00fcnhof{chr(97 + i)}sch\u00e4r" for i in range(least)]
    rows = [
        *words,
        *("J\u00f6rgenstra\u00dfen" for _ in range(200)),
        *(f"\u00d6lwechsel{i}" for i in range(50)),
    ]
    text = "\n".join(["age,city", *(f"{i},{word}" for i, word in enumerate(rows)), ""])
    found = csv_text(lambda: BytesIO(text.encode("cp1252"))).encoding
    letters = " (with the letters \u00e4 \u00fc)" * (least == 10)
    assert found == f"the code page 1252{letters}"


ROWS = [("age", "sex"), *((str(20 + i), "mf"[i % 2]) for i in range(6))]
PLAIN = "".join(f"{one},{other}\n" for one, other in ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\n" + PLAIN.replace(",", ";"),
        "\n# made\nsep=|\n" + PLAIN.replace(",", "|"),
        "# made on monday\n# by us, and you, too\n" + PLAIN,
        "\n\n" + PLAIN,
        "\ufeff#TYPE System.Object\r\n" + PLAIN,
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", "|"),
    ],
)
@pytest.mark.parametrize("wanted", [None, ["age", "sex"]])
def test_what_stands_before_the_header_is_left_out(
    tmp_path: Path, text: str, wanted: list[str] | None
) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    found = read_table(path, wanted).frame
    assert [tuple(found.columns), *found.rows()] == ROWS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("#" + PLAIN, "begins with #: take the sign away if this line names the columns"),
        (PLAIN + "# end\n", "row 7: has 1 cells, and the header 2, and begins with #"),
        (PLAIN.replace(",", ":"), "cells seem to be separated by :"),
        (PLAIN.replace(",", "  "), "cells seem to be separated by blanks"),
        (PLAIN.replace(",", "\x01"), "cells seem to be separated by control signs"),
        (PLAIN.replace(",", "\uff0c"), "cells seem to be separated by full-width commas"),
    ],
)
def test_what_cannot_be_told_is_named(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        read_table(path, ["age"])


def test_a_value_may_begin_with_the_sign_of_comments(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("flat,n\n#1,2\n#2,3\n")
    assert read_table(path).frame["flat"].to_list() == ["#1", "#2"]


@pytest.mark.parametrize("raw", [bytes(1 << 24), b"a\xff\xfe\0" * (1 << 22)])
def test_an_encoding_is_judged_at_once_however_much_there_is(raw: bytes) -> None:
    began = time.process_time()
    with suppress(ValueError):
        csv_text(lambda: BytesIO(raw))
    assert time.process_time() - began < 5.0, "every sign was looked at in ten encodings"


@pytest.mark.parametrize(
    ("pack", "said"),
    [
        (gzip.compress, "is packed with gzip: let its name end in .gz"),
        (bz2.compress, "is packed with bzip2: let its name end in .bz2"),
        (lzma.compress, "is packed with xz: unpack it"),
        (lambda raw: b"PAR1" + raw, "is a parquet file: let its name end in .parquet"),
        (lambda raw: b"PK\3\4" + raw, "is a zip archive: unpack it"),
        (lambda raw: b"\x28\xb5\x2f\xfd" + raw, "is packed with zstandard: unpack it"),
    ],
)
def test_what_is_packed_under_another_name_is_told(
    tmp_path: Path, pack: Callable[[bytes], bytes], said: str
) -> None:
    for name, read in (("a.csv", read_table), ("a.csv", read_trace), ("a.osm", load_network)):
        path = tmp_path / name
        path.write_bytes(pack(b"age,zip\n1,2\n" * 99))
        with pytest.raises(InputError, match=re.escape(said)):
            read(str(path))
    plain = tmp_path / "b.csv"
    plain.write_text("BZh1,PK\n1,2\n")
    assert len(read_table(plain)) == 1


def test_a_line_without_an_end_is_refused_and_lines_with_one_are_not() -> None:
    head, size = b"id,age\n", 2**25
    assert csv_text(lambda: BytesIO(head + b"a,1\n" * (size // 4))) == UTF_8
    with pytest.raises(ValueError, match="has a line of more than 16 MiB"):
        csv_text(lambda: BytesIO(head + b"a" * size))
