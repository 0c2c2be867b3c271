import pytest

from tools.dependencies import allowed, faults, pins

HASH = f"    --hash=sha256:{'0' * 64}"


def test_this_project_is_made_of_what_is_pinned_and_may_be_used() -> None:
    assert list(faults()) == []


def test_pins_are_read_with_their_markers() -> None:
    text = f"a[b]==1.0 \\\n{HASH} \\\n{HASH}\nc-d==2 ; python_version < '4' \\\n{HASH}\n"
    assert list(pins(text)) == [("a", "1.0"), ("c-d", "2")]


@pytest.mark.parametrize(
    "text",
    ["a==1.0\n", f"a>=1.0 \\\n{HASH}\n", f"a==1.0 \\\nb==2 \\\n{HASH}\n", "a==1.0 \\\n",
     "-r other.txt\n", f"a @ https://host/a.whl \\\n{HASH}\n", "a==1 \\\n    --hash=md5:00\n"],
)  # fmt: skip
def test_what_is_not_pinned_and_hashed_is_found(text: str) -> None:
    with pytest.raises(ValueError, match="hash"):
        list(pins(text))


@pytest.mark.parametrize(
    ("licence", "may"),
    [
        ("MIT", True),
        ("Apache-2.0 WITH LLVM-exception", True),
        ("BSD-3-Clause AND (0BSD OR Zlib)", True),
        ("EPL-2.0 OR GPL-2.0-or-later", True),
        ("Mozilla Public License 2.0 (MPL 2.0)", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-2.0-or-later", False),
        ("GNU Affero General Public License v3", False),
        ("", False),
    ],
)
def test_a_licence_is_accepted_when_all_of_it_is(licence: str, *, may: bool) -> None:
    assert allowed(licence) is may
