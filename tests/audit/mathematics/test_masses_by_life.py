"""Masses by life: regions change them as they change a plain table of masses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anonymizer.audit.mathematics.masses import FREE, Masses
from anonymizer.audit.mathematics.masses_by_life import MassesByLife, Weights, by_life, freed

N_NODES, N_PIECES = 6, 2
NODE_OF = np.array([0, 0, 1, 2, 3, 4, 4, 5], np.int32)
SLIP = 0.01

Table = dict[tuple[int, int, int], float]
"""Mass by owner, life and state."""


def some_masses(rng: np.random.Generator, n_owners: int, lives: int = 3) -> Masses:
    """Return masses, each owner, life and state at most once."""
    every = np.array(
        [
            (a, c, s)
            for a in range(n_owners)
            for c in range(FREE, lives)
            for s in range(len(NODE_OF))
        ]
    )
    owner, life, state = every[rng.random(len(every)) < 0.4].T.astype(np.int32)
    return by_life(Masses(owner, life, state, rng.random(len(owner))))[0]


def table_of(masses: Masses) -> Table:
    found: Table = {}
    for owner, life, state, mass in zip(*(each.tolist() for each in masses), strict=True):
        found[owner, life, state] = found.get((owner, life, state), 0.0) + mass
    return found


def told(table: Table, life: int, said: Weights, rows: list[int], *, begins: bool) -> Table:
    """Return a table of masses after a region."""
    found: Table = {}
    for (a, c, s), mass in table.items():
        node = int(NODE_OF[s])
        p, row = int(said.piece_at[node]), rows[a]
        factor = float(said.factor[row, p])
        here = mass / float(said.total[row])
        if begins and c == FREE and p >= 0:
            joined = here * factor * float(said.likely[node])
            found[a, life, s] = found.get((a, life, s), 0.0) + joined
        if not begins and c == life:
            here *= factor if p >= 0 else SLIP
        found[a, c, s] = found.get((a, c, s), 0.0) + here
    return found


@given(st.integers(0, 10_000), st.lists(st.tuples(st.booleans(), st.integers(0, 4)), max_size=5))
def test_regions_change_masses_as_they_change_a_plain_table(
    seed: int, regions: list[tuple[bool, int]]
) -> None:
    rng, n_owners = np.random.default_rng(seed), 3
    masses = some_masses(rng, n_owners)
    held, table = MassesByLife(masses, n_owners), table_of(masses)
    for begins, life in regions:
        said = Weights(
            rng.integers(-1, N_PIECES, N_NODES).astype(np.int32),
            rng.random(N_NODES),
            2 * rng.random((n_owners + 2, N_PIECES)),
            0.5 + rng.random(n_owners + 2),
        )
        asked = FREE if begins else life
        owner, *of_owner = held.inside(asked, NODE_OF, said.piece_at, said.likely, N_PIECES)
        inside, total = np.zeros((n_owners, N_PIECES)), np.zeros(n_owners)
        inside[owner], total[owner] = of_owner
        for a in range(n_owners):
            states = {
                s: mass
                for (b, c, s), mass in table.items()
                if (b, c) == (a, asked) and (not begins or said.piece_at[NODE_OF[s]] >= 0)
            }
            assert total[a] == pytest.approx(sum(states.values()))
            for p in range(N_PIECES):
                assert inside[a, p] == pytest.approx(
                    sum(
                        mass * said.likely[NODE_OF[s]]
                        for s, mass in states.items()
                        if said.piece_at[NODE_OF[s]] == p
                    )
                )
        row_of = rng.integers(0, n_owners + 2, n_owners)
        if begins:
            held.begin(life, NODE_OF, said, row_of)
        else:
            held.go_on(life, NODE_OF, said, row_of, SLIP)
        table = told(table, life, said, row_of.tolist(), begins=begins)
        born = np.array([n_owners], np.int32), np.array([life], np.int32), np.array([2], np.int32)
        n_owners += 1
        held.add(Masses(*born, np.array([0.5])), n_owners)
        table[n_owners - 1, life, 2] = 0.5
    assert held.mass_of.sum() == pytest.approx(sum(table.values()))
    group_of = rng.integers(0, 2, n_owners)
    sums = held.sums(group_of, 2)
    for group in range(2):
        assert sums[group] == pytest.approx(
            sum(mass for (a, _, _), mass in table.items() if group_of[a] == group)
        )
    unit, least = 0.5 + rng.random(n_owners), float(rng.random()) / 4
    kept = {key: mass / unit[key[0]] for key, mass in table.items()}
    listed, source = held.listed(unit, least=0.0)
    assert table_of(listed) == pytest.approx(kept)
    larger = held.listed(unit, least)[0].mass
    assert larger.tolist() == listed.mass[listed.mass > least].tolist()
    place = list(zip(listed.life.tolist(), listed.owner.tolist(), strict=True))
    assert place == sorted(place)
    old = source >= 0
    assert (masses.state[source[old]] == listed.state[old]).all()
    assert (masses.owner[source[old]] == listed.owner[old]).all()


def test_the_masses_that_were_given_stay_as_they_are() -> None:
    masses = some_masses(np.random.default_rng(1), 2)
    before = masses.mass.copy()
    held = MassesByLife(masses, 2)
    held.go_on(
        0,
        NODE_OF,
        Weights(np.zeros(N_NODES, np.int32), np.ones(N_NODES), np.full((1, 1), 0.5), np.ones(1)),
        np.zeros(2, np.int64),
        SLIP,
    )
    assert masses.mass.tolist() == before.tolist()
    assert held.listed(np.ones(2), least=0.0)[0].mass.sum() < before.sum()


def test_who_was_in_a_life_that_is_over_is_free() -> None:
    masses = some_masses(np.random.default_rng(2), 2)
    found, was = freed(masses, np.array([True, False, True]))
    assert set(found.life.tolist()) == {FREE, 1}
    assert found.mass.tolist() == masses.mass[was].tolist()
    place = list(zip(found.life.tolist(), found.owner.tolist(), strict=True))
    assert place == sorted(place)
    assert freed(masses, np.zeros(3, bool))[0] is masses
