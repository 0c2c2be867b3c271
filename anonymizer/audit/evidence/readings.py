"""What each attack of an audit asks, and which of its figures answer."""

from enum import StrEnum
from functools import partial
from typing import NamedTuple


class Criterion(StrEnum):
    """The questions of Opinion 05/2014 of the Article 29 Working Party, and whether data are true.

    Singling out: can somebody be told apart from all others? Linkability: can two records be told
    to be of one person? Inference: can something be learned of a person who is not told apart?
    """

    SINGLING_OUT = "singling out"
    LINKABILITY = "linkability"
    INFERENCE = "inference"
    TRUTH = "truth"


class AttackReading(NamedTuple):
    """How the figures of one attack are read.

    Attributes
    ----------
    criterion
        The question to which it belongs.
    asks
        What the adversary tries, as a question.
    success
        Figures that are shares or probabilities of success; the largest counts.
    control
        Figures of the same attack where it can find nothing but chance; the largest counts.
    n
        Figure with the number of trials.
    exposed
        Figure of the most exposed: the success with the worst tenth, or the least in multiples of
        k.
    exposed_control
        Figure that `exposed` is compared with, if it is a success.
    chance
        Success by chance, where it needs no figure.
    against
        What the control is, in words.
    """

    criterion: Criterion
    asks: str
    success: tuple[str, ...] = ()
    control: tuple[str, ...] = ()
    n: str = ""
    exposed: str = ""
    exposed_control: str = ""
    chance: float | None = None
    against: str = "chance"


_ONE, _LINK, _LEARN, _TRUE = Criterion
NEVER = "none"
"""What the control of something is that must never happen."""
_ONE_IN_K, _BLIND = "a blind guess among those who look alike", "a blind guess"
_ALONE_OR_OTHERS = "one table alone, or with the other table of another person"
_WITHOUT, _OTHERS = "without the release", "the release of another vehicle"

_never = partial(AttackReading, chance=0, against=NEVER)
_believed = partial(
    AttackReading,
    success=("belief",),
    control=("belief_control",),
    n="n_victims",
    exposed="tenth",
    exposed_control="tenth_control",
    against=_OTHERS,
)

READINGS = {
    "soundness": AttackReading(_TRUE, "Is every device within its published area?"),
    "k": _never(
        _ONE,
        "Is an area or group of rows published that holds too few (fewer than k)?",
        ("share_below_k",),
    ),
    "inversion": _never(
        _ONE,
        "Do fewer than k devices get the same area, for somebody who knows how areas are made?",
        ("share_below_k",),
        exposed="sharing_to_k_min",
    ),
    "session": _never(
        _ONE,
        "Do fewer than k made-up names share all their areas?",
        ("share_below_k",),
        exposed="twins_to_k_min",
    ),
    "intersection": _never(
        _ONE,
        "Do the areas of a made-up name, taken together, leave fewer than k devices?",
        ("share_below_k",),
    ),
    "matching": AttackReading(
        _ONE,
        "Does somebody who knows where all devices were find the one behind a made-up name?",
        ("posterior_of_truth_mean",),
        n="n_pseudonyms",
        exposed="effective_to_k_min",
        against=_ONE_IN_K,
    ),
    "re-identification": AttackReading(
        _ONE,
        "Does the best guess find the device behind a made-up name?",
        ("success",),
        ("expected",),
        "n",
        against=_ONE_IN_K,
    ),
    "prosecutor": AttackReading(
        _ONE,
        "Does somebody who knows that a person is in the table, and their quasi-identifiers, find "
        "their row?",
        ("average",),
        ("guess",),
        against="a guess among all of the table",
    ),
    "journalist": AttackReading(
        _ONE,
        "Does somebody who knows the population find the person of a row?",
        ("average",),
        ("guess",),
        against="a guess among the population",
    ),
    "k-map": AttackReading(_ONE, "How many people of the population look like a row, at least?"),
    "presence": AttackReading(
        _LEARN,
        "Does the table tell that somebody is in it?",
        ("average",),
        ("drawn",),
        against="the share of the population that is in it",
    ),
    "values": AttackReading(
        _ONE,
        "Do readings tell a device from its group?",
        ("success",),
        ("expected",),
        "n",
        against=_ONE_IN_K,
    ),
    "aggregate membership": AttackReading(
        _ONE,
        "Do counts tell whether a known device is among those counted? (area under the curve)",
        ("auc",),
        n="n_targets",
        chance=0.5,
        against="tossing a coin",
    ),
    "linking": AttackReading(
        _LINK,
        "Is the next made-up name of a device recognized?",
        ("success",),
        ("expected",),
        "n",
        against=_ONE_IN_K,
    ),
    "habits": AttackReading(
        _LINK,
        "Is a device recognized by where it usually is?",
        ("name",),
        ("chance", "name_control"),
        "n_targets",
        exposed="name_tenth",
        exposed_control="name_control_tenth",
    ),
    "centre": AttackReading(
        _LEARN,
        "Is a device at the centre of its area?",
        ("success",),
        ("one_in_n", "by_traffic"),
        "n_places",
        against=_BLIND,
    ),
    "prefix": AttackReading(
        _LEARN,
        "Is a device where its area seems to have been begun?",
        ("success",),
        ("one_in_n", "by_traffic"),
        "n_places",
        against=_BLIND,
    ),
    "velocity": AttackReading(_LEARN, "How much of an area is out of reach at possible speeds?"),
    "tracking": AttackReading(
        _LEARN,
        "Is a device followed from one known position, five minutes later, within 300 m?",
        ("belief_followed_5min", "belief_hindsight_5min"),
        ("belief_none_5min",),
        "n_tracks",
        "tenth_followed_5min",
        "tenth_none_5min",
        against=_WITHOUT,
    ),
    "timing": AttackReading(
        _LEARN,
        "Do the times of messages tell where a device is?",
        tuple(
            f"place_{name}_5min"
            for name in ("pieces", "pieces_with_phase", "followed", "followed_with_phase")
        ),
        ("place_none_5min", "place_chance_5min"),
        "n_tracks",
        against=_WITHOUT,
    ),
    "subtraction": AttackReading(
        _LEARN,
        "Is the junction known that remains when other areas are taken away?",
        ("success",),
        ("one_in_n",),
        "n_groups",
        against=_BLIND,
    ),
    "density leak": AttackReading(
        _LEARN,
        "Does the size of an area tell how many devices are near?",
        ("accuracy",),
        ("base_rate",),
        "n_records",
        against="the most frequent answer",
    ),
    "zone holes": AttackReading(
        _LEARN, "Are privacy zones found as holes?", ("share_within_1_radius",), n="n_zones"
    ),
    "zone drops": AttackReading(
        _LEARN,
        "Are privacy zones found by comparison with an earlier release?",
        ("share_within_1_radius",),
        n="n_zones",
    ),
    "zone ends": AttackReading(
        _LEARN,
        "Are privacy zones found where devices vanish?",
        ("share_within_1_radius",),
        n="n_zones",
    ),
    "homes": AttackReading(
        _LEARN,
        "Are homes found where devices vanish on several days?",
        ("precision",),
        ("base_rate",),
        "n_guesses",
    ),
    "leaving": AttackReading(
        _LEARN,
        "Is it told when a device leaves its known home? (area under the curve, remotest tenth)",
        ("auc_remote",),
        ("auc_control_remote",),
        "n_departures",
    ),
    "aggregate trajectories": AttackReading(
        _LEARN,
        "Are paths recovered from counts?",
        ("recovered", "recovered_habits"),
        ("recovered_chance", "recovered_still"),
        "n_devices",
    ),
    "windows together": _never(
        _LEARN,
        "Do several periods of time, taken together, tell an attribute of a vehicle?",
        ("share_read",),
        n="n_vehicles",
    ),
    "known company": _never(
        _LEARN,
        "Does somebody who owns some of the vehicles learn an attribute of another?",
        ("share_read",),
        n="n_vehicles",
    ),
    "releases together": AttackReading(
        _LEARN,
        "Do two releases, taken together, tell an attribute of a vehicle?",
        ("share_read",),
        n="n_vehicles",
        against=_OTHERS,
    ),
    "tables together": AttackReading(
        _LEARN,
        "Do two tables, taken together, tell an attribute of a person?",
        ("share_read",),
        ("share_alone", "share_control"),
        n="n_common",
        against=_ALONE_OR_OTHERS,
    ),
    "newcomers": AttackReading(
        _LEARN,
        "Does what a class has gained tell an attribute of who joined it?",
        ("share_read",),
        ("share_alone",),
        n="n_common",
        against="the later table alone",
    ),
    "positions with records": AttackReading(
        _LEARN,
        "Do positions and records, taken together, tell an attribute of a vehicle?",
        ("share_read",),
        n="n_vehicles",
        against=_OTHERS,
    ),
    "positions with counts": AttackReading(
        _LEARN,
        "Do counts of the same devices tell where in its area a device is?",
        ("belief_together",),
        ("belief_alone", "belief_control"),
        n="n_victims",
        exposed="tenth_together",
        exposed_control="tenth_control",
        against="without these counts",
    ),
    "trip owner": AttackReading(
        _ONE,
        "Does somebody who knows all true trips tell who made those of a class?",
        ("success",),
        ("k_inverse",),
        n="n_classes",
        exposed="worst",
        exposed_control="k_inverse",
        against=_ONE_IN_K,
    ),
    "trip destination": _believed(
        _LEARN, "Does somebody who knows where and when a trip began learn where it led?"
    ),
    "trips of two days": _believed(
        _LEARN, "Do the trips of several days, taken together, tell where somebody goes?"
    ),
    "all trips but one": AttackReading(
        _LEARN,
        "Does somebody who knows all trips but one learn the junction where it ended?",
        ("node",),
        ("k_inverse",),
        n="n_victims",
        exposed="tenth_node",
        exposed_control="k_inverse",
        against=_ONE_IN_K,
    ),
    "trips with positions": _believed(
        _LEARN, "Do trips, positions and counts, taken together, tell where a trip led?"
    ),
    "few on a road": AttackReading(
        _ONE, "Does the traffic of streets tell that somebody was on a road with few others?"
    ),
    "all passages but one": AttackReading(
        _LEARN,
        "Does somebody who knows all passages of an hour but one learn on which road that was?",
        ("belief",),
        ("belief_control",),
        n="n_victims",
        exposed="tenth",
        exposed_control="belief_control",
        against=_WITHOUT,
    ),
    "last speed": AttackReading(
        _LEARN, "Does somebody who knows all speeds of an hour but one learn how fast that was?"
    ),
    "identifiers": AttackReading(_ONE, "Does the release contain the column of identifiers?"),
    "direct identifiers": AttackReading(
        _ONE, "Are e-mail addresses, names or other values published that only one person has?"
    ),
    "rows by all columns": AttackReading(
        _ONE,
        "Does somebody who knows everything that is published of a person, kept and sensitive "
        "columns too, find their row?",
        ("average",),
        ("guess",),
        against="a guess among all of the table",
    ),
    "rows by open columns": AttackReading(
        _LINK,
        "Is a row recognized by its kept and sensitive columns alone, as in another table?",
        ("average",),
        ("guess",),
        against="a guess among all of the table",
    ),
    "values by other columns": AttackReading(
        _LEARN,
        "Is a sensitive value told to somebody who knows all other columns of a person?",
        ("share_read",),
        ("share_control",),
        against="who knows the quasi-identifiers alone",
    ),
    "rows of nobody": AttackReading(
        _ONE, "Are people hidden among rows that are no person, such as blank ones?"
    ),
    "l": AttackReading(
        _LEARN, "Do rows that look the same have too few sensitive values, such as one illness?"
    ),
    "entropy l": AttackReading(
        _LEARN, "Is one sensitive value too frequent among rows that look the same?"
    ),
    "t": AttackReading(
        _LEARN, "Do the sensitive values of rows that look the same differ too much from all?"
    ),
    "d": AttackReading(
        _LINK, "Do rows that look the same agree too much in what another source knows?"
    ),
    "share": AttackReading(_LINK, "Is one value too frequent among rows that look the same?"),
    "source share": AttackReading(
        _LINK, "Is what one source knows too frequent among rows that look the same?"
    ),
    "spread": AttackReading(
        _LEARN, "Are the numbers behind rows that look the same too close together?"
    ),
    "linkability": _never(
        _LINK,
        "Does somebody who has the data of one source learn what other sources say of a person?",
        ("share_of_people",),
    ),
    "homogeneity": _never(
        _LEARN,
        "Is a person's sensitive value told, because all who look the same have it?",
        ("share_of_people",),
    ),
    "heavy persons": AttackReading(_LEARN, "Does everybody weigh as one person in each group?"),
    "heavy vehicles": AttackReading(_LEARN, "Does every vehicle weigh as one in each group?"),
    "one each": AttackReading(_TRUE, "Does everybody have one row?"),
    "class numbers": AttackReading(_TRUE, "Do the numbers of groups tell nothing?"),
    "columns": AttackReading(_TRUE, "Are all columns declared, and are all statistics true?"),
    "labels": AttackReading(_TRUE, "Is each person within what the table says of them?"),
    "truth": AttackReading(_TRUE, "Are the other columns as in the original?"),
}
"""By the name of an attack; what stands in brackets behind a name is left out."""

JOINT = {
    "tables together": "both tables of",
    "newcomers": "both tables of",
    "releases together": "the releases of",
    "positions with records": "positions and the records of",
    "positions with counts": "positions and counts of",
    "trips with positions": "positions and trips of",
}
"""Attacks on two publications together, and what they are."""

OF_CROWDS = frozenset({"density leak"})
"""Attacks that tell of a crowd, and not of anybody in it."""

CONTROLS = {
    "releases of two vehicles": "releases together",
    "positions of another vehicle": "positions with records",
}
"""Findings that are the control of another one with the same attribute."""

BORROWED = {"matching": ("re-identification", "expected")}
"""Attacks whose control is a figure of another finding on the same pseudonyms, by attack."""
