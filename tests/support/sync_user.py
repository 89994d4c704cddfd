"""Every public object of fairlead.sync and fairlead.sync.extra as a typed program uses it.

A test runs it, make lint checks it.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import threading
from typing import assert_type

from fairlead import sync
from fairlead.sync import extra, shared


def locks() -> None:
    lock = sync.Lock(fair=True, on_owner_death="warn")
    assert_type(lock.acquire(timeout=1), bool)
    lock.release()
    with lock as entered:
        assert_type(entered, bool)
        assert lock.locked()
    assert_type(lock.statistics().waiting, int)
    assert_type(lock.on_owner_death, str)
    rlock = sync.RLock(fair=True)
    with rlock, rlock:
        assert_type(rlock.statistics().depth, int)
    assert rlock.acquire(False)
    rlock.release()
    assert not rlock.locked()
    rw = sync.RWLock()
    views: tuple[sync.RWLockView, ...] = (rw.reading, rw.upgradable, rw.writing)
    for view in views:
        assert_type(view.acquire(True, 1), bool)
        assert isinstance(view.locked(), bool)
        view.release()
    with rw.writing:
        rw.downgrade()
        assert_type(rw.statistics().readers, int)
        rw.reading.release()
        rw.writing.acquire()
    stamped = extra.StampedLock()
    stamp = stamped.optimistic_read()
    assert_type(stamped.validate(stamp), bool)
    stamp = stamped.try_convert_to_write(stamp)
    stamp = stamped.try_convert_to_read(stamp)
    stamped.release(stamp)
    stamped.release(stamped.acquire_read(timeout=1))
    stamp = stamped.acquire_write()
    assert_type(stamped.try_convert_to_optimistic_read(stamp), int)
    with stamped.reading as inside:
        assert_type(inside, int)
    with stamped.writing:
        assert_type(stamped.statistics().writing, bool)
    combiner = extra.Combiner(batch=8)
    assert_type(combiner.run(lambda: "done"), str)
    assert not combiner.locked()
    assert_type(combiner.statistics().batch, int)
    for condition in (sync.Condition(), sync.Condition(lock), sync.Condition(fair=True)):
        with condition:
            condition.notify()
            condition.notify(2)
            condition.notify_all()
            assert_type(condition.wait(0), bool)
            assert_type(condition.wait_for(lambda: 3, timeout=1), int)
            assert_type(condition.statistics().waiting, int)
        assert condition.acquire(timeout=1)
        condition.release()
        assert_type(condition.locked(), bool)


def permits() -> None:
    for semaphore in (sync.Semaphore(2, fair=True), sync.BoundedSemaphore(2, fair=True)):
        assert semaphore.acquire(n=2, timeout=1)
        semaphore.release(n=2)
        with semaphore:
            assert_type(semaphore.locked(), bool)
        assert_type(semaphore.statistics().value, int)
    limiter = sync.CapacityLimiter(2, fair=True)
    with limiter:
        assert_type(limiter.borrowed_tokens, int)
        assert_type(limiter.available_tokens, float)
    assert limiter.acquire(timeout=1)
    limiter.release()
    assert limiter.acquire_on_behalf_of("borrower", timeout=1)
    limiter.release_on_behalf_of("borrower")
    limiter.total_tokens = math.inf
    assert_type(limiter.statistics().total, float)
    clock = extra.ManualClock()
    rate = sync.RateLimiter(10, 1.0, burst=2, clock=clock)
    assert rate.acquire(n=2)
    assert_type(rate.delay(), float)
    clock.advance(1)
    assert_type(clock.now, float)
    with rate:
        assert_type(rate.statistics().available, int)


def meetings() -> None:
    event = sync.Event()
    event.set()
    assert_type(event.wait(1), bool)
    assert event.is_set()
    event.clear()
    assert_type(event.statistics().is_set, bool)
    countdown = sync.CountdownEvent(1)
    assert not countdown.is_set()
    assert_type(countdown.value, int)
    countdown.count_up()
    countdown.count_down(2)
    assert countdown.wait(timeout=1)
    assert_type(countdown.statistics().value, int)
    barrier = sync.Barrier(1, action=lambda: None, timeout=1)
    assert_type(barrier.wait(), int)
    barrier.abort()
    assert barrier.broken
    barrier.reset()
    assert_type((barrier.parties, barrier.n_waiting), tuple[int, int])
    assert_type(barrier.statistics().broken, bool)
    phaser = extra.Phaser(parties=1)
    assert_type(phaser.arrive(), int | None)
    phaser.register()
    phaser.bulk_register(2)
    phaser.arrive_and_deregister()
    assert_type(phaser.wait_phase(0, timeout=0), int | None)
    phaser.terminate()
    assert_type(phaser.terminated, bool)
    assert_type((phaser.phase, phaser.parties, phaser.arrived), tuple[int, int, int])
    exchanger = extra.Exchanger[str]()
    partner = threading.Thread(target=exchanger.exchange, args=("his",))
    partner.start()
    assert_type(exchanger.exchange("mine", timeout=10), str)
    partner.join()
    exchanger.close()
    assert_type(exchanger.statistics().closed, bool)


def small_things() -> None:
    counter = extra.StripedCounter(1)
    counter.add(2)
    counter.increment()
    counter.decrement()
    assert_type(counter.sum(), int)
    assert_type(counter.sum_and_reset(), int)
    counter.reset()
    assert_type(int(counter), int)
    assert_type(counter.statistics().stripes, int)
    flag = extra.Flag[str]()
    assert_type(flag.set("value"), bool)
    assert_type(flag.get(), str | None)
    assert_type(flag.get("other"), str)
    assert_type(flag.is_set(), bool)
    flag.clear()
    guard = extra.ResourceGuard("reading")
    with guard:
        assert_type(guard.statistics().busy, bool)

    @sync.once
    def once() -> int:
        return 1

    assert_type(once(), int)
    assert_type(once.statistics().done, bool)
    lock = sync.Lock()
    assert_type(sync.share(lock), sync.Lock)
    assert_type(sync.blocking_in_tasks(False), bool)
    waits: sync.Waits = sync.waits()
    actors: list[sync.Actor] = [wait.waiter for wait in waits]
    assert "nothing waiting" in str(waits)
    with sync.detect_deadlocks(interval=1, on_deadlock=print) as detector:
        assert_type(detector, sync.Detector)
        found: tuple[sync.Deadlock, ...] = detector.now()
    assert (actors, found) == ([], ())


def queues() -> None:
    for queue in (
        sync.Queue[int](3, fair=True),
        sync.LifoQueue[int](3, fair=True),
        sync.PriorityQueue[int](3, fair=True),
    ):
        queue.put(1, timeout=1)
        queue.put_nowait(2)
        assert_type(queue.peek(timeout=1), int)
        assert_type(queue.peek_nowait(), int)
        assert_type(queue.get(timeout=1), int)
        assert_type(queue.get_nowait(), int)
        queue.task_done()
        queue.task_done()
        assert_type(queue.join(1), bool)
        queue.resize(4)
        queue.maxsize = 5
        assert_type((queue.qsize(), queue.empty(), queue.full()), tuple[int, bool, bool])
        queue.shutdown(immediate=True)
        assert_type((queue.unfinished_tasks, queue.is_shutdown), tuple[int, bool])
        assert_type(queue.statistics().joining, int)
    simple = sync.SimpleQueue[str]()
    simple.put("one")
    simple.put_nowait("two")
    assert_type(simple.get(timeout=1), str)
    assert_type(simple.get_nowait(), str)
    assert_type((simple.qsize(), simple.empty()), tuple[int, bool])
    assert_type(simple.statistics().size, int)
    inferred: sync.Queue[bytes] = sync.Queue()
    inferred.put(b"")
    with_select = sync.select(inferred.get_async(), simple.get_async(), timeout=1)
    assert_type(with_select, sync.Selected | None)
    assert with_select is not None
    assert with_select.case == 0


def channels() -> None:
    sender: sync.Sender[int]
    receiver: sync.Receiver[int]
    sender, receiver = sync.channel(4)
    with sender.clone() as cloned:
        assert_type(cloned, sync.Sender[int])
        cloned.send(1, timeout=1)
    sender.send_nowait(2)
    with receiver.clone() as taker:
        assert_type(taker, sync.Receiver[int])
        assert_type(taker.receive(timeout=1), int)
    assert_type(receiver.receive_nowait(), int)
    assert_type(sender.statistics().pending, int)
    assert_type(sender.wait_closed(0), bool)
    sender.close()
    for item in receiver:
        assert_type(item, int)
    first: sync.OneshotSender[str]
    last: sync.OneshotReceiver[str]
    first, last = sync.oneshot()
    first.send("answer")
    assert_type(last.receive(), str)
    news: sync.BroadcastSender[int]
    slow: sync.BroadcastReceiver[int]
    news, slow = sync.broadcast(2)
    assert_type(news.send(1), int)
    with news.subscribe() as late, slow.clone() as other:
        assert_type(late, sync.BroadcastReceiver[int])
        assert_type(other.receive(False), int)
    assert_type(slow.receive_nowait(), int)
    level, look = sync.broadcast(latest="dark")
    assert_type(level, sync.BroadcastSender[str])
    assert_type(look, sync.BroadcastReceiver[str])
    level.send("light")
    assert look.has_changed()
    assert_type(look.value, str)
    assert_type(look.receive(), str)
    assert_type(level.subscribe().clone(), sync.BroadcastReceiver[str])


async def tasks() -> None:
    lock, rlock, semaphore = sync.Lock(), sync.RLock(), sync.Semaphore(2)
    assert_type(await lock.acquire_async(), bool)
    lock.release()
    assert_type(await semaphore.acquire_async(n=2), bool)
    semaphore.release(2)
    rw, stamped = sync.RWLock(), extra.StampedLock()
    async with lock, rlock, semaphore, rw.reading, sync.CapacityLimiter(1), sync.RateLimiter(1):
        pass
    async with rw.writing, stamped.writing as stamp:
        assert_type(stamp, int)
    async with contextlib.AsyncExitStack() as stack:
        for block in (lock, rlock, semaphore, rw.reading, sync.CapacityLimiter(1), sync.RateLimiter(1)):
            await stack.enter_async_context(block)
        assert_type(await stack.enter_async_context(sync.Barrier(1)), int)
        for end in (*sync.channel(1), sync.Condition()):
            await stack.enter_async_context(end)
    stamped.release(await stamped.acquire_read_async())
    stamped.release(await stamped.acquire_write_async())
    assert_type(await extra.Combiner().run_async(lambda: 1), int)
    condition = sync.Condition()
    async with condition:
        assert_type(await condition.wait_for_async(lambda: "yes"), str)
    limiter = sync.CapacityLimiter(2)
    assert_type(await limiter.acquire_async(), bool)
    assert_type(await limiter.acquire_on_behalf_of_async("it"), bool)
    assert_type(await sync.RateLimiter(5).acquire_async(n=1), bool)
    event, countdown = sync.Event(), sync.CountdownEvent()
    event.set()
    for opened in (event.wait_async(), countdown.wait_async()):
        assert_type(await opened, bool)
    assert_type(await sync.Barrier(1).wait_async(), int)
    async with sync.Barrier(1) as place:
        assert_type(place, int)
    phaser = extra.Phaser(parties=1)
    assert_type(await phaser.arrive_and_wait_async(), int | None)
    assert_type(await phaser.wait_phase_async(0), int | None)
    exchanger = extra.Exchanger[int]()
    assert_type(
        await asyncio.gather(exchanger.exchange_async(1), exchanger.exchange_async(2)), tuple[int, int]
    )

    @sync.once
    async def once() -> str:
        return "value"

    assert_type(await once(), str)
    queue, simple = sync.Queue[int](), sync.SimpleQueue[str]()
    await queue.put_async(1)
    assert_type(await queue.peek_async(), int)
    assert_type(await queue.get_async(), int)
    queue.task_done()
    await queue.join_async()
    await simple.put_async("it")
    assert_type(await asyncio.wait_for(lock.acquire_async(), 10), bool)
    picked = await sync.select_async(simple.get_async(), queue.get_async())
    assert_type(picked, sync.Selected)
    await simple.put_async("again")
    assert_type(await asyncio.wait_for(sync.select_async(simple.get_async()), 10), sync.Selected)
    sender: sync.Sender[int]
    receiver: sync.Receiver[int]
    sender, receiver = sync.channel(1)
    await sender.send_async(1)
    assert_type(await receiver.receive_async(), int)
    sender.close()
    async for item in receiver:
        assert_type(item, int)
    receiver.close()
    assert_type(await sender.wait_closed_async(), bool)


def processes() -> None:
    lock, semaphore, event = shared.Lock(), shared.Semaphore(2, owned=True), shared.Event()
    with lock:
        assert_type(lock.locked(), bool)
    assert_type(lock.acquire(timeout=1), bool)
    lock.release()
    assert_type(lock.statistics().locked, bool)
    with semaphore:
        assert_type(semaphore.statistics().value, int)
    event.set()
    assert_type(event.wait(1), bool)
    event.clear()
    assert_type(event.is_set(), bool)
    queue = shared.Queue(capacity_bytes=1 << 12)
    queue.put(b"data", timeout=1)
    assert_type(queue.get(timeout=1), bytes)
    queue.put_nowait(b"data")
    assert_type(queue.get_nowait(), bytes)
    queue.shutdown()
    barrier = shared.Barrier(1)
    assert_type(barrier.wait(1), int)
    barrier.abort()
    barrier.reset()
    assert_type((barrier.parties, barrier.broken), tuple[int, bool])
    for one in (lock, semaphore, event, queue, barrier):
        assert_type(one.name, str | None)


def main() -> None:
    locks()
    permits()
    meetings()
    small_things()
    queues()
    channels()
    asyncio.run(tasks())
    processes()


if __name__ == "__main__":
    main()
