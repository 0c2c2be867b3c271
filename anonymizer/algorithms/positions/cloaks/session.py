"""The `session` cloak: every pseudonym shares its whole lifetime with its whole group.

At the start of an epoch, devices are partitioned into groups and each member gets a new
pseudonym. Until the epoch ends, all pseudonyms of a group publish the same region at the same
ticks: one that covers all members. A member that falls silent remains covered at its last node
(a *ghost*). So births, deaths and regions depend only on the group, and the pseudonyms are
assigned at random: even an adversary who knows every position is left with a posterior of
1/|group|.

That hides who bears a pseudonym. Three rules hide where somebody is:

- A member is published as a *place*, an atom of the network that several devices share: the
  smallest in which it has enough company when its group is formed, kept until the group ends. If
  too few members have places of one size, theirs are made larger; of a large size that takes half
  as many more. Where many devices stand still, half as many more must share a place.
- A group publishes on a beat of its own, whether its members report or not, and those of large
  places more rarely, above all where many devices stand still. Groups that are formed together
  take turns.
- A group covers what its members reported last, and nothing else depends on who reported.

What one device wishes or does costs no other one more than it must:

- A device may demand more devices in its group, or larger places (see `demands`); a demand that
  cannot be met suppresses nobody but its author.
- Under a cap, groups are formed within *windows*: fixed parts of the network that the cap allows,
  the highest level of places. A group whose places exceed the cap is told as its window, and all
  publish as they are formed, so the cap suppresses nobody who is in a group before it has moved.
- Who is in no group when groups are formed, as there is too little company for it or its demand,
  changes nothing: neither the k and the places of others nor when groups publish or end.
- When a member opts out of a group that has published nothing, the others are grouped again.

Epochs are not aligned: the network is divided into cells with phases of their own, and a group
ends with the epoch of the cell that contained most of its members. Cells in which too few devices
are present belong to the cell beside them.
"""

import numpy as np

from anonymizer.algorithms.positions.adka import DensityRule
from anonymizer.algorithms.positions.atoms import (
    Company,
    Levels,
    lowest_shared_level,
    shared_levels,
)
from anonymizer.algorithms.positions.cloaks.beats import (
    STANDS_S,
    Paces,
    at_equal_distances,
    beat_of,
    paces,
    turns_s,
)
from anonymizer.algorithms.positions.cloaks.joining import Joiners
from anonymizer.algorithms.positions.cloaks.lasting_groups import (
    NO_GROUPS,
    Epochs,
    LastingGroups,
    Serials,
)
from anonymizer.algorithms.positions.cloaks.protocol import State
from anonymizer.algorithms.positions.cloaks.regrouping import formed_again
from anonymizer.algorithms.positions.demands import SharedDemands
from anonymizer.algorithms.positions.density import DensityMap
from anonymizer.algorithms.positions.device_keys import Keys, slots_as_keys
from anonymizer.algorithms.positions.device_partition import partition
from anonymizer.algorithms.positions.pace import Pace
from anonymizer.algorithms.positions.regions import cover
from anonymizer.algorithms.positions.spanning_forest import (
    compact_parts,
    fold,
    planar_coordinates,
)
from anonymizer.domain.arrays import (
    BoolArray,
    FloatArray,
    Int32Array,
    IntArray,
    UInt8Array,
    check_indices,
    digest_of,
)
from anonymizer.domain.network import RoadNetwork
from anonymizer.domain.outcomes import Outcome
from anonymizer.domain.release import Cloaked, Release

_UNGROUPED = -1
_NOWHERE = -1
_GROUPS_PER_CELL = 4
"""A cell has an epoch of its own if so many of the largest groups could be formed in it."""
_MOST_PER_S = 1 << 20
"""No cloak forms so many groups a second."""


def _epoch_cells(network: RoadNetwork, n: int) -> Int32Array:
    """Return the cell of each node, shape (nodes,): `n` for the network, or for each layer of it.

    Devices on one of several networks wait for each other alone, so they follow cells of their own.
    """
    if not network.layers:
        return compact_parts(network, n)
    alone = [compact_parts(network.alone(layer), n) for layer in network.layers]
    cells: Int32Array = np.concatenate([n * i + each for i, each in enumerate(alone)])
    return cells


class SessionCloak:
    """Keeps the groups of the running epochs.

    Parameters
    ----------
    pace
        How long groups live, and how long devices count as present. A device joins a group only
        if it will still be present when the group ends, even if it falls silent now. Otherwise an
        adversary who assumes that every pseudonym belongs to a present device could rule it out.
    max_nodes
        A group whose region would need more nodes publishes nothing more until it ends. Below the
        size of the network, `levels` are cut under this cap.
    k_extra
        Members beyond k, to allow for devices that the adversary controls. So many lower no k, and
        take no room: where devices crowd around a member, its group has up to twice as many more,
        unless the whole component has too few.
    serials
        Numbers of the groups, in the order in which they are formed; no other cloak of the service
        uses them.
    parked_s
        Devices that have stayed near one node for this long when a group is formed are company
        for each other alone. None: for all.
    formed_under
        Digest of the settings under which groups are formed.
    beat_s
        How often a group of the smallest places publishes; others as `beat_of` says. 0: at every
        tick in which a member reports.
    company
        How many devices share the atom of a member when its group is formed, not counting
        `k_extra`. By default all regions are made of the smallest atoms.

    Notes
    -----
    A gateway keeps no state of it: after a restart there are new groups with new pseudonyms, made
    with a new key. A cluster does, see `restore`.
    """

    reciprocal = True
    lasting = True

    def __init__(
        self,
        network: RoadNetwork,
        levels: Levels,
        *,
        rule: DensityRule,
        epochs: Epochs,
        pace: Pace,
        max_nodes: int,
        k_extra: int = 0,
        beat_s: float = 0.0,
        company: Company = Company(),  # noqa: B008  immutable
        parked_s: float | None = None,
        serials: Serials = Serials(),  # noqa: B008  immutable
        formed_under: bytes = b"",
    ) -> None:
        self._network = network
        self._parked_s = parked_s
        self._levels = levels
        self._is_large = levels.is_large
        largest = np.unique(levels.at[levels.largest], return_index=True)[1]
        self._n_largest = np.bincount(
            self._layer_of(largest), minlength=max(len(network.layers), 1)
        )
        self._beat_s = beat_s
        self._company = company
        self._rule = rule
        self._epochs = epochs
        self._pace = pace
        self._max_nodes = max_nodes
        self._k_extra = k_extra
        self._cell_of = _epoch_cells(network, epochs.n_cells)
        self._has_windows = max_nodes < network.n_nodes
        self._part_of = network.component_of
        if self._has_windows:
            # All of a window wait for the same epoch.
            self._part_of = levels.at[-1]
            _, some = np.unique(self._part_of, return_index=True)
            self._cell_of = self._cell_of[some][self._part_of]
            self._fits = np.diff(levels.first_node_of)[levels.first_atom_of[-1] :] <= max_nodes
            self._is_large = self._is_large & self._fits[self._part_of]
        self._point_of = np.stack(planar_coordinates(network), axis=1)
        self._meaning = digest_of(
            formed_under, *levels, self._cell_of, network.first_arc_of, network.neighbour_of
        )
        """Of everything by which a group and its places mean what they do."""
        self._cell_ends_at: FloatArray | None = None
        self._began_s = np.inf
        """When the first position came, unix seconds."""
        self._serials = serials
        self._n_formed = 0
        self._groups = NO_GROUPS
        # The time to live for which all groups were looked at.
        self._ttl_s = np.inf
        self._group_of = np.zeros(0, np.int64)
        self._place_of = np.zeros(0, np.int32)
        self._shown_of = np.zeros(0, np.int32)
        """Where each member was when its group published last."""
        self._is_free = np.zeros(0, bool)
        """Who is grouped as soon as groups are formed anywhere, in whatever cell."""
        self._broken = NO_GROUPS
        """Groups that `withdraw` has ended, until the call of `cloak` that follows it."""
        self.demands: SharedDemands | None = None
        """What devices demand of groups that are formed from now on; None: nothing."""
        self.keys: Keys = slots_as_keys
        """Groups are formed of devices in this order: who came first to a process has no say."""
        # Compile now, or load from the cache, rather than when the first groups are due.
        partition(self._point_of[:0], np.zeros(0, np.int32), network.component_of[:0])

    def state(self) -> State:
        """Return what changes from tick to tick."""
        groups = {name: getattr(self._groups, name) for name in LastingGroups.__slots__}
        return {
            "meaning": self._meaning,
            "cell_ends_at": self._cell_ends_at,
            "began_s": self._began_s,
            "n_formed": self._n_formed,
            "place_of": self._place_of,
            "shown_of": self._shown_of,
            "is_free": self._is_free,
            **groups,
        }

    def restore(self, state: State) -> None:
        """Go on from a state; if groups and places meant something else in it, without its groups.

        The same members in regions of other places would be a second release about them, which can
        be intersected with the first. New groups are formed after the settling time.

        Raises
        ------
        ValueError
            If it is no state on this network.
        """
        self._n_formed = state["n_formed"]
        self._began_s = state.get("began_s", -np.inf)
        self._place_of = state["place_of"]
        self._shown_of = state["shown_of"]
        self._is_free = state["is_free"]
        check_indices(self._place_of, self._network.n_nodes)
        check_indices(self._shown_of, self._network.n_nodes)
        if state["meaning"] == self._meaning:
            self._cell_ends_at = state["cell_ends_at"]
            self._groups = LastingGroups(*(state[name] for name in LastingGroups.__slots__))
            check_indices(self._groups.member, len(self._place_of))
        else:
            self._cell_ends_at, self._groups = None, NO_GROUPS
            self._shown_of = np.full(len(self._place_of), _NOWHERE, np.int32)
        self._ttl_s = np.inf
        self._group_of = np.full(len(self._place_of), _UNGROUPED)
        self._index()

    def kept(self, n_slots: int) -> BoolArray:
        """Keep all members: the pseudonyms of their groups depend on them."""
        self._make_room(n_slots)
        kept: BoolArray = self._group_of != _UNGROUPED
        return kept

    def places(self, density: DensityMap) -> Int32Array:
        """Count every member, including ghosts, at its last node on the graph."""
        kept = self.kept(len(density.node_of))
        return np.where(kept, self._place_of, density.node_of)

    def n_waiting(self, density: DensityMap) -> int:
        """Count the devices that wait for an epoch to begin."""
        kept = self.kept(len(density.node_of))
        return int((self._can_join(density) & ~kept).sum())

    def last_seen(self, slot: Int32Array, node: Int32Array) -> None:
        """Cover members that have left the graph where they were seen last."""
        if len(slot):
            self._make_room(int(slot.max()) + 1)
            self._place_of[slot] = node

    def set_rule(self, rule: DensityRule, *, k_extra: int) -> None:
        """Use this rule for groups formed from now on."""
        self._rule = rule
        self._k_extra = k_extra

    def cloak(self, density: DensityMap, slot: Int32Array, *, now: float) -> Cloaked:
        """Publish the groups whose beat it is; without a beat also the groups formed now."""
        self._make_room(len(density.node_of))
        self._place_of[slot] = density.node_of[slot]
        if self._cell_ends_at is None and len(slot):
            self._began_s = min(self._began_s, now)
            begin_at = now + self._epochs.settle_s
            self._cell_ends_at = np.full(self._epochs.n_cells, begin_at, np.float64)
        self._form_again(density, now)
        n_old = self._end_and_form(density, now)

        group_of = self._group_of[slot]
        due = self._due(group_of, n_old, now)
        release = self._cover(due)
        whole = np.diff(release.first_node_of) > 0
        # The last entry stands for _UNGROUPED.
        of_group = np.full(len(due) + 1, Outcome.HELD, np.uint8)
        of_group[:-1][due | (self._groups.due_at == np.inf)] = Outcome.SUPPRESSED__REGION_TOO_LARGE
        of_group[np.flatnonzero(due)[whole]] = Outcome.PUBLISHED
        outcome = of_group[group_of]
        alone = np.flatnonzero(group_of == _UNGROUPED)
        if len(alone):
            outcome[alone] = self._why_alone(density, density.node_of[slot[alone]])
        if not whole.all():
            self._silence(np.flatnonzero(due)[~whole])
            release = release.only(whole)
        return Cloaked(release, outcome)

    def _why_alone(self, density: DensityMap, node: Int32Array) -> UInt8Array:
        """Return what becomes of positions of devices that are in no group."""
        outcome = np.full(len(node), Outcome.HELD, np.uint8)
        if self._has_windows:
            window, present = self._part_of[node], density.counted_at[self._can_join(density)]
            n_in = np.bincount(self._part_of[present], minlength=len(self._network.component_of))
            k = self._rule.beyond(density.near(node), self._k_extra)
            lacks = n_in[window] < k + self._k_extra
            outcome[lacks | ~self._fits[window]] = Outcome.SUPPRESSED__REGION_TOO_LARGE
        outcome[~self._levels.is_large[node]] = Outcome.SUPPRESSED__REGION_TOO_SMALL
        return outcome

    def _silence(self, group: IntArray) -> None:
        """Publish nothing more of groups that are too large, until they end."""
        self._groups.due_at[group] = self._groups.beat_s[group] = np.inf

    def withdraw(self, slot: Int32Array) -> None:
        """Forget what devices have reported and no group has published yet.

        A member stays covered where its group showed it last, as if it had fallen silent then. A
        group that has published nothing goes on without it: it would show where it was. If it is
        too small then, its members are grouped again in the next call of `cloak`, which follows.
        """
        self._make_room(int(slot.max(initial=-1)) + 1)
        self._place_of[slot] = self._shown_of[slot]
        self._place_of[slot[self._group_of[slot] == _UNGROUPED]] = _NOWHERE
        self._is_free[slot] = False
        unseen = slot[(self._group_of[slot] != _UNGROUPED) & (self._shown_of[slot] == _NOWHERE)]
        if not len(unseen):
            return
        left = np.zeros(len(self._groups.k), bool)
        left[self._group_of[unseen]] = True
        gone = np.zeros(len(self._group_of), bool)
        gone[unseen] = True
        self._group_of[unseen] = _UNGROUPED
        self._groups = self._groups.without(gone)
        left &= np.diff(self._groups.first_member_of) < self._groups.k + self._k_extra
        self._broken = self._groups.only(left)
        self._is_free[self._broken.member] = True
        self._keep(~left)

    def hurry(self, slot: Int32Array) -> None:
        """Group these devices as soon as groups are formed anywhere; they come from elsewhere."""
        self._make_room(int(slot.max(initial=-1)) + 1)
        self._is_free[slot] = True

    def _form_again(self, density: DensityMap, now: float) -> None:
        """Group those whose groups have become too small before anything was published of them.

        Each with the nearest groups of which nothing was published either, as far as necessary. The
        new groups publish, and end, when the earliest of these would have. Where there are too few
        they wait until groups are formed next, in whatever cell.
        """
        broken, self._broken = self._broken, NO_GROUPS
        if not len(broken.k):
            return
        unseen = self._shown_of[self._groups.member[self._groups.first_member_of[:-1]]] == _NOWHERE
        unseen &= self._groups.due_at < np.inf
        old = broken.joined(self._groups.only(unseen))
        first, sizes = old.first_member_of[:-1], np.diff(old.first_member_of)
        need = old.k + np.int32(self._k_extra)
        part = self._parts(old.member[first], self._parked(density, now))
        point = self._point_of[self._place_of[old.member]]
        again = formed_again(
            sizes,
            need,
            part,
            np.add.reduceat(point, first) / sizes[:, np.newaxis],
            np.arange(len(need)) < len(broken.k),
        )
        if not again.any():
            return
        unseen[unseen] = again[len(broken.k) :]
        self._keep(~unseen)
        of_member = np.repeat(np.arange(len(sizes)), sizes)
        rows = np.flatnonzero(again[of_member])
        row, first = partition(point[rows], need[of_member[rows]], part[of_member[rows]])
        row = rows[row]
        ends_at = np.minimum.reduceat(old.ends_at[of_member[row]], first[:-1])
        member = old.member[row]
        published = np.concatenate([self._published(density), member])
        layer = self._layer(member[first[:-1]])
        stands, moves = (each[layer] for each in self._paces(density, published, now))
        level = self._shared(old.level[row], first, stands)
        self._add(
            LastingGroups(
                np.maximum.reduceat(old.k[of_member[row]], first[:-1]),
                ends_at,
                np.minimum.reduceat(old.due_at[of_member[row]], first[:-1]),
                self._beats_s(level, first, ends_at - now, moves),
                self._new_serials(len(ends_at), now),
                first,
                member,
                level,
            )
        )

    def _add(self, groups: LastingGroups) -> None:
        self._groups = self._groups.joined(groups)
        self._is_free[groups.member] = False
        self._index()

    def _parked(self, density: DensityMap, now: float) -> BoolArray | None:
        """Return which slots are company for each other alone; None: all are for all."""
        if self._parked_s is None:
            return None
        return density.is_parked(since=now - self._parked_s)

    def _parts(self, slot: Int32Array, parked: BoolArray | None) -> Int32Array:
        """Return in which part each device is: no group is formed of several."""
        part: Int32Array = self._part_of[self._place_of[slot]]
        # Those that are parked and those that move are like separate components.
        return part if parked is None else 2 * part + parked[slot]

    def retire(self, slot: Int32Array) -> None:
        """End the groups of these devices at once, for all their members."""
        group_of = self._group_of[slot]
        doomed = np.zeros(len(self._groups.k), bool)
        doomed[group_of[group_of != _UNGROUPED]] = True
        self._keep(~doomed)

    def _due(self, group_of: IntArray, n_old: int, now: float) -> BoolArray:
        """Return which groups publish now, and set when they publish next."""
        groups = self._groups
        if self._beat_s > 0:
            # The latter if the clock was put back.
            due = (groups.due_at <= now) | (groups.due_at > now + groups.beat_s)
            beat_s, due_at = groups.beat_s[due], groups.due_at[due]
            groups.due_at[due] += (np.floor((now - due_at) / beat_s) + 1) * beat_s
            return due
        due = np.zeros(len(groups.k), bool)
        due[group_of[group_of != _UNGROUPED]] = True
        due[n_old:] = True
        return due & (groups.due_at < np.inf)

    def _end_and_form(self, density: DensityMap, now: float) -> int:
        """End the groups whose epoch is over and form new ones; return how many live on."""
        length_s = self._pace.epoch_s
        self._bring_forward(density, now)
        ended = self._groups.ends_at <= now
        cell_ends_at = self._cell_ends_at
        if cell_ends_at is None:
            return 0
        begin = cell_ends_at <= now
        cell_ends_at[begin] = self._epochs.ends(now, length_s)[begin]
        if not (ended.any() or begin.any()):
            return len(self._groups.k)
        published = self._published(density)
        just_ended = self._groups.only(ended).member
        self._keep(~ended)
        n_old = len(self._groups.k)
        # Devices that wait in a cell whose epoch begins, and members of groups that just ended.
        joining = begin[self._cells(published)[density.node_of]]
        joining[just_ended] = True
        self._is_free &= density.is_known
        joining |= self._is_free
        joining &= self._can_join(density) & (self._group_of == _UNGROUPED)
        joining &= density.version_of >= now + length_s - self._pace.ttl_s
        slot = np.flatnonzero(joining).astype(np.int32)
        self._form(density, slot[np.argsort(self.keys(slot))], cell_ends_at, now)
        if begin[0] and not len(self._groups.k):
            # Without members all follow the first cell. If the clock was put back, that was long.
            waited_s = abs(now - self._began_s)
            cell_ends_at[0] = self._epochs.next_try(now, length_s, waited_s=waited_s)
        return n_old

    def _bring_forward(self, density: DensityMap, now: float) -> None:
        """Bring forward ends that were set for a longer epoch, or before the clock was put back.

        Devices that wait are grouped at once. Groups of a longer epoch end together after one more
        beat, when all have published again. A member that may no longer count as present when its
        group ends could be ruled out: with the epoch, the time to live has become shorter. Such a
        group publishes nothing more, and ends when its next beat is due. What a group has published
        holds until then. Without a beat, groups end now.
        """
        groups = self._groups
        longest_s = groups.beat_s[groups.beat_s < np.inf].max(initial=0.0)
        latest = now + max(self._pace.epoch_s, self._epochs.settle_s, longest_s)
        late = groups.ends_at > latest
        groups.ends_at[late] = now + longest_s
        # Nobody who is present when a group is formed becomes absent before it ends but for this.
        if self._pace.ttl_s < self._ttl_s and len(groups.k):
            seen_at = np.minimum.reduceat(
                density.version_of[groups.member], groups.first_member_of[:-1]
            )
            absent = seen_at < groups.ends_at - self._pace.ttl_s
            groups.ends_at[absent] = np.minimum(groups.due_at, groups.ends_at)[absent]
        self._ttl_s = self._pace.ttl_s
        if self._cell_ends_at is not None:
            self._cell_ends_at[self._cell_ends_at > latest] = now

    def _published(self, density: DensityMap) -> Int32Array:
        """Return the members of groups that are published; a silent group is not.

        Where ids change, the former ones of vehicles that may be among the others are left out.
        """
        member = self._groups.only(self._groups.due_at < np.inf).member
        return member[density.is_counted[member]]

    def _cells(self, member: Int32Array) -> IntArray:
        """Return the cell whose epoch each node follows, by the members in each cell.

        Only those of groups count: who is not published changes nothing that is.
        """
        n = self._epochs.n_cells * max(len(self._network.layers), 1)
        n_in = np.bincount(self._cell_of[self._place_of[member]], minlength=n)
        least = _GROUPS_PER_CELL * (max(self._rule.values) + self._k_extra)
        follows = [fold(layer, least) for layer in n_in.reshape(-1, self._epochs.n_cells)]
        return np.concatenate(follows)[self._cell_of]

    def _can_join(self, density: DensityMap) -> BoolArray:
        """Return which slots may be grouped here, in a component that is large enough."""
        return (density.counted_at >= 0) & self._is_large[density.node_of]

    def _form(
        self, density: DensityMap, slot: Int32Array, cell_ends_at: FloatArray, now: float
    ) -> None:
        """Partition devices into the smallest groups that satisfy all demands."""
        self._shown_of[slot] = _NOWHERE
        parked = self._parked(density, now)
        lives_on = self._published(density)
        part = self._parts(slot, parked)
        joining = Joiners(density, self._levels, slot, part, lives_on, parked, now).joining(
            self._rule, self._k_extra, self.demands
        )
        if not len(joining.slot):
            return
        row, first = partition(
            self._point_of[density.node_of[joining.slot]], joining.need, joining.part
        )
        sizes = np.diff(first)
        member = joining.slot[row]
        published = np.concatenate([lives_on, member])
        layer = self._layer(member[first[:-1]])
        stands, moves = (each[layer] for each in self._paces(density, published, now))
        level = self._levels_for(member, first, published, joining.least_level[row], stands)
        if self._has_windows:
            exceeds = np.diff(self._regions(first, member, level)[0]) == 0
            level[np.repeat(exceeds, sizes)] = len(self._levels.at) - 1
        k = np.maximum.reduceat(joining.k[row], first[:-1])
        ends_at = cell_ends_at[self._cell_of_most(member, sizes, published)]
        beat_s = self._beats_s(level, first, ends_at - now, moves)
        self._add(
            LastingGroups(
                k,
                ends_at,
                now + self._turns_s(beat_s, ends_at - now, member[first[:-1]]),
                beat_s,
                self._new_serials(len(sizes), now),
                first,
                member,
                level,
            )
        )

    def _regions(
        self, first_member_of: IntArray, member: Int32Array, level: IntArray
    ) -> tuple[IntArray, Int32Array]:
        """Return the region of each group where its members are now; none above the cap."""
        return cover(
            self._network,
            self._levels,
            first_member_of,
            self._place_of[member],
            level,
            max_nodes=self._max_nodes,
        )

    def _new_serials(self, n: int, now: float) -> IntArray:
        """Return numbers for new groups."""
        # They grow with time: a cloak that has lost its state does not use a number again.
        begin = max(self._n_formed, int(now) * _MOST_PER_S)
        self._n_formed = begin + n
        return self._serials.first + self._serials.step * np.arange(begin, begin + n)

    def _cell_of_most(self, member: Int32Array, sizes: IntArray, published: Int32Array) -> IntArray:
        """Return the cell with whose epoch each new group ends: that of most of its members."""
        n_cells, n = self._epochs.n_cells, len(sizes)
        cell_of = self._cells(published)[self._place_of[member]]
        group_and_cell = np.repeat(np.arange(n), sizes) * n_cells + cell_of
        n_in_cell = np.bincount(group_and_cell, minlength=n * n_cells).reshape(-1, n_cells)
        most: IntArray = n_in_cell.argmax(axis=1)
        return most

    def _layer(self, member: Int32Array) -> IntArray:
        """Return on which of several networks each member is, shape (members,)."""
        return self._layer_of(self._place_of[member])

    def _layer_of(self, node: IntArray | Int32Array) -> IntArray:
        """Return on which of several networks each node is, same shape."""
        first = [layer.nodes.start for layer in self._network.layers] or [0]
        layer: IntArray = np.searchsorted(first, node, "right") - 1
        return layer

    def _paces(self, density: DensityMap, published: Int32Array, now: float) -> Paces:
        """Return how the published devices of each network move.

        Unknown until they have had a minute, or time to report again, and of an id that changes
        while it is younger.
        """
        rest_since = density.rest_since[published]
        known_s = max(STANDS_S, self._pace.interval_s)
        known = np.maximum(density.since_of[published], self._began_s) <= now - known_s
        on_graph = density.node_of[published] >= 0
        return paces(
            ~(known & on_graph & (rest_since > density.version_of[published] - STANDS_S)),
            known & on_graph & (rest_since > now - STANDS_S),
            self._layer(published),
            self._company.area_devices * self._n_largest,
            k_extra=self._k_extra,
        )

    def _beats_s(
        self,
        level: IntArray,
        first_member_of: IntArray,
        lifetime_s: FloatArray,
        moves: BoolArray,
    ) -> FloatArray:
        """Return how often each new group publishes, shape (groups,); 0 without a beat."""
        times = np.maximum.reduceat(self._levels.times[level], first_member_of[:-1])
        beat_s = beat_of(self._beat_s, times, moves=moves)
        return at_equal_distances(beat_s, lifetime_s) if self._beat_s else beat_s

    def _turns_s(
        self, beat_s: FloatArray, lifetime_s: FloatArray, first_member: Int32Array
    ) -> FloatArray:
        """Return the seconds until each new group publishes first, shape (groups,).

        With a beat they take turns until the next cell forms groups. In windows they take none: a
        group that outgrew the cap before its turn would have taken it in vain.
        """
        if self._has_windows:
            return np.zeros(len(beat_s))
        until_next_s = self._pace.epoch_s / self._epochs.n_cells
        most_s = np.minimum(np.minimum(beat_s, until_next_s), lifetime_s / 2)
        return turns_s(self._layer(first_member), most_s)

    def _levels_for(
        self,
        member: Int32Array,
        first_member_of: IntArray,
        published: Int32Array,
        least: IntArray,
        stands: BoolArray,
    ) -> IntArray:
        """Return the level of the atom of each member of new groups, shape (members,).

        It is not below `least` of the member. `stands`: around which groups many devices stand.
        """
        n_at = np.bincount(self._place_of[published], minlength=self._network.n_nodes)
        few = self._few(published)[self._layer(member)]
        level, of_member = least.copy(), np.repeat(stands, np.diff(first_member_of))
        for each in np.unique(stands).tolist():
            chosen = of_member == each
            place = self._place_of[member[chosen]]
            needed = self._needed(stands=each)
            lowest = lowest_shared_level(self._levels, n_at, place, needed, few=few[chosen])
            level[chosen] = np.maximum(level[chosen], lowest)
        return self._shared(level, first_member_of, stands)

    def _shared(self, level: IntArray, first_member_of: IntArray, stands: BoolArray) -> IntArray:
        """Return levels that enough members of each group share, shape (members,)."""
        shared, of_member = level.copy(), np.repeat(stands, np.diff(first_member_of))
        for each in np.unique(stands).tolist():
            chosen, least = of_member == each, self._alike(stands=each)
            shared[chosen] = shared_levels(level, first_member_of, least)[chosen]
        return shared

    def _alike(self, *, stands: bool) -> IntArray:
        """Return how many members of a group share a size of places at least, shape (levels,).

        Who is still in its place when its group ends has one of that size again, so large places
        would tell it from its companions for minutes.
        """
        usual, more = (self._needed(stands=each).place_devices for each in (stands, True))
        return np.where(self._levels.are_large, more, usual)

    def _few(self, published: Int32Array) -> BoolArray:
        """Return on which of several networks few devices are published, shape (networks,)."""
        n_published = np.bincount(self._layer(published), minlength=len(self._n_largest))
        return self._levels.are_few(n_published, self._n_largest, k_extra=self._k_extra)

    def _needed(self, *, stands: bool) -> Company:
        """Return the company that a member needs; `stands`: where many devices stand."""
        company = self._company.where_many_stand() if stands else self._company
        return company.beyond(self._k_extra)

    def _keep(self, chosen: BoolArray) -> None:
        self._group_of[self._groups.member] = _UNGROUPED
        self._groups = self._groups.only(chosen)
        self._index()

    def _index(self) -> None:
        groups = self._groups
        self._group_of[groups.member] = np.repeat(
            np.arange(len(groups.k)), np.diff(groups.first_member_of)
        )

    def _cover(self, chosen: BoolArray) -> Release:
        """Return the release of the chosen groups; a region above the cap is empty."""
        groups = self._groups.only(chosen) if chosen.any() else NO_GROUPS
        self._shown_of[groups.member] = self._place_of[groups.member]
        first_node_of, node = self._regions(groups.first_member_of, groups.member, groups.level)
        return Release(
            k=groups.k,
            first_node_of=first_node_of,
            node=node,
            first_member_of=groups.first_member_of,
            member=groups.member,
            version=np.repeat(groups.serial, np.diff(groups.first_member_of)),
            until=np.minimum(groups.ends_at, groups.due_at) if self._beat_s else groups.ends_at,
        )

    def _make_room(self, n_slots: int) -> None:
        more = n_slots - len(self._group_of)
        if more > 0:
            self._group_of = np.concatenate([self._group_of, np.full(more, _UNGROUPED)])
            nowhere = np.full(more, _NOWHERE, np.int32)
            self._place_of = np.concatenate([self._place_of, nowhere])
            self._shown_of = np.concatenate([self._shown_of, nowhere])
            self._is_free = np.concatenate([self._is_free, np.zeros(more, bool)])
