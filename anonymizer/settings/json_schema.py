"""JSON Schema of the settings file, with the text below each key as its description."""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from anonymizer.settings.base import Group
from anonymizer.settings.model import Settings
from anonymizer.settings.tiers import tier_of

_NULL = {"type": "null"}


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of the settings file, for editors.

    Notes
    -----
    The texts below the keys are added, because pydantic leaves them out. Null is removed, because
    TOML has none: a file leaves the key out instead. `x-tier` is the tier of a key, `essential` or
    `experimental`; those without are for experts.
    """
    schema = Settings.model_json_schema()
    groups = {model.__name__: model for model in _groups(Settings)}
    for name, definition in [(Settings.__name__, schema), *schema["$defs"].items()]:
        definition["description"] = " ".join((groups[name].__doc__ or "").split())
        texts = {key: each.description for key, each in groups[name].model_fields.items()}
        for key, text in (texts | dict(comments_of(groups[name]))).items():
            if text is None or key not in definition["properties"]:
                continue  # a constant
            # A file cannot state None; it leaves the key out.
            definition["properties"][key]["description"] = text.replace("None:", "Not set:")
    plain: dict[str, Any] = _plain(schema)
    for name, (table, _) in tables(plain).items():
        _mark(plain, name, table)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema"} | plain


def _mark(schema: Mapping[str, Any], name: str, table: Mapping[str, Any]) -> None:
    """State the tier of each key of a table that is not for experts, as `x-tier`."""
    inner = tables(schema, table)
    for key, part in table["properties"].items():
        tier = tier_of(f"{name}.{key}")
        if key in inner:
            _mark(schema, f"{name}.{key}", inner[key].table)
        elif tier != "expert":
            part["x-tier"] = tier


class SchemaTable(NamedTuple):
    """Schema of a table, and whether there may be several of its name, `[[name]]`."""

    table: dict[str, Any]
    several: bool


def tables(
    schema: Mapping[str, Any], part: Mapping[str, Any] | None = None
) -> dict[str, SchemaTable]:
    """Return the tables in a table of the schema (None: in the whole file), by key."""
    found = {}
    for key, entry in (schema if part is None else part)["properties"].items():
        several = entry.get("type") == "array"
        reference = (entry.get("items", {}) if several else entry).get("$ref")
        if reference is not None:
            found[key] = SchemaTable(schema["$defs"][reference.rpartition("/")[2]], several)
    return found


@cache
def comments_of(kind: type) -> Mapping[str, str]:
    """Return the text below each attribute of a class in its source code, as one line."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(kind)))).body
    found = {}
    for named, text in pairwise(tree.body if isinstance(tree, ast.ClassDef) else ()):
        match named, text:
            case (
                ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]),
                ast.Expr(value=ast.Constant(value=str(comment))),
            ):
                found[name] = " ".join(comment.split())
    return found


def _groups(model: type[Group]) -> list[type[Group]]:
    """Return a table and all tables in it."""
    inner = [
        group for field in model.model_fields.values() for group in groups_in(field.annotation)
    ]
    return [model, *(deeper for group in inner for deeper in _groups(group))]


def groups_in(annotation: Any) -> list[type[Group]]:  # noqa: ANN401  any type there is
    """Return the tables that a type is made of."""
    if inspect.isclass(annotation) and issubclass(annotation, Group):
        return [annotation]
    parts = getattr(annotation, "__args__", ())
    return [group for part in parts for group in groups_in(part)]


def _plain(part: Any) -> Any:  # noqa: ANN401  any JSON
    """Return a schema without nulls, defaults of whole tables and generated titles."""
    if isinstance(part, list):
        return [_plain(each) for each in part]
    if not isinstance(part, dict):
        return part
    kept = {
        key: value if key == "default" else _plain(value)
        for key, value in part.items()
        if not (key == "title" and isinstance(value, str))
        and not (key == "default" and (value is None or "$ref" in part))
    }
    kinds = [kind for kind in kept.get("anyOf", ()) if kind != _NULL]
    if "anyOf" in kept and len(kinds) == 1:
        del kept["anyOf"]
        return kinds[0] | kept
    if "anyOf" in kept:
        kept["anyOf"] = kinds
    return kept
