"""Mutants: small changes to the code that keeps the promises, which tests have to notice."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Module:
    """A module, and the tests that have to notice its mutants."""

    path: str
    """Its file, below the package."""
    tests: tuple[str, ...]
    """Files below `tests`."""
    changes: tuple[tuple[str, str], ...]
    """A text that occurs once in the file, and what replaces it."""


MODULES = (
    Module(
        "algorithms/positions/verification.py",
        ("algorithms/positions/test_verification.py", "algorithms/positions/test_transcripts.py"),
        (
            ("k[g] >= k_floor and", "k[g] > k_floor and"),
            ("first_member_of[g] < first_member_of[g + 1]", "True"),
            ("or region_at[v] == g:", "or region_at[v] == -2:"),
            ("n_devices += devices_at[v]", "n_devices += 1"),
            ("holds[group_of[s]] = False", "pass"),
            ("if s < 0 or s >= len(node_of):", "if s >= len(node_of):"),
            ("good and node_of[s] >= 0 and region_at[node_of[s]] == g", "good and node_of[s] >= 0"),
            ("good and n_devices >= k[g]", "good and n_devices + 1 >= k[g]"),
            ("alike = n >= k[g]", "alike = n + 1 >= k[g]"),
            ("alike and version[i] == version[start]", "alike"),
            ("alike and (version_of[s] != version[i]) == born", "alike"),
            (" and (born or n_sharing[first] == n)", ""),
            ("(born or hash_of[s] == before)", "True"),
            ("n_sharing[s] = n\n", "pass\n"),
            ("_mix(now, np.uint64(n))", "now"),
        ),
    ),
    Module(
        "algorithms/positions/verification.py",
        ("algorithms/positions/test_changing_ids.py",),
        (
            ("begun + slack_s < ended", "begun < ended"),
            ("np.minimum.at(ended", "np.maximum.at(ended"),
            (
                "changes = since_of[release.member] > -np.inf",
                "changes = since_of[release.member] > 0",
            ),
        ),
    ),
    Module(
        "algorithms/positions/changing_ids.py",
        ("algorithms/positions/test_changing_ids.py",),
        (
            ("(since == LASTS) | (", "("),
            ("since < at - slack_s", "since < at"),
            ("last >= at", "last >= at - 1.0"),
            ("_NEARLY_ALL * max(n)", "0 * max(n)"),
        ),
    ),
    Module(
        "algorithms/records/verification.py",
        ("algorithms/records/test_verification.py", "algorithms/records/test_margin.py"),
        (
            ("np.bincount(of, is_repeated) > 0", "np.bincount(of, is_repeated) > 99"),
            ("np.clip(leaving - rarer, 0, n)", "np.clip(leaving - rarer - 1, 0, n)"),
            ("np.lexsort((self.n, self.class_number))", "np.lexsort((self.class_number,))"),
            ("n[enough] - 1 - (leaving - n_low)", "n[enough] - 1"),
            ("left, n_classes = self.without_rarest(leaving)", "left, n_classes = self"),
            ("self.first) - leaving", "self.first)"),
            ("new_person[1:] |= p[1:] != p[:-1]", "new_person[1:] = True"),
            ("real = self.value != self.attribute.missing", "real = self.value >= 0"),
            ("found[n_persons < k]", "found[n_persons <= k]"),
            ("(np.bincount(who) > 1).any()", "False"),
            ("(who[1:] != who[:-1])", "True"),
            ("occurs = self.usual > 0", "occurs = self.usual >= 0"),
        ),
    ),
    *(
        Module(
            f"domain/criteria/{name}.py",
            ("algorithms/records/test_verification.py", "algorithms/records/test_margin.py"),
            changes,
        )
        for name, changes in {
            "criterion": (
                ("value <= bound + slack", "value < bound - slack"),
                ("value <= bound + slack", "value <= bound + 0.05"),
                ("value >= bound - slack", "value > bound + slack"),
                ("value >= bound - slack", "value >= bound - 1"),
            ),
            "l_diversity": (("margin if l > 1 else 0,", "0,"),),
            "value_share": (("held.n_persons - leaving", "held.n_persons"),),
            "source_share": (("held.n_persons - leaving", "held.n_persons"),),
            "entropy_l_diversity": (("held.diversity(leaving)", "held.diversity(0)"),),
            "t_closeness": (("held.distance(leaving)", "held.distance(0)"),),
        }.items()
    ),
    Module(
        "algorithms/records/founding.py",
        (
            "algorithms/records/test_founding.py",
            "pipeline/records/test_windows_together.py",
            "pipeline/records/test_all_windows_at_once.py",
        ),
        (
            ("is_free[shows] = False", "pass"),
            ("follows.sum(axis=1) + n > d", "follows.sum(axis=1) + n >= d"),
            ("(possible.sum(axis=1) >= d)", "(possible.sum(axis=1) >= d - 1)"),
            ("| (is_free[own] & ~gets)", "| is_free[own]"),
            ("has_enough & is_open[own]", "has_enough"),
            ("few[(len(real) <= d) | ~rest", "few[~rest"),
            ("(in_label != left[:, None])", "in_label"),
            ("gets | (is_known & ~left)", "gets | is_known"),
            ("is_known & ~left", "is_known & left"),
            ("hidden &= self._hidden(", "self._hidden("),
            ("founders = founders[hidden]", "return founders[hidden]"),
            ("chains.astype(np.float32) > 0", "chains.astype(np.float32) > 1"),
            ("            is_free |= more\n", "            break\n"),
            ("joined = np.intersect1d(founders, waiting)", "joined = waiting"),
            ("class_keeps(criteria.arrays, criteria.k, founders)", "len(founders)"),
        ),
    ),
    Module(
        "algorithms/positions/cloaks/session.py",
        (
            "algorithms/positions/cloaks/test_session.py",
            "algorithms/positions/cloaks/test_capped_groups.py",
        ),
        (
            ("joining &= density.version_of >= now", "joining &= density.version_of >= now - 1e9"),
            ("joining[just_ended] = True", "pass"),
            (" & (self._group_of == _UNGROUPED)\n", "\n"),
            ("np.maximum.reduceat(joining.k[row]", "np.minimum.reduceat(joining.k[row]"),
            ("self._n_formed = begin + n", "pass"),
            ("self._silence(np.flatnonzero(due)[~whole])", "pass"),
            ("due & (groups.due_at < np.inf)", "due & (groups.due_at <= np.inf)"),
            ("        self._keep(~doomed)\n", "        pass\n"),
            ("begin = max(self._n_formed, int(now) * _MOST_PER_S)", "begin = self._n_formed"),
            ("if not (ended.any() or begin.any()):", "if not begin.any():"),
            ("groups.ends_at[late] = now + longest_s", "pass"),
            ("np.maximum(density.since_of[published], self._began_s)", "self._began_s"),
            ("self._began_s) <= now - known_s", "self._began_s) <= np.inf"),
            ("max(STANDS_S, self._pace.interval_s)", "STANDS_S"),
            ("(rest_since > density.version_of[published] - STANDS_S)", "(rest_since > now - 60)"),
            ("self._company.where_many_stand() if stands else self._company", "self._company"),
            ("return company.beyond(self._k_extra)", "return company"),
            ("self._few(published)[self._layer(member)]", "self._few(published)[0 * member]"),
            ("shared[chosen] = shared_levels(level, first_member_of, least)[chosen]", "pass"),
            ("np.maximum(level[chosen], lowest)", "np.minimum(level[chosen], lowest)"),
            ("([lives_on, member])", "([self._published(density)])"),
            ("seen_at = np.minimum.reduceat(", "seen_at = np.maximum.reduceat("),
            ("absent = seen_at < groups.ends_at", "absent = seen_at < now"),
            (
                "        self._ttl_s = np.inf\n        self._group_of = np.full",
                "        self._ttl_s = 0.0\n        self._group_of = np.full",
            ),
            ("self._cell_ends_at > latest] = now", "self._cell_ends_at > np.inf] = now"),
        ),
    ),
    Module(
        "algorithms/positions/cloaks/beats.py",
        (
            "algorithms/positions/cloaks/test_session.py",
            "algorithms/positions/cloaks/test_capped_groups.py",
        ),
        (
            ("widths = np.sqrt(times)", "widths = times"),
            ("n(stands) + k_extra", "n(stands)"),
            (">= _STANDING * n_all,", "> n_all,"),
            ("n(~moves) + k_extra", "n(~moves)"),
        ),
    ),
    Module(
        "algorithms/positions/atoms.py",
        ("algorithms/positions/cloaks/test_session.py",),
        (
            ("n_below - missing < needed", "n_below < needed"),
            ("max(needed - n_at_top, 0)", "0"),
            ("top, needed, n_at_top = at, least[at]", "top, needed, n_at_top = at, least[0]"),
            ("self.times >= _LARGE", "self.times > LEVELS[-1]"),
            ("raised_to[at] = top", "raised_to[at] = at"),
            ("here = n_at[place] - 1", "here = n_at[place]"),
            ("|= np.logical_not(few)", "= True"),
            ("n_devices - k_extra < _FEW", "n_devices < _FEW"),
        ),
    ),
    Module(
        "pipeline/ledger.py",
        ("pipeline/test_ledger.py", "pipeline/records/test_flow.py"),
        (
            ("self.n_received += n", "self.n_received = n"),
            ("self._n_of[outcome] += n", "self._n_of[outcome] = n"),
            ("self._n_of += np.bincount", "self._n_of = np.bincount"),
            (
                "now, before = self._all(), self._booked\n        self._booked = now",
                "now, before = self._all(), self._booked",
            ),
            ("label: n - before.get(label, 0)", "label: n"),
            ("self.receive(stored.get(RECEIVED, 0))", "pass"),
        ),
    ),
    Module(
        "pipeline/records/flow.py",
        ("pipeline/records/test_flow.py", "pipeline/records/test_stages.py"),
        (
            ("> self._max_unpublished", ">= self._max_unpublished"),
            ("> self._max_unpublished", "> self._max_unpublished + 1"),
            ("if len(self._now) >= MOST_RECENT:", "if len(self._now) >= 10**9:"),
            ("if len(self._now) >= MOST_RECENT:", "if len(self._now) >= MOST_RECENT // 3:"),
            ("self._before, self._now = self._now, set()", "self._now = set()"),
            ("np.stack([topic, payload]", "np.stack([payload, payload]"),
            ("        state.close(due.joined, closing)\n", ""),
            ("forgotten_before(due.window, length_s", "forgotten_before(10**9, length_s"),
            (".divided(messages, repeated=repeated)", ".divided(messages)"),
            ("parts.keys() | {number for number, _ in others}", "parts.keys()"),
            (
                "        with self._store.at_once():\n            for due, closing in closed:",
                "        if True:\n            for due, closing in closed:",
            ),
        ),
    ),
    Module(
        "pipeline/records/stages.py",
        ("pipeline/records/test_stages.py",),
        (
            ("and ahead[0].stream not in streams", ""),
            ("if share_s >= LEAST_SEARCH_S else 0.0", ""),
            ("behind[due.stream] -= 1", "pass"),
            ("min(max(1, len(every) // 10), AT_ONCE)", "1"),
            ("min(budget_s, share_s)", "budget_s"),
            ("while ahead and not drain.is_set():", "while ahead:"),
        ),
    ),
    Module(
        "pipeline/records/anonymize_window.py",
        ("pipeline/records/test_flow.py", "pipeline/records/test_kaca_model.py"),
        (
            ("outcome[outcome == Outcome.PUBLISHED] = reason", "pass"),
            ("outcome[~is_complete] = Outcome.SUPPRESSED__INCOMPLETE", "pass"),
            ("return outcome, chosen[own]", "return outcome, chosen"),
        ),
    ),
    Module(
        "pipeline/records/window_classes.py",
        ("pipeline/records/test_flow.py", "pipeline/records/test_kaca_model.py"),
        (
            ("np.isin(class_of, [*broken, *rejected])", "np.isin(class_of, [*rejected])"),
            ("np.isin(class_of, [*broken, *rejected])", "np.isin(class_of, [*broken])"),
            ("n_classes) >= stream.promise.k\n", "n_classes) >= 1\n"),
            ("portion.model.joined(rows, of_rows)[: records.n]", "of_rows[: records.n]"),
            ("persons = np.unique(np.column_stack([c, person[has]]), axis=0)[:, 0]", "persons = c"),
        ),
    ),
    Module(
        "algorithms/records/cohorts.py",
        ("algorithms/records/test_cohorts.py",),
        (
            ("qi[self.withheld[:, a], j] = schema.qis[j].missing", "pass"),
            ("added[:, j] = codes[np.arange(n) % len(codes)]", "pass"),
            ("n = max((len(codes) for codes", "n = min((len(codes) for codes"),
            ("known == NO_COMPANY, first_company", "known == known, first_company"),
        ),
    ),
    Module(
        "pipeline/records/silence.py",
        ("pipeline/records/test_flow.py",),
        (
            ("max(stream.promise.k, _SILENT_SHARE * n)", "_SILENT_SHARE * n"),
            ("cells[:, column] = attributes[column].missing", "pass"),
        ),
    ),
    Module(
        "pipeline/records/history.py",
        ("pipeline/records/test_windows_together.py",),
        (
            ("kept |= cohorts.is_new", "pass"),
            ("if cohorts is not None and published.any():", "if cohorts is not None:"),
        ),
    ),
    Module(
        "pipeline/records/cells_model.py",
        ("pipeline/records/test_cells_model.py",),
        (("np.append(number, np.int32(SUPPRESSED))[class_of]", "class_of"),),
    ),
    Module(
        "pipeline/records/queries.py",
        ("web/test_toll.py",),
        (
            ("elif k < least:", "elif False:"),
            ("max([self.k, *(release.k for release in releases)])", "self.k"),
            ("if len(classes) != release.n_classes:", "if False:"),
        ),
    ),
    Module(
        "transport/packets.py",
        ("transport/test_packets.py",),
        (
            ("stream[body + 2] < 0x80", "stream[body + 2] <= 0x80"),
            ("stream[body + 2] < 0x80", "stream[body + 2] < 0x7F"),
            (
                '2:\n                raise MalformedPacketError("a PUBACK',
                '1:\n                raise MalformedPacketError("a PUBACK',
            ),
            (
                '2:\n                raise MalformedPacketError("a PUBREL',
                '1:\n                raise MalformedPacketError("a PUBREL',
            ),
            ("if end - body > self._limit_bytes:", "if end - body >= self._limit_bytes:"),
            ("    if qos > 2:\n", "    if qos > 3:\n"),
            ("if after > end or after_topic == at + 2:", "if after > end:"),
            ("if after > end or after_topic == at + 2:", "if after_topic == at + 2:"),
            ("    if qos and not mid:\n", "    if not mid:\n"),
            ("if end > len(stream):", "if end >= len(stream):"),
            ("while length >= 0x80:", "while length > 0x80:"),
        ),
    ),
    Module(
        "pipeline/positions/tick/zone_shares.py",
        ("pipeline/positions/tick/test_zone_shares.py",),
        (
            ("if own + 1 >= self._most:", "if own >= self._most:"),
            ("if own + 1 >= self._most:", "if True:"),
            ("            self.leave(left)\n", "            pass\n"),
            ("self._with[self._most]))", "self._of))"),
            ("(before == self._most and before not in self._with)", "before == self._most"),
            ("        self._n -= 1\n", "        pass\n"),
            ("if self._n >= self._n_places:", "if self._n > self._n_places:"),
        ),
    ),
    Module(
        "settings/reload.py",
        ("settings/test_reload.py",),
        (
            ("        return _FIXED\n", '        return ""\n'),
            ("if mark.weakens(old, new, key):", "if False:"),
            ('return "" if key in new.model_fields_set else _MISSING', 'return ""'),
            ("    if refused:\n", "    if len(refused) > 1:\n"),
            (
                "                refused.setdefault(_FIXED, []).append(name)\n",
                "                pass\n",
            ),
        ),
    ),
    Module(
        "transport/quarantine.py",
        ("transport/test_poison.py",),
        (
            ("return n_ends >= MOST_ENDS", "return n_ends > MOST_ENDS"),
            ("return n_ends >= MOST_ENDS", "return n_ends >= MOST_ENDS - 1"),
            ("if n_ends == MOST_ENDS:", "if n_ends >= MOST_ENDS:"),
            ("if len(self._n_ends) > _MOST_KNOWN:", "if False:"),
            ("self._n_ends.pop(name, 0)", "self._n_ends.get(name, 0)"),
        ),
    ),
    Module(
        "transport/oversized.py",
        ("transport/test_poison.py",),
        (
            ("_PREFIX_BYTES * has_identifier", "_PREFIX_BYTES"),
            ("self._hash.update(own[at:])", "pass"),
            ("        self._n_left -= len(own)\n", "        self._n_left = 0\n"),
            ("return not self._n_left", "return self._n_left <= 1"),
        ),
    ),
    Module(
        "transport/exactly_once.py",
        ("transport/test_exactly_once.py",),
        (
            ("if held is not None and held.digest == digest:", "if held is not None:"),
            ("return None if held.receipt else 0", "return None"),
            ("return None if held.receipt else 0", "return 0"),
            ("            held.is_here = False\n", "            pass\n"),
            ("            held.is_here = True\n", "            pass\n"),
            ("                if self._held[mid].is_here:\n", "                if True:\n"),
            ("            del self._held[mid]\n", "            pass\n"),
            ("held = self._held.pop(mid, None)", "held = self._held.get(mid)"),
            ("        self._held.clear()\n", ""),
        ),
    ),
    Module(
        "store/record_store.py",
        ("store",),
        (
            ("SET published_at = ? WHERE number = ?", "SET published_at = ? WHERE number >= ?"),
            ("WHERE published_at IS NULL ORDER BY number LIMIT ?", "ORDER BY number LIMIT ?"),
            (
                "DELETE FROM vehicles WHERE stream = ? AND seen < ?",
                "DELETE FROM vehicles WHERE stream = ? AND seen <= ?",
            ),
            ("            purge(self._db, before=self._purge_before)\n", ""),
            (
                "                self._is_within = False\n            self._purge()\n",
                "                self._is_within = False\n",
            ),
            ("            self._is_within = True\n", ""),
            (
                "        if not self._is_within:\n            with self._reading",
                "        if True:\n            with self._reading",
            ),
            ("DO UPDATE SET n = n + excluded.n", "DO UPDATE SET n = excluded.n"),
            ("        self._account(of, {label_of(Outcome.SUPPRESSED__REDECLARED): n})\n", ""),
            ("self._log_has_erased_data = not erase_log(self._db)", "pass"),
            ("self.free_bytes < self._min_free_bytes", "self.free_bytes < 0"),
        ),
    ),
    Module(
        "store/sqlite_file.py",
        ("store",),
        (
            ("closed_at < ?)", "closed_at <= ?)"),
            ('connection.execute("ROLLBACK")', 'connection.execute("COMMIT")'),
            ('"synchronous=FULL",', '"synchronous=NORMAL",'),
            ('"journal_mode=WAL",', ""),
            ('"secure_delete=ON",', '"secure_delete=OFF",'),
            ("    erase_log(connection)  # after", "    # after"),
            ("wal_checkpoint(TRUNCATE)", "wal_checkpoint(PASSIVE)"),
            ("fcntl.LOCK_EX | fcntl.LOCK_NB", "fcntl.LOCK_SH | fcntl.LOCK_NB"),
            ("            os.fchmod(made, _MODE)", "            os.fstat(made)"),
            ('    connection.execute("DROP TABLE recent")\n', ""),
        ),
    ),
    Module(
        "store/parts_log.py",
        ("store",),
        (
            ("self._db.execute(f'DELETE FROM", "str(f'DELETE FROM"),
            ("self._db.execute(f'DROP TABLE", "str(f'DROP TABLE"),
            ("            if parts:\n", "            if True:\n"),
            ("if part.number not in replaced]", "]"),
            ("n = len(self.read(stream))", "n = 0"),
        ),
    ),
    Module(
        "transport/backlog.py",
        ("transport/test_backlog.py",),
        (
            ("-inf if self._keeps_session else inf)", "inf)"),
            ("- min(self._known_s.values())", "- max(self._known_s.values())"),
            ("return self.age_s > self._max_s", "return self.age_s >= self._max_s"),
            ("if not self._keeps_session:", "if True:"),
            ("if len(self._awaited) > _MAX_AWAITED:", "if False:"),
            ("if of != qos or at_s > sent_s", "if at_s > sent_s"),
            ("if of != qos or at_s > sent_s", "if True"),
            ("if packed.stream[begin:end] == topic:", "if True:"),
            ("row >= 0 and at < bounds[row, 3]", "row >= 0"),
            ("receipts[receipts > 0].tolist()", "receipts.tolist()"),
        ),
    ),
    Module(
        "algorithms/positions/safe_counts.py",
        ("algorithms/positions/test_safe_counts.py",),
        (
            ("if enough[left] and enough[right]:", "if enough[left] or enough[right]:"),
            ("if not enough[1]:", "if False:"),
            (
                "n_devices=thresholds.levels([(_RUN, *span) for span in spans], size, k)",
                "n_devices=size",
            ),
            ("n_flow=thresholds.levels(keys, n_pair[listed], k)", "n_flow=n_pair[listed]"),
            (
                "thresholds.passes([(_LISTED, *flow) for flow in flows], n, k)",
                "thresholds.passes([(_LISTED, *flow) for flow in flows], n, k + 1)",
            ),
            ("enough |= rest == 0", "enough |= rest <= 1"),
            (
                "thresholds.passes([(_REST, *span) for span in spans], rest, k)",
                "thresholds.passes([(_REST, *span) for span in spans], rest, k - 1)",
            ),
            ("np.argmin(n[of_run])", "np.argmax(n[of_run])"),
            ("np.where(told,", "np.where(n > 0,"),
        ),
    ),
    Module(
        "algorithms/positions/secret_thresholds.py",
        ("algorithms/positions/test_secret_thresholds.py",),
        (
            ("told: BoolArray = n >= k", "told: BoolArray = n >= k - 1"),
            ("n[near] >= k + self", "n[near] >= self"),
            ("n < 2 * k - 1", "n < k"),
            ("(n - offset) // k", "(n + offset) // k"),
            ("else 2 * k - 2", "else k - 1"),
            ("salt = interval", "salt = (0)"),
        ),
    ),
    Module(
        "algorithms/positions/spanning_forest.py",
        ("algorithms/positions/cloaks/test_session.py",),
        (
            ("if min(left, right) >= least:", "if min(left, right) > least:"),
            ("elif left + right < 2 * least:", "elif left + right <= 2 * least:"),
            ("elif left < right:", "elif left > right:"),
            ("while (follows != follows[follows]).any():", "while False:"),
        ),
    ),
    Module(
        "algorithms/positions/districts.py",
        ("algorithms/positions/test_district_operator.py",),
        (
            ("len(part) >= 2 * least_nodes", "len(part) > 2 * least_nodes"),
            ("(size < least_nodes)", "(size < least_nodes - 1)"),
            (
                "off = np.abs(share / share[-1] - 0.5)",
                "off = np.abs(np.linspace(0, 1, n + 1) - 0.5)",
            ),
            ("at = near[np.lexsort((off[near], n_crossed[near]))[0]]", "at = near[0]"),
            ("(of_node[tail] == district) & ", ""),
            ("if network.load_at is not None:", "if False:"),
        ),
    ),
    Module(
        "algorithms/positions/district.py",
        (
            "algorithms/positions/test_district_operator.py",
            "cluster/positions/test_stages_of_a_cluster.py",
        ),
        (
            ("self._forget(result.freed)", "result.freed"),
            ("np.where(self._keys[at] == key", "np.where(self._keys[at] >= key"),
            ("kept = self._handle_of[self._slot_of] != _FREE", "kept = self._slot_of >= 0"),
            ("stand_in=self._number_of[rows.left_from[known]]", "stand_in=None"),
            ("result.release.at_nodes(self._nodes)", "result.release"),
        ),
    ),
    Module(
        "algorithms/positions/district_routing.py",
        (
            "algorithms/positions/test_district_operator.py",
            "cluster/positions/test_stages_of_a_cluster.py",
        ),
        (
            ("np.where(home != before, before, NOWHERE)", "np.full(len(slot), NOWHERE)"),
            ("np.where(elsewhere, np.int32(NOWHERE), both.left_from)", "both.left_from"),
            ("home = np.where(on_graph,", "home = np.where(on_graph | True,"),
            ("_replace(node=gone, left_from=gone)", "_replace(left_from=gone)"),
        ),
    ),
    Module(
        "algorithms/positions/district_operator.py",
        (
            "algorithms/positions/test_district_operator.py",
            "cluster/positions/test_stages_of_a_cluster.py",
        ),
        (
            ("here = its_rows.node >= 0", "here = its_rows.node >= -1"),
            ("self._router.homes(tick.handle) == part.number", "tick.handle >= 0"),
            ("self._router.homes(tick.ended) == part.number", "tick.ended >= 0"),
            (
                "freed = self.density.expire(self._absent_before)",
                "freed = self.density.expire(now - self.pace.longest_ttl_s)",
            ),
        ),
    ),
    Module(
        "cluster/positions/source_stage.py",
        ("cluster/positions/test_stages_of_a_cluster.py",),
        (
            (
                "found = [slot[home_of[slot] == lane + 1] for lane, slot in known]",
                "found = [slot for _, slot in known]",
            ),
            ("home_of[freed] = 0", "pass"),
        ),
    ),
    Module(
        "cluster/positions/device_routing.py",
        ("cluster/positions/test_device_routing.py",),
        (
            ("is_mobile and self._are_named_by_payloads", "False"),
            ("treatment == Treatment.CLOAKED or", "False or"),
        ),
    ),
    Module(
        "cluster/positions/source_windows.py",
        (
            "cluster/positions/test_source_windows.py",
            "cluster/positions/test_stage_outputs.py",
        ),
        (
            ("if all(said):", "if any(said):"),
            ("window <= self._newest[source] or", ""),
            ("max(self._newest) - self._most_waiting, ", ""),
            ("pieces if window == before else []", "pieces"),
        ),
    ),
    Module(
        "cluster/positions/stage_outputs.py",
        ("cluster/positions/test_stage_outputs.py",),
        (
            ("if meaning != output.meaning(output.settings):", "if False:"),
            ("kind = LAST_OF_SLOW if is_last and output.is_slow else STATED", "kind = STATED"),
            ("or source not in range(self._n_sources)", ""),
            ("self._publisher_of[name].restore(publisher)", "pass"),
            ("self._windows_of[name].restore(windows)", "pass"),
        ),
    ),
    Module(
        "outputs/output.py",
        ("cluster/positions/test_stage_outputs.py", "outputs/test_street_watch.py"),
        (
            ("if all(each is not None for each in contents):", "if True:"),
            ("self.n_windows[made.why] += 1", "pass"),
        ),
    ),
    Module(
        "outputs/streets/__init__.py",
        ("outputs/test_street_watch.py", "outputs/test_outputs.py"),
        (
            ("k=max(self._k, *(each.k for each in contents))", "k=self._k"),
            ("except GuaranteeError:", "except KeyError:"),
        ),
    ),
    Module(
        "outputs/windows.py",
        ("outputs/test_windows.py",),
        (
            ("self.next <= after:", "self.next:"),
            ("min(after, first + _MOST_WINDOWS)", "after"),
            ("self._largest.end(each, k)", "k"),
            ("self.next = max(first, after)", "self.next = after"),
        ),
    ),
    Module(
        "algorithms/positions/live_passages.py",
        ("algorithms/positions/test_live_passages.py",),
        (
            ("np.lexsort((found.ts, turn, found.device))", "np.lexsort((found.ts, found.device))"),
            ('self._waiting = [_Reports(*each) for each in state["waiting"]]', "pass"),
            ("self._crowded |= set(np.unique(sums.key[0]).tolist())", "pass"),
        ),
    ),
    Module(
        "outputs/counts/trip_durations.py",
        ("outputs/test_trip_durations.py",),
        (
            ("self._begin(interval * self._every_s)", "pass"),
            ("begins_s=begins_s, keeps", "begins_s=-math.inf, keeps"),
            ("end_s - self._rule.gap_s", "end_s"),
            ("median(seconds[each])", "max(seconds[each])"),
            ("trip.origin >= 0 and trip.destination >= 0", "trip.origin >= 0"),
            ("self._seconds.pop(key, None)", "pass"),
            ("self._trips.forget(row)", "pass"),
            ("LiveTrips.restored(self._rule, trips, keeps_routes=False)", "self._trips"),
        ),
    ),
    Module(
        "outputs/counts/__init__.py",
        ("outputs/test_outputs.py",),
        (
            ("if all(map(len, contents)) else None", "if True else None"),
            ("self._held.restore(held)", "pass"),
        ),
    ),
    Module(
        "cluster/positions/stage_readings.py",
        ("cluster/positions/test_stages_of_a_cluster.py",),
        (("home == district, moved[left == district]", "home == district, moved[:0]"),),
    ),
    Module(
        "cluster/positions/district_lane.py",
        (
            "cluster/positions/test_district_lane.py",
            "cluster/positions/test_stages_of_a_cluster.py",
        ),
        (
            (
                "heard is not None and batch.tick <= heard",
                "heard is not None and batch.tick < heard",
            ),
            ("batch.tick <= self.last:", "batch.tick < self.last:"),
            ("heard = all(each", "heard = any(each"),
            ("- self._since_of[tick] <= self._wait_s", "- self._since_of[tick] < self._wait_s"),
            ("batches = self._late + self._batches.pop(tick)", "batches = self._batches.pop(tick)"),
            ("self.last, self._late = tick, []", "self.last = tick"),
            ("first = max((first", "first = min((first"),
        ),
    ),
    Module(
        "algorithms/windows.py",
        ("algorithms/test_windows.py",),
        (
            ("max(slowest, self._long_known) - self.rule", "slowest - self.rule"),
            ("if at_s - h <= self.rule.silence_s", "if at_s - h <= inf"),
            ("at_s - self._passed[0][0] > self", "at_s - self._passed[0][0] >= self"),
            ("if self._closed_by(newest) > self._closed_by(before)", "if newest > before"),
            ("        self._note_newest(at_s)\n", ""),
            ('self._long_known = state["long_known"]', "pass"),
            ('self._passed = deque((at_s, ts) for at_s, ts in state["passed"])', "pass"),
            ("if ts > now + self.rule.max_ahead_s:", "if ts > now + inf:"),
            ("self._reached(source, min(ts, now), at_s)", "self._reached(source, ts, at_s)"),
            (
                "if len(self._leaps) < self.rule.n_to_leap",
                "if len(self._leaps) + 1 < self.rule.n_to_leap",
            ),
            ("if (window > far) == leaps", ""),
            ("self._leaps.pop(vehicle, None)", "pass"),
        ),
    ),
    Module(
        "web/connections.py",
        ("web/test_middleware.py", "web/test_connections.py"),
        (
            ("- self._n_unread() > self._most_bytes", "- self._n_unread() > 2**62"),
            ("- self._n_unread() > self._most_bytes", "- self._n_unread() >= self._most_bytes"),
            ("self.status = HTTPStatus(error.error_status_hint)", "pass"),
            ("            *self.server_state.default_headers,\n", ""),
            ("        self.transport.write_eof()\n", "        self.transport.close()\n"),
        ),
    ),
    Module(
        "web/middleware.py",
        ("web/test_middleware.py", "web/test_server.py", "web/test_connections.py"),
        (
            ("self._limit.count(address)", "pass"),
            ("wait_s = self._limit.wait_s(address)", "wait_s = 0.0"),
            ("== HTTPStatus.UNAUTHORIZED", ">= HTTPStatus.OK"),
            ('or b"authorization" not in dict(scope["headers"])', ""),
            ("address = address_of(scope)", 'address = ""'),
            ('"X-Content-Type-Options": "nosniff",', ""),
        ),
    ),
    Module(
        "web/auth.py",
        ("web/test_middleware.py", "web/test_toll.py"),
        (
            ("_PREFIX_BITS = 64", "_PREFIX_BITS = 128"),
            ("address.ipv4_mapped or ", ""),
            (
                "self._left[client] = (left - 1, now)",
                "self._left[client] = (max(0, left - 1), now)",
            ),
            ("                self.count(client)\n", "                pass\n"),
            ("self._left.popitem(last=False)", "pass"),
        ),
    ),
    Module(
        "app/live_map/frames.py",
        ("app/live_map/test_frames.py",),
        (
            ("self._viewers_of[address] >= MAX", "self._viewers_of[address] > MAX"),
            ("if self.is_full or self.has_enough(address) or", "if self.is_full or"),
            ("        self._viewers_of[address] -= 1\n", ""),
            ("        self._viewers_of = +self._viewers_of ", "        pass "),
        ),
    ),
    Module(
        "app/gateway/kept_session.py",
        ("app/gateway/test_kept_session.py",),
        (
            ("self.exists = known == self._name", "self.exists = False"),
            ("self.exists = known == self._name", "self.exists = bool(known)"),
            ("> SHOWN_S", ">= SHOWN_S"),
            ("not self._lost_s or", ""),
            ("        elif lost:\n", "        else:\n"),
            ("self._lost_s = self._wall()", "pass"),
            ("            self._log.error(\n", "            self._log.info(\n"),
            ("        self._lost_s = 0.0\n", "        pass\n"),
        ),
    ),
    Module(
        "app/gateway/recorder.py",
        ("app/gateway/test_kept_session.py",),
        (
            ("            has_session=self.session.exists,\n", ""),
            ("lost = n_lost > self._n_sessions_lost", "lost = False"),
            ("await self._context.in_store(self.store.keep_session, self.session.stored)", "pass"),
        ),
    ),
    Module(
        "child_processes.py",
        ("test_child_processes.py",),
        (
            ('[sys.executable, "-I", "-S", __file__, *command]', "list(command)"),
            ("    if parent is not None:\n", "    if parent is None:\n"),
            ("    os.dup2(nothing, 1)\n", "    pass\n"),
            ("for number in (signal.SIGTERM, signal.SIGKILL):", "for number in (signal.SIGTERM,):"),
            ("for number in (signal.SIGTERM, signal.SIGKILL):", "for number in ():"),
            ("[0] and not os.read(0, 4096)", "[0] and os.read(0, 4096)"),
            (
                "    while os.getppid() == process:\n        if select",
                "    while True:\n        if select",
            ),
        ),
    ),
    Module(
        "algorithms/positions/operator.py",
        (
            "algorithms/positions/test_operator.py",
            "algorithms/positions/cloaks/test_snapshot.py",
            "algorithms/positions/cloaks/test_session.py",
        ),
        (
            ("self._cloak.retire(release.only(~holds).member)", "pass"),
            ("retire(release.only(~holds).member)", "retire(release.member)"),
            ("            release = release.only(holds)\n", ""),
            ("cloaked_outcome[refused] = Outcome.SUPPRESSED__UNVERIFIED", "pass"),
            ("cloaked_outcome[inside] = Outcome.PUBLISHED", "pass"),
            ("np.where(on_graph, density.node_of, self.place_of)", "self.place_of.copy()"),
            ("holds &= self._transcripts.", "self._transcripts."),
            (
                "np.diff(release.first_member_of) >= release.k",
                "np.diff(release.first_member_of) >= release.k - 1",
            ),
            (
                "np.diff(release.first_member_of) >= release.k",
                "np.diff(release.first_member_of) > release.k",
            ),
        ),
    ),
    Module(
        "algorithms/positions/operator.py",
        ("algorithms/positions/test_changing_ids.py",),
        (
            ("place_of[~density.is_counted] = -1", "pass"),
            ("holds &= groups_of_vehicles(", "groups_of_vehicles("),
        ),
    ),
    Module(
        "algorithms/positions/cloaks/snapshot.py",
        ("algorithms/positions/cloaks/test_snapshot.py",),
        (
            ("company = self._company.beyond(self._k_extra)", "company = self._company"),
            (" + np.int32(self._k_extra)", ""),
            ("k=(groups.k - self._k_extra)", "k=groups.k"),
            ("        self._rule = rule\n        self._k_extra = k_extra\n\n", "        pass\n\n"),
            ("        good &= is_large[density", "        is_large[density"),
            ("release.only(reported & good)", "release.only(good)"),
        ),
    ),
    Module(
        "algorithms/positions/demands.py",
        ("algorithms/positions/test_demands.py",),
        (
            ("or self._sum() + share > _MOST_SHARED", "or False"),
            ("or (of_publisher and of_publisher", "or (False and of_publisher"),
            ("max(found.demand.k, demand.k)", "demand.k"),
            ("max(found.demand.road_m, demand.road_m)", "demand.road_m"),
            ("if not each.wanted or author not in self.stated:", "if author not in self.stated:"),
            ("            if not self._is_shared(each, n_present):", "            if False:"),
            ("(n_present - 1) >= self._shared_by - 1", "(n_present - 1) >= 0"),
            (" | (key == by)", ""),
        ),
    ),
    Module(
        "algorithms/positions/cloaks/session.py",
        ("algorithms/positions/test_demands.py",),
        (("joining.least_level[row], stands)", "0 * joining.least_level[row], stands)"),),
    ),
    Module(
        "algorithms/positions/cloaks/joining.py",
        ("algorithms/positions/test_demands.py",),
        (
            ("np.maximum(k, shared.k), k)", "k, k)"),
            ("np.maximum(need, more), need)", "need, need)"),
            ("own.k, level < len(self.levels.at))", "own.k, level >= 0)"),
        ),
    ),
    Module(
        "pipeline/positions/out/encoding.py",
        ("pipeline/positions/out/test_encoding.py",),
        (
            (
                "order = sorted(range(row.first, row.last), key=names.__getitem__)",
                "order = list(range(row.first, row.last))",
            ),
            ("sorted(range(len(payloads)), key=payloads.__getitem__)", "range(len(payloads))"),
            ("self._stamp(row, members)", "self._stamp(row, names[row.first : row.last])"),
            ("sorted(names[row.first : row.last])", "names[row.first : row.last]"),
            ("[own[i] for i in order]", "own[row.first : row.last]"),
            ("                        if name in values.groups[g]\n", ""),
            ("key=keys[i]) for i in order", "key=keys[j]) for j, i in enumerate(order)"),
            ("place_of[message_of]", "message_of"),
            ("round_up(until, step_s)", "until"),
            ("round(round_time(time, step_s), 3)", "round(time, 3)"),
            ("np.ceil(ts / step_s)", "np.floor(ts / step_s)"),
        ),
    ),
    Module(
        "outputs/trips/trip_windows.py",
        ("outputs/test_trips.py",),
        (
            (" if i not in broken]", "]"),
            ("unkept(trips, classes, k)", "unkept(trips, classes, 1)"),
            ("len(classes) - len(broken)", "len(classes)"),
            ("[each for each in ended if each[0] not in gone]", "list(ended)"),
            (" if each[0] not in refused]", "]"),
            ("self._trips.forget(row)", "pass"),
            ("        self._rows.drop(row)\n", ""),
            ("        self._rows.drop(gone)\n", ""),
            ("self._trips, self._ended = None, {}", "self._trips = None"),
            ("self._trips, self._ended = None, {}", "self._ended = {}"),
            ("and window >= self._windows.next:", "or True:"),
            ("if trip.origin >= 0 and", "if"),
            (" and trip.destination >= 0", ""),
            (" and trip.start_s >= begins_s", ""),
            ("return arcs[outside]", "return arcs"),
        ),
    ),
    Module(
        "algorithms/records/criteria.py",
        ("algorithms/records/test_margin.py",),
        (
            ('rule["margin"], n - rule["margin"]\n', 'rule["margin"], n\n'),
            ("times[code] == count <= leaving and", "times[code] == count < leaving and"),
            ("times_of == count <= leaving:", "times_of == count < leaving:"),
            ("rest = next_rarest - leaving", "rest = next_rarest"),
            ("margin - n_low, -1, missing", "0, -1, missing"),
            ("max(below - margin, 0)", "below"),
            ("times[v] / n_left - usual", "times[v] / n - usual"),
            ('rule["left"] > 0 and _values', "False and _values"),
        ),
    ),
    Module(
        "algorithms/records/tally.py",
        ("algorithms/records/test_margin.py",),
        (("return _keeps_margins(tally) and (", "return ("),),
    ),
    Module(
        "algorithms/records/content_verification.py",
        ("algorithms/records/test_margin.py",),
        (
            ('content["count"] != k', "False"),
            ("all(len(values) == k for", "all(True for"),
            ('not promise.k <= total["n"] <= k', 'not promise.k <= total["n"]'),
            ('not promise.k <= total["n"] <= k', 'not total["n"] <= k'),
            ("bisect_right(edges, value)", "value"),
            ("numbers = sorted({", "numbers = list({"),
            ("fails(held, bound, promise.margin)", "fails(held, bound, 0)"),
        ),
    ),
    Module(
        "pipeline/records/own_records.py",
        ("pipeline/records/test_one_weight.py",),
        (
            ("drawn % int(times[p])", "0"),
            ("key=secret, ", ""),
            ("[:KEY_BYTES]", ""),
        ),
    ),
    Module(
        "audit/mathematics/heavy_persons.py",
        ("audit/test_table_people.py",),
        (
            ("times[who] > 1", "times[who] > 2"),
            ("there & ~is_heavy], who", "there], who"),
        ),
    ),
    Module(
        "audit/mathematics/repeated_columns.py",
        ("audit/mathematics/test_repeated_columns.py",),
        (
            ("own = fold == each", "own = fold != each"),
            (
                "last = np.flatnonzero(np.diff(of, append=-1))",
                "last = np.flatnonzero(np.diff(of, prepend=-1))",
            ),
            ("nearest = np.minimum(*distance)", "nearest = distance[0]"),
            ("self.success <= self.shuffled", "self.success < 0"),
            ("or self.share_below <= _SOME", ""),
            ("apart = ceiling > blind", "apart = ceiling >= blind"),
        ),
    ),
    Module(
        "algorithms/records/class_tree.py",
        (
            "algorithms/records/test_opposite_classes.py",
            "algorithms/records/test_blind_classes.py",
        ),
        (
            ("clear(of.counts)", "pass"),
            ("of.turn[0] += 1", "pass"),
            ("return n_persons >= k and holds(", "return holds("),
            (" and holds(n_persons, of.turn[0], of.counts)", ""),
            ("n_persons += add(", "n_persons = add("),
            (
                "return ClassTree(problem.k, problem.n, node, of, keeps[order])",
                "return ClassTree(problem.k, problem.n, node, of, keeps)",
            ),
        ),
    ),
    Module(
        "algorithms/records/opposite_classes.py",
        ("algorithms/records/test_opposite_classes.py",),
        (
            ("if len(few) > len(many):", "if len(few) < len(many):"),
            ("(i + 1) * len(many) // len(few)", "i * len(many) // len(few) + 1"),
            ("n_persons = count_in(few[i], of)", "n_persons = 0"),
            ("group[few[i]] = few[i]", "pass"),
            ("if group[c] == SUPPRESSED:", "if True:"),
            ("np.where(group == SUPPRESSED, number, group)", "group"),
            ("width *= 2", "width *= 4"),
        ),
    ),
    Module(
        "algorithms/records/blind_classes.py",
        (
            "algorithms/records/test_blind_classes.py",
            "algorithms/records/test_opposite_classes.py",
        ),
        (
            ('if not (bounded(asked) | (asked["distinct"] > 1)).any():', "if True:"),
            ("rule=problem.rule[:n_seen],", "rule=problem.rule,"),
            ("(whole[left] and whole[right]) or _joins(", "_joins("),
            ("if not (keeps[c] and keeps[c + width]):", "if not keeps[c]:"),
            ("task.former.seed", "0"),
            ("return min((found, other), key", "return max((found, other), key"),
        ),
    ),
    Module(
        "algorithms/positions/cloaks/lasting_groups.py",
        ("algorithms/positions/cloaks/test_first_groups.py",),
        (
            ("while step_s > max(waited_s, 1.0):", "while step_s > 1.0:"),
            ("return float(self.ends(now, step_s)[0])", "return now + step_s"),
        ),
    ),
    Module(
        "algorithms/positions/pace.py",
        (
            "algorithms/positions/cloaks/test_first_groups.py",
            "algorithms/positions/test_pace.py",
        ),
        (
            (
                "return max(self._least_epoch_s, self._known_s)",
                "return max(self._least_epoch_s, self._interval_s)",
            ),
            ("if 2 * len(gap) < n_present:", "if len(gap) < n_present:"),
            (
                "            self._interval_s = STEPS_S[-1]\n            return",
                "            return",
            ),
        ),
    ),
    Module(
        "app/gateway/refused_outputs.py",
        ("app/gateway/test_refused_outputs.py",),
        (("min(self._n_unanswered + 1, _MOST_DOUBLED)", "0"),),
    ),
)
