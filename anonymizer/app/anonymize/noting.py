"""What a report says of how a release was made, and what its reader should know."""

from anonymizer import __version__
from anonymizer.app.anonymize.plan import Plan
from anonymizer.app.anonymize.release_report import Settings
from anonymizer.files.coded_table import CodedTable, Declared
from anonymizer.files.tables import Table


def settings_of(table: Table, declared: Declared, plan: Plan) -> Settings:
    """Return how a release was made."""
    return Settings(
        version=__version__,
        table=table.path.name,
        model=plan.model,
        method=plan.method,
        cost=plan.cost,
        dm_weight=plan.dm_weight,
        time_budget_s=plan.time_budget_s,
        seed=plan.seed,
        target=plan.target,
        missing_is_a_value=declared.markers_are_values,
        id=declared.id,
        kept=tuple(declared.keep),
        labels=dict(plan.labels),
        measures=tuple(plan.measures),
        bands={name: tuple(edges) for name, edges in plan.bands.items()},
    )


def warnings_of(
    coded: CodedTable, declared: Declared, plan: Plan, *, in_time: bool, n_withheld: int
) -> tuple[str, ...]:
    """Return what the reader of the figures should know."""
    names = [qi.name for qi in coded.schema.qis if coded.origin[qi.name] == "data"]
    from_data = ", ".join(names)
    open_ = ", ".join(declared.keep)
    told = {
        "no identifier is declared: k counts rows, and a person with several rows is counted "
        "several times": declared.id is None,
        f"the domain is taken from the data and not declared: {from_data}": bool(from_data),
        "a missing value counts as a value, as in the paper": declared.markers_are_values,
        f"model {plan.model} promises nothing about the sensitive attributes": bool(
            coded.schema.sensitive
        )
        and plan.promise.l < 2,
        f"published as it is, outside of every promise: {open_}": bool(open_),
        "losses and leaks are those of the ranges and sets beneath the labels, which tell no "
        "more": any(form != "plain" for form in plan.labels.values()),
        f"means that are left out, as fewer than k persons have a value: {n_withheld}": bool(
            n_withheld
        ),
        "the time budget ended the search: another run may end elsewhere": not in_time,
    }
    return tuple(warning for warning, holds in told.items() if holds)
