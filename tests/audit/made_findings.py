"""Findings that an audit of a table could have."""

from collections.abc import Mapping

from hypothesis import strategies as st

from anonymizer.audit.attack import Subject
from anonymizer.audit.findings import Figure, Finding
from anonymizer.audit.registry import attacks_on

QUESTIONS = [q for attack in attacks_on(Subject.TABLE) for q in attack.questions]


def finding(attack: str, figures: Mapping[str, Figure], **other: object) -> Finding:
    return Finding.model_validate({"attack": attack, "figures": dict(figures), **other})


@st.composite
def findings(draw: st.DrawFn) -> Finding:
    question = draw(st.sampled_from(QUESTIONS))
    names = [*question.success, *question.control] or ["values_min", "n_classes_broken"]
    figures = draw(st.fixed_dictionaries({name: st.integers(0, 9) | st.none() for name in names}))
    return finding(
        question.name + draw(st.sampled_from(["", " (values)", " (labels)"])),
        figures,
        attribute=draw(st.none() | st.sampled_from(["age", "zip"]) | st.text(max_size=200)),
        bar=draw(st.none() | st.text(max_size=200)),
        holds=draw(st.none() | st.booleans()),
        required=draw(st.booleans()),
    )
