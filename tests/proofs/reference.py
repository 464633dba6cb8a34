"""What uphold should do, said once more and more simply: the reference of T03.

Plain dicts, no versions, no events, no asyncio. Orders leave marks on slots; `settle` acts until
nothing is left to do; a start or a stop takes no time, except that a deaf slot is killed when its
grace is over. Written from the promises, not from the planner.
"""

from __future__ import annotations

from uphold.core.specs import Need, RestartPolicy, WorkerSpec

KEYS = ("autostart", "enabled", "quarantined", "replicas")
"""The keys of the file that an order overrides until the file changes them."""
SAYS = {
    "start": {"autostart": True},
    "restart": {"autostart": True},
    "stop": {"autostart": False},
    "pause": {"held": True},
    "resume": {"held": False},
    "enable": {"enabled": True},
    "disable": {"enabled": False},
    "quarantine": {"quarantined": True},
    "approve": {"quarantined": False},
    "reset": {},
}
FRESH = {
    "state": "stopped",
    "generation": 0,
    "failures": 0,
    "restarts": 0,
    "born": 0.0,
    "since": 0.0,
    "terms": None,
    "well": True,
    "ran": False,
    "hopeless": False,
    "again": False,
    "renew": False,
    "pardon": False,
}
ALIVE = ("running", "stopping")


class Reference:
    """The declared workers, what people ordered, and what each slot must be doing."""

    def __init__(self):
        self.file = {}
        self.ordered = {}
        self.slots = {}
        self.paused = False
        self.now = 0.0
        self.deaf = set()
        self.unlucky = {}
        self._stood = {}

    def admin(self, name):
        if self.says(name, "quarantined"):
            return "quarantined"
        if self.ordered.get(name, {}).get("held"):
            return "paused"
        return "enabled" if self.says(name, "enabled") else "disabled"

    def says(self, name, key):
        return self.ordered.get(name, {}).get(key, getattr(self.file[name], key))

    def wanted(self, name):
        return name in self.file and self.admin(name) == "enabled" and self.says(name, "autostart")

    def declared(self, name):
        if name not in self.file:
            return []
        count = self.says(name, "replicas")
        return [name if number == 1 else f"{name}.{number}" for number in range(1, count + 1)]

    def order(self, verb, name, number=0):
        """Give the exit code an order must come to."""
        if name not in self.file:
            return 5
        if verb in ("start", "restart") and self.admin(name) != "enabled":
            return 4
        if verb == "scale" and not 0 <= number <= 1000:
            return 2
        lifts = verb in ("start", "resume") or not self.wanted(name)
        says = {"replicas": number} if verb == "scale" else SAYS[verb]
        self.ordered.setdefault(name, {}).update(says)
        for slot, each in self.slots.items():
            if owner(slot) == name:
                self._mark(verb, each, lifts=lifts)
        return 0

    def _mark(self, verb, each, *, lifts):
        if verb == "restart":
            each["renew"] = True
        ended = each["state"] not in ALIVE
        if verb in ("start", "resume", "enable", "approve") and ended and lifts:
            each["again"] = True
        if verb == "reset":
            each["pardon"] = True

    def declare(self, specs):
        """Let the file say this: what it changes is no longer overridden."""
        after = {spec.name: spec for spec in specs}
        for name, before in self.file.items():
            if name not in after:
                self.ordered.pop(name, None)
                for slot in [slot for slot in self.slots if owner(slot) == name]:
                    self.slots[slot].update(again=False, renew=False, pardon=False)
                continue
            for key in KEYS:
                if getattr(before, key) != getattr(after[name], key):
                    self.ordered.get(name, {}).pop(key, None)
        self.file = after

    def ends(self, slot, code):
        """Let the process of a slot end by itself; None: nobody saw how."""
        each = self.slots[slot]
        terms = each["terms"]
        each.update(well=code == 0, ran=True, since=self.now, pardon=False)
        if not comes_back(each, terms):
            each["state"] = "exited"
        else:
            stable = self.now - each["born"] >= terms.stable_after
            each.update(state="backoff", failures=1 if stable else each["failures"] + 1)

    def close(self, *, keep):
        """End the supervisor in order: with its workers, or leaving them."""
        counting = {slot for slot, each in self.slots.items() if self._counts_on(slot, each)}
        for slot, each in () if keep else [*self.slots.items()]:
            self._forgive(slot, each)  # a reset that came while all acting was suspended
            if each["state"] not in ("backoff", "failed"):  # failures are remembered
                left = each["failures"] if slot in counting else 0
                self._rest(each)
                each["failures"] = left
                if slot not in self.declared(owner(slot)):
                    del self.slots[slot]

    def _counts_on(self, slot, each):
        """Tell whether the end of the supervisor leaves a slot in its series of failures."""
        name, state = owner(slot), each["state"]
        if state != "running" or not self.wanted(name):
            return state == "stopped" or (state == "waiting" and self.wanted(name))
        return self._stops_at(name) - each["born"] < each["terms"].stable_after

    def _stops_at(self, name):
        """Say when a worker is asked to end with the supervisor: after those who lean on it."""
        alive = [slot for slot, each in self.slots.items() if each["state"] in ALIVE]
        leaning = [slot for slot in alive if name in self._after(slot)]
        return max((self._gone_at(slot) for slot in leaning), default=self.now)

    def _gone_at(self, slot):
        if self.slots[slot]["state"] == "stopping":
            return self._due(slot)
        grace = self.slots[slot]["terms"].stop.grace if slot in self.deaf else 0.0
        return self._stops_at(owner(slot)) + grace

    def reopen(self, dying=()):
        """Let the next supervisor find what lives, and that some have died meanwhile."""
        for slot, each in self.slots.items():
            if slot in dying:
                self.ends(slot, None)
            elif each["state"] == "stopping":
                each["state"] = "running"  # nobody knows whether its signal was sent

    def advance(self, until):
        """Let time pass: whatever is due happens at its moment."""
        self.settle()
        while (at := self._next_due()) is not None and at <= until:
            self.now = max(self.now, at)
            self.settle()
        self.now = until
        self.settle()

    def settle(self):
        """Act until there is nothing more to do; while suspended, only forgive."""
        if self.paused:
            for slot, each in self.slots.items():
                self._forgive_suspended(slot, each)
            return
        acted = ["begin"]
        while acted:
            # What others come after is judged by how all stood before anybody acted.
            self._stood = {slot: dict(each) for slot, each in self.slots.items()}
            acted = [slot for slot in self._everything() if self._act(slot)]

    def _everything(self):
        return dict.fromkeys([*(s for n in self.file for s in self.declared(n)), *self.slots])

    def _next_due(self):
        times = [at for slot in self.slots if (at := self._due(slot)) > self.now]
        return None if self.paused else min(times, default=None)

    def _due(self, slot):
        each = self.slots[slot]
        if each["state"] == "stopping":
            return each["since"] + each["terms"].stop.grace
        if each["state"] == "backoff" and owner(slot) in self.file:
            number, rule = each["failures"], self.file[owner(slot)].backoff
            delay = rule.first if number <= 1 else min(rule.max, rule.base * 2.0 ** (number - 2))
            return each["since"] + delay
        return 0.0

    def _act(self, slot):
        """Do the next thing to a slot; False when there is none."""
        name = owner(slot)
        here = slot in self.declared(name)
        each = self.slots.setdefault(slot, dict(FRESH))
        before = dict(each)
        self._forgive(slot, each)
        if each["state"] == "stopping":
            if self._due(slot) <= self.now:
                self._rest(each)
        elif here and self.wanted(name):
            self._act_wanted(slot, each, self.file[name])
        elif each["state"] == "running":
            if not self._leaned_on(name):
                self._stop(slot, each)
        elif each["state"] != "stopped":
            self._rest(each)
        elif not here:
            del self.slots[slot]
            return True
        return each != before

    def _forgive(self, slot, each):
        here = slot in self.declared(owner(slot))  # else it is forgotten, as soon as anybody acts
        if each["pardon"] and (each["state"] in ALIVE or (here and each["state"] == "stopped")):
            each.update(pardon=False, failures=0, restarts=0)

    def _forgive_suspended(self, slot, each):
        self._forgive(slot, each)
        name = owner(slot)
        if each["pardon"] and slot in self.declared(name) and self.wanted(name):
            each.update(pardon=False, failures=0, restarts=0)
            if each["state"] in ("backoff", "failed"):
                self._rest(each)

    def _act_wanted(self, slot, each, spec):
        state, terms = each["state"], each["terms"]
        moved = terms is not None and terms.command != spec.command
        if each["pardon"]:
            each.update(pardon=False, failures=0, restarts=0)
            each["again"] |= state in ("backoff", "failed")
        anew = each["again"] or each["renew"] or moved
        anew |= state == "exited" and terms != spec and comes_back(each, spec)
        if state == "running":
            if each["renew"] or moved:
                self._stop(slot, each)
            else:
                each["terms"] = spec
        elif state == "stopped" or (state == "failed" and terms != spec) or anew:
            if state != "exited" or anew:
                counted = state == "stopped" and each["failures"] and not anew
                self._start(slot, each, spec, forgiven=not counted)
        elif state == "waiting":
            self._start(slot, each, spec, forgiven=not each["failures"])
        elif state == "backoff":
            if each["ran"] and not comes_back(each, spec):
                each.update(state="exited", terms=spec)
            elif each["hopeless"] or each["failures"] > spec.max_restarts:
                each["state"] = "failed"
            elif self._due(slot) <= self.now:
                self._start(slot, each, spec, forgiven=False)

    def _start(self, slot, each, spec, *, forgiven):
        if forgiven:
            each["failures"] = 0
        if not all(self._meets(name, need) for name, need in spec.depends_on):
            each.update(state="waiting", again=False)
            return
        each.update(again=False, renew=False, hopeless=False, ran=False, terms=spec)
        each["generation"] += 1
        each["restarts"] += not forgiven
        if self.unlucky.get(slot):
            hopeless = self.unlucky[slot].pop(0)
            each.update(state="backoff", since=self.now, hopeless=hopeless)
            each["failures"] += 1
        else:
            each.update(state="running", born=self.now)

    def _meets(self, name, need):
        slots = [self._stood.get(slot, FRESH) for slot in self.declared(name)]
        runs = {Need.STARTED: True, Need.HEALTHY: True, Need.COMPLETED: False}[need]
        done = need is not Need.HEALTHY
        return bool(slots) and all(
            (each["state"] == "running" and runs)
            or (each["state"] == "exited" and each["well"] and done)
            for each in slots
        )

    def _leaned_on(self, name):
        """Tell whether somebody who comes after it is on the way down too, and still there."""
        return any(
            each["state"] in ALIVE and not self.wanted(owner(slot)) and name in self._after(slot)
            for slot, each in self.slots.items()
        )

    def _after(self, slot):
        spec: WorkerSpec = self.file.get(owner(slot)) or self.slots[slot]["terms"]
        return [name for name, _ in spec.depends_on]

    def _stop(self, slot, each):
        if slot in self.deaf:
            each.update(state="stopping", since=self.now, failures=0)
        else:
            self._rest(each)

    def _rest(self, each):
        each.update(state="stopped", failures=0, again=False, hopeless=False, pardon=False)


def comes_back(each, spec):
    """Tell whether the restart policy wants another run after the end of the last one."""
    if spec.restart is RestartPolicy.ON_FAILURE:
        return not each["well"]
    return spec.restart is RestartPolicy.ALWAYS


def owner(slot):
    return slot.partition(".")[0]
