"""A cancellation from another thread, at a moment that a test chooses."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any


class Cancelling:
    """Cancels a future from a thread of its own, and says what cancel() answered."""

    def __init__(self) -> None:
        self.answers: list[bool] = []
        self.threads: list[threading.Thread] = []

    def __call__(self, future: Future[Any]) -> None:
        """Comes back when the answer is there, or has been waiting for what the caller holds."""
        self.threads.append(threading.Thread(target=lambda: self.answers.append(future.cancel())))
        self.threads[-1].start()
        self.threads[-1].join(0.05)

    def answer(self) -> bool:
        self.threads[0].join(20)
        return self.answers[0]
