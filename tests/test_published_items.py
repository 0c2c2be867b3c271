"""The list of what published systems state: every item names a test that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
ITEM = re.compile(r"^\| (\d+) \| (.+) \| `([\w/]+\.py)?(?:::(\w+))?` \|$", re.MULTILINE)
"""Number, words, file and test of an item; without a file it is that of the item before."""


def test_every_item_of_the_published_systems_names_a_test() -> None:
    text = (ROOT / "notes" / "published.md").read_text()
    items, file = [], ""
    for number, what, stated, name in ITEM.findall(text):
        file = stated or file
        items.append((number, what, file, name))
    assert [int(number) for number, *_ in items] == list(range(1, len(items) + 1))
    assert f"{len(items)} items" in text
    assert len({(file, name) for *_, file, name in items}) == len(items)
    for _, what, file, name in items:
        body = (ROOT / "tests" / file).read_text()
        written = re.search(rf"((?:@.*\n|    .*\n|\)\n)*)(?:async )?def {name or 'test_'}", body)
        assert written, f"{file}::{name}"
        if name:
            assert ("mark.data" in written[1]) == ("(data)" in what), name
