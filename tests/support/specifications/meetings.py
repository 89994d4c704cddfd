"""Where one waits until others have come, have said something, or have brought something."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Any

from hypothesis import strategies as st

from fairlead import sync
from fairlead.errors import (
    BrokenBarrierError,
    ChannelClosedError,
    NotHeldError,
    QueueEmpty,
    QueueFull,
    TooManyReleasesError,
    UsageError,
    WaitTimeoutError,
)
from fairlead.sync.extra import Exchanger, Phaser
from specifications.specification import CANCELLED, WAITS, Call, Specification, at_once, rare, waits

COUNTED = {
    sync.Event: ("set", "clear"),
    sync.CountdownEvent: ("count_down", "count_up"),
}


class Counts(Specification):
    """What is to come, from n to 0, where all that wait go on, even if it is counted up at once. An event
    waits for one thing."""

    kind = st.sampled_from(list(COUNTED))
    count = st.integers(0, 3)

    def make(self) -> Any:
        self.down, self.up = COUNTED[self.kind]
        self.counts = self.down == "count_down"
        self.count = self.count if self.counts else 1
        return self.kind(*[self.count] * self.counts)

    @waits(refused=False)
    def wait(self) -> Any:
        return WAITS if self.count else True

    @at_once(st.integers(1, 2), likely=rare, now=lambda it, n: getattr(it.subject, it.down)(*[n] * it.counts))
    def count_down(self, n: int) -> Any:
        if self.counts and n > self.count:
            return TooManyReleasesError
        self.count = self.count - n if self.counts else 0
        return None

    @at_once(now=lambda it: getattr(it.subject, it.up)(), when=lambda it: it.up)
    def count_up(self) -> None:
        self.count = self.count + 1 if self.counts else 1

    def check(self) -> None:
        state = self.count if self.counts else self.count == 0
        assert self.subject.statistics() == (state, len(self.queue))
        is_set = self.subject.is_open if self.down == "open" else self.subject.is_set
        assert is_set() is (self.count == 0)


class Barriers(Specification):
    """All go through when as many have come as are wanted. One that gives up before that breaks it for all
    until it is reset."""

    examples = 40
    parties = st.integers(1, 4)
    broken = False

    def make(self) -> Any:
        return sync.Barrier(self.parties)

    @waits(refused=BrokenBarrierError)
    def wait(self) -> Any:
        if self.broken:
            return BrokenBarrierError
        if self.me in self.queue or len(self.queue) + 1 < self.parties:
            return WAITS
        for place, call in enumerate(list(self.queue)):
            self.grant(call, place)
        return self.parties - 1

    def left_wait(self) -> None:
        self.broken = True

    @at_once(likely=rare)
    def abort(self) -> None:
        self.broken = True

    @at_once()
    def reset(self) -> None:
        for call in list(self.queue):
            self.grant(call, BrokenBarrierError)
        self.broken = False

    def statistics(self) -> Any:
        return self.parties, len(self.queue), self.broken


class Conditions(Specification):
    """The thread may hold the lock for a while. Those that are notified or cancelled wait for the lock then,
    in this order. One that is notified and cancelled passes its notice on when it has the lock."""

    examples = 50
    lock = st.sampled_from([None, sync.Lock, sync.RLock])
    held = False

    def make(self) -> Any:
        self.notified: set[Call] = set()
        self.line: list[Call] = []
        """Those that wait for the lock; the first has it, if the thread has not."""
        self.gone: set[Call] = set()
        """Those that were cancelled."""
        return sync.Condition(fair=True) if self.lock is None else sync.Condition(self.lock(fair=True))

    def quiet(self) -> bool:
        return not (self.held or self.line)

    def waiting(self) -> list[Call]:
        return [call for call in self.queue if call not in self.line]

    def wake(self, n: int) -> None:
        chosen = self.waiting()[:n]
        self.notified.update(chosen)
        self.line += chosen

    def depths(self) -> Any:
        return st.integers(1, 1 if self.lock is sync.Lock else 2)

    async def enter_and_wait(self, depth: int) -> bool:
        async with AsyncExitStack() as stack:
            for _ in range(depth):
                await stack.enter_async_context(self.subject)
            return bool(await self.subject.wait_async())

    @waits(depths, task=enter_and_wait, when=quiet)
    def wait(self, _: int) -> Any:
        return WAITS

    def entered(self, name: str, *arguments: Any) -> Any:
        with self.subject:
            return getattr(self.subject, name)(*arguments)

    @at_once(now=lambda it: it.entered("wait", 0), by_thread=True, when=quiet, likely=rare)
    def wait_in_vain(self) -> bool:
        return False

    @at_once(st.integers(0, 3), now=lambda it, n: it.entered("notify", n), by_thread=True, when=quiet)
    def enter_and_notify(self, n: int) -> None:
        self.wake(n)

    @at_once(st.integers(0, 3), by_thread=True, when=lambda it: it.held or not it.line)
    def notify(self, n: int) -> Any:
        return self.wake(n) if self.held else NotHeldError

    @at_once(by_thread=True, when=quiet)
    def acquire(self) -> bool:
        self.held = True
        return True

    @at_once(by_thread=True, when=lambda it: it.held)
    def release(self) -> None:
        self.held = False

    def run(self) -> None:
        for call in self.doomed:
            self.gone.add(call)
            self.line += [call] if call not in self.line else []
        self.doomed.clear()
        while self.line and not self.held:
            call = self.line.pop(0)
            self.queue.remove(call)
            self.wake(call in self.gone and call in self.notified)
            call.result = CANCELLED if call in self.gone else True
            self.ended.append(call)

    def check(self) -> None:
        waiting, lock = self.subject.statistics()
        assert waiting == len(self.waiting())
        assert lock.locked is self.subject.locked() is (self.held or len(self.line) > 0)
        assert lock.waiting == max(len(self.line) - (not self.held), 0)

    def stop(self) -> None:
        if self.held:
            self.subject.release()
            self.held = False


class Phasers(Specification):
    """A phase is over when all have arrived. Then ``on_advance`` registers one more (True), ends it all
    (None), or does nothing."""

    examples = 40
    steps = 30
    phase = parties = unarrived = 0
    terminated = False

    def make(self) -> Any:
        self.plans: tuple[list[bool | None], list[bool | None]] = [], []
        """What is done next, in reality and by specification."""
        self.seen: list[Any] = []
        self.should_see: list[Any] = []
        return Phaser(on_advance=self.on_advance)

    def on_advance(self, phase: int, parties: int) -> bool:
        todo = self.plans[0].pop(0) if self.plans[0] else False
        self.seen.append((phase, parties, self.subject.register() if todo else None))
        return todo is None

    @at_once(
        st.sampled_from([True, True, False, None]),
        now=lambda it, todo: it.plans[0].append(todo),
        by_thread=True,
        when=lambda it: len(it.plans[1]) < 2,
    )
    def plan(self, todo: bool | None) -> None:
        self.plans[1].append(todo)

    def advance(self) -> None:
        todo = self.plans[1].pop(0) if self.plans[1] else False
        self.should_see.append((self.phase, self.parties, self.phase + 1 if todo else None))
        self.parties += bool(todo)
        self.terminated = todo is None or not self.parties
        if not self.terminated:
            self.phase += 1
            self.unarrived = self.parties

    def arrived(self, gone: bool) -> Any:
        """The phase that one has arrived at."""
        phase = self.phase
        if self.terminated:
            return None
        if not self.unarrived:
            return UsageError
        self.unarrived -= 1
        self.parties -= gone
        if not self.unarrived:
            self.advance()
        return phase

    @at_once()
    def arrive(self) -> Any:
        return self.arrived(gone=False)

    @at_once()
    def arrive_and_deregister(self) -> Any:
        return self.arrived(gone=True)

    @at_once(st.integers(0, 2))
    def bulk_register(self, count: int) -> Any:
        if self.terminated:
            return None
        self.parties += count
        self.unarrived += count
        return self.phase

    @waits(refused=WaitTimeoutError)
    def arrive_and_wait(self) -> Any:
        self.me.phase = self.arrived(gone=False) if self.me not in self.queue else self.me.phase
        return UsageError if self.me.phase is UsageError else self.wait_phase(self.me.phase)

    def phases(self) -> Any:
        return st.integers(max(0, self.phase - 2), self.phase + 2)

    @waits(phases, refused=WaitTimeoutError)
    def wait_phase(self, phase: int) -> Any:
        return None if self.terminated or phase < self.phase else WAITS

    def ran_wait_phase(self, *_: Any) -> Any:
        return None if self.terminated else self.phase

    ran_arrive_and_wait = ran_wait_phase

    @at_once(when=lambda it: it.phase > 3, likely=rare)
    def terminate(self) -> None:
        self.terminated = True

    def check(self) -> None:
        assert self.seen == self.should_see
        arrived = self.parties - self.unarrived
        state = self.phase, self.parties, arrived, len(self.queue), self.terminated
        assert self.subject.statistics() == state


class Exchanges(Specification):
    """Each gets what one other brought, which gets its own."""

    numbers = 0
    closed = False
    make = staticmethod(Exchanger)

    def number(self) -> Any:
        self.numbers += 1
        return st.just(self.numbers)

    @waits(number, refused=WaitTimeoutError)
    def exchange(self, item: int) -> Any:
        if self.closed:
            return ChannelClosedError
        other = next((call for call in self.queue if call is not self.me), None)
        if other is None:
            return WAITS
        self.grant(other, item)
        return other.arguments[0]

    @at_once(when=lambda it: it.age > 12, likely=rare)
    def close(self) -> None:
        self.closed = True

    def check(self) -> None:
        assert self.subject.statistics() == (len(self.queue), self.closed)


SEND, RECEIVE = "send", "receive"
OTHER = {SEND: RECEIVE, RECEIVE: SEND}
CASES = [(0, SEND), (0, RECEIVE), (1, SEND), (1, RECEIVE)]
Case = tuple[int, str]


class Meetings(Specification):
    """Two channels without room: what one brings goes to another in the instant in which they meet, and
    cannot be taken back. What came for a receiver that was cancelled goes to the next."""

    examples = 70
    steps = 30
    meetings = numbers = 0

    def make(self) -> Any:
        self.back: list[list[tuple[int, int]]] = [[], []]
        """What came for one that was cancelled, and was not received, each with the number of its meeting."""
        self.closed: list[str] = ["", ""]
        """By which sides."""
        return [sync.channel(0), sync.channel(0)]

    def number(self) -> Any:
        self.numbers += 1
        return st.just(self.numbers)

    def ask(self, case: Case, brings: int, ending: str = "_async", **more: Any) -> Any:
        end = self.subject[case[0]][case[1] == RECEIVE]
        return getattr(end, case[1] + ending)(*[brings] * (case[1] != RECEIVE), **more)

    def cases_of(self, call: Call) -> list[Case]:
        return call.arguments[0] if call.name == "choose" else [call.arguments[0]]

    def first(self, case: Case, but: Call | None = None) -> Call | None:
        """The first that waits there. None meets itself."""
        return next((call for call in self.queue if call is not but and case in self.cases_of(call)), None)

    def take(self, call: Call, case: Case, brings: int) -> Any:
        call.final, call.got = case[1] != RECEIVE, (case[0], self.meetings, brings)
        value = None if case[1] == SEND else brings
        return (self.cases_of(call).index(case), value) if call.name == "choose" else value

    def hand(self, other: Call, case: Case, brings: int) -> None:
        self.meetings += 1
        self.grant(other, self.take(other, case, brings))

    @waits(st.sampled_from(CASES), number, task=ask, now=lambda it, *given: it.ask(*given, "", timeout=0))
    def meet(self, case: Case, brings: int) -> Any:
        which, side = case
        other = self.first((which, OTHER[side]), but=self.me)
        if side == RECEIVE and self.back[which]:
            return self.take(self.me, case, self.back[which].pop(0)[1])
        if other is not None:
            self.hand(other, (which, OTHER[side]), brings)
            return self.take(self.me, case, other.arguments[1])
        return ChannelClosedError if self.closed[which] else WAITS

    def refusal(self) -> Any:
        return {SEND: QueueFull, RECEIVE: QueueEmpty}[self.me.arguments[0][1]]

    def undo_meet(self, *_: Any) -> None:
        which, number, got = self.me.got
        other = self.first((which, RECEIVE))
        if other is not None:
            self.hand(other, (which, RECEIVE), got)
        elif RECEIVE not in self.closed[which]:
            self.back[which] = sorted([*self.back[which], (number, got)])

    def cases(self) -> Any:
        """Of which one at most can be had at once: select takes any."""

        def ready(case: Case) -> Any:
            which, side = case
            back = side == RECEIVE and self.back[which]
            return self.closed[which] or self.first((which, OTHER[side])) or back

        return st.lists(st.sampled_from(CASES), min_size=2, max_size=4, unique=True).map(
            lambda cases: [case for case in cases if case not in list(filter(ready, cases))[1:]]
        )

    def select(self, cases: list[Case], brings: int) -> Any:
        return sync.select_async(*(self.ask(case, brings) for case in cases))

    @waits(cases, number, task=select)
    def choose(self, cases: list[Case], brings: int) -> Any:
        results = (self.meet(case, brings) for case in cases)
        return next((result for result in results if result is not WAITS), WAITS)

    undo_choose = undo_meet

    @at_once(
        st.sampled_from(CASES),
        now=lambda it, case: it.subject[case[0]][case[1] == RECEIVE].close(),
        when=lambda it: it.age > 8,
        likely=rare,
    )
    def close_end(self, case: Case) -> None:
        which, side = case
        self.closed[which] += side
        self.back[which] = [] if side == RECEIVE else self.back[which]

    def check(self) -> None:
        if any(call.name == "choose" for call in self.granted):
            return  # until it runs, its other cases may still be counted
        waiting = [sum(case in self.cases_of(call) for call in self.queue) for case in CASES]
        for which, (_, receiver) in enumerate(self.subject):
            closed = self.closed[which]
            ends = SEND not in closed, RECEIVE not in closed, *waiting[2 * which : 2 * which + 2]
            assert receiver.statistics() == (len(self.back[which]), *ends, closed != "")
