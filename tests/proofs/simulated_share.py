"""A share on virtual time: real files in a folder, and a server that is slow, hangs or is gone.

What helpers do to the files is done by their own code, in one step; when that happens, whether it
happens at all, and whether anybody hears of it is drawn from the seed. The files outlive every
supervisor, and people who write there use a clock of their own.
"""

from __future__ import annotations

import asyncio
import json
import os
from binascii import a2b_base64
from collections import deque
from itertools import count

from uphold.errors import HostFailure
from uphold.inbox.answering import Helper as Answering
from uphold.inbox.helpers import UNREACHABLE
from uphold.inbox.reaching import MOST_STUCK

FOLDERS = (
    *("00_STATE", "01_RAW", "02_WORK", "03_REFERENCE", "04_PUBLISH", "05_LOGS"),
    *("Worker_Inbox", "Worker_Outbox"),
)
STARTED_AT = 1_767_225_600.0
"""What the share's own clock shows when the hour begins; nobody ever sets it."""
AWAY = {
    "gone": {"no": "unreachable", "text": "Stale file handle", "errno": 116},
    "unmounted": {"no": "unmounted", "text": "it is not mounted"},
}
FULL = {"no": "failed", "text": "No space left on device", "errno": 28}
WRITES = frozenset({"put", "append", "dismiss"})


class SimulatedShare:
    """The folder, and how its server does right now."""

    def __init__(self, loop, rng, eye, folder):
        self.loop = loop
        self.rng = rng
        self.eye = eye
        self.top = folder / "share"
        self.inbox = self.top / "Worker_Inbox"
        self.outbox = self.top / "Worker_Outbox"
        self.state = self.top / "00_STATE"
        for name in FOLDERS:
            (self.top / name).mkdir(parents=True)
        self.mood = "well"
        """Or `hangs`, `gone`, `unmounted`, `full`, `failing`."""
        self.moody_since = 0.0
        self.slow = 0.0
        """Mean seconds that an answer takes."""
        self.tells = rng.random() < 0.5
        """Whoever watches a folder is told of what comes; not every file system does that."""
        self.on_receipt = lambda receipt: None
        self._pids = count(50_001)
        self.helpers = []

    def now(self):
        """Tell the time, by the share's own clock."""
        return STARTED_AT + self.loop.time()

    async def begin(self, root, settings, stir):
        """Start a helper, as `start_helper` does."""
        self.helpers = [each for each in self.helpers if not each.over()]
        hanging = sum(each.stuck for each in self.helpers)
        if hanging >= MOST_STUCK:
            self.eye.wrong(f"P17: a helper is started while {hanging} hang")
        helper = SimulatedHelper(self, root, settings, stir, next(self._pids))
        self.helpers.append(helper)
        return helper

    def change(self, mood):
        """Let the server do otherwise from now on; who hung in it comes free if it answers."""
        self.mood, self.moody_since = mood, self.loop.time()
        self.eye.trace("share", mood)
        if mood != "hangs":
            for helper in tuple(self.helpers):
                helper.come_free()

    def abandon(self):
        """Let the helpers of a supervisor that was killed end: nobody is at the other end."""
        for helper in self.helpers:
            helper.orphaned()
        self.helpers.clear()

    def write(self, path, raw):
        """Be somebody who writes a file here, from another machine."""
        path.write_bytes(raw)
        os.utime(path, (self.now(), self.now()))
        if self.tells and self.mood not in {"hangs", "gone", "unmounted"}:
            for helper in self.helpers:
                helper.news()

    def remove(self, path):
        path.unlink(missing_ok=True)

    def takes(self):
        """Draw how long an answer takes."""
        mean = self.slow or 0.004
        return min(self.rng.expovariate(1.0 / mean), 40.0)


class SimulatedHelper:
    """What a supervisor sees of one helper process: `uphold.inbox.helpers.Helper`, without one."""

    def __init__(self, share, root, settings, stir, pid):
        self.pid = pid
        self.usable = True
        self.stuck = False
        """It waits for the server, in the kernel."""
        self._share = share
        self._loop = share.loop
        plain = json.loads(json.dumps(dict(settings)))
        self._answering = Answering(root, plain)
        self._stir = stir
        self._queue = deque()
        self._timer = None
        self._left = False
        self._watching = False
        self._end = self._loop.create_future()

    def ask(self, request):
        answer = self._loop.create_future()
        # As over a socket: nothing that is handed over is shared.
        self._queue.append((json.loads(json.dumps(request)), answer))
        self._go_on()
        return answer

    def over(self):
        return self._end.done()

    def when_over(self, call):
        self._end.add_done_callback(lambda _: call())

    async def ended(self):
        await asyncio.shield(self._end)

    def abandon(self, failure):
        """Be given up: killed, which in the kernel counts only when the server answers."""
        self._left = True
        self.usable = False
        for _, answer in tuple(self._queue):
            if not answer.done():
                answer.set_exception(failure)
        if not self.stuck:
            self._finish()

    def hang_up(self):
        self._left = True
        self.usable = False
        if not self.stuck:
            self._loop.call_soon(self._finish)

    def let_go(self):
        self._set_end()

    def orphaned(self):
        """Lose whoever asked; what is under way is done, or not."""
        self._left = True
        self._queue = deque((request, self._loop.create_future()) for request, _ in self._queue)
        if not self.stuck:
            self._finish()

    def come_free(self):
        """Go on, now that the server answers again; who was killed meanwhile ends."""
        if not self.stuck:
            return
        self.stuck = False
        if self._left:
            self._finish()
        else:
            self._go_on()

    def news(self):
        """Tell whoever wished it that something has come, once."""
        if self._watching and self.usable and not self.stuck:
            self._watching = False
            self._loop.call_later(0.01, self._tell)

    def _tell(self):
        if not self._left:
            self._stir(False)

    def _go_on(self):
        if self._queue and self._timer is None and not self.stuck:
            self._timer = self._loop.call_later(self._share.takes(), self._serve)

    def _serve(self):
        self._timer = None
        share = self._share
        if not self._queue:
            return
        if share.mood == "hangs":
            self.stuck = True
            return
        if share.mood == "failing" and share.rng.random() < 0.05:
            self._break()
            return
        request, answer = self._queue.popleft()
        told = self._answer(request)
        if not answer.done():
            answer.set_result(told)
        self._go_on()

    def _answer(self, request):
        share, what = self._share, request["do"]
        if share.mood in AWAY:
            if share.mood == "gone" and share.rng.random() < 0.2:
                self._do(request)  # it was done, and the word of it was lost
            return {"id": 0, **AWAY[share.mood]}
        if share.mood == "full" and what in WRITES:
            return {"id": 0, **FULL}
        if share.mood == "failing" and share.rng.random() < 0.2:
            if share.rng.random() < 0.5:
                self._do(request)
            return {"id": 0, "no": "unreachable", "text": "Input/output error", "errno": 5}
        return self._do(request)

    def _do(self, request):
        """Have it done by the code of the real helper; whoever watches is told by us."""
        if request["do"] == "watch":
            self._watching = self._share.tells
            mark = self._answering._mark.plain()
            return {"id": 0, "ok": "" if self._share.tells else "nothing tells", "mark": mark}
        receipts = _receipts(request)
        told = self._answering.answer({"id": 0, **request})
        if "ok" in told:
            for receipt in receipts:
                self._share.on_receipt(receipt)
        return told

    def _break(self):
        """Die in the middle of a request: it was done, or it was not."""
        failure = HostFailure("the helper of the share has ended.", code=UNREACHABLE)
        waiting = tuple(self._queue)
        if self._share.rng.random() < 0.5:
            self._do(waiting[0][0])
        self._queue.clear()
        unforeseen, self._left, self.usable = not self._left, True, False
        for _, answer in waiting:
            if not answer.done():
                answer.set_exception(failure)
        self._set_end()
        if unforeseen:
            self._stir(True)

    def _finish(self):
        """End; of what was asked some may still be done, in its order."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue and self._share.mood not in AWAY and self._share.rng.random() < 0.5:
            self._do(self._queue[0][0])
        self._queue.clear()
        self._set_end()

    def _set_end(self):
        self.usable = False
        if not self._end.done():
            self._end.set_result(None)


def _receipts(request):
    """Give the receipts that a request leaves."""
    several = request.get("each") or (request,)
    if request["do"] == "dismiss" or request.get("folder") == "outbox":
        return [json.loads(a2b_base64(each["content"])) for each in several]
    return []
