"""Work to give to pools: what computes with little data, with objects, with shared ones, what passes much.

Every task is a function of this module and an item, so that any kind of worker can import it. Each has a
known answer: a workload whose tasks change what they share comes out wrong where nothing orders them. Runs
on Python 3.8 and everything after it, in any interpreter of a process.
"""

from __future__ import annotations

import importlib.util
import math
import os
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, Callable, NamedTuple

WORDS = 65_536
"""Floats of 8 bytes in half a megabyte."""


class Workload(NamedTuple):
    """``function`` is called with ``item``, ``tasks`` times, and should return ``answer()`` each time."""

    name: str
    title: str
    function: Callable[[Any], Any]
    item: Any
    small: Any
    """An item that takes next to no time, to try it."""
    tasks: int
    answer: Callable[[Any], Any]
    """What is right for an item."""
    shares: bool = False
    """Its tasks change objects that they share within a process or interpreter, and are only right one by
    one."""

    def items(self, fraction: float = 1.0) -> list[Any]:
        return [self.item] * max(1, round(self.tasks * fraction))

    def wrong(self, results: list[Any]) -> int:
        """How many results are not what they should be."""
        answer = self.answer(self.item)
        return sum(result != answer for result in results)


def fib(n: int) -> int:
    return n if n < 2 else fib(n - 1) + fib(n - 2)


class _Fib2:
    def __init__(self) -> None:
        self.calls = 0

    def fib(self, n: int) -> int:
        self.calls += 1
        return n if n < 2 else self.fib(n - 1) + self.fib(n - 2)


def fib2(n: int) -> int:
    """As fib, and every call updates an attribute of an object of this task's own."""
    return _Fib2().fib(n)


# bodies: the sun and the four large planets, in astronomical units, years and solar masses

SOLAR_MASS = 4 * math.pi**2
DAYS = 365.24


class Body:
    __slots__ = ("mass", "vx", "vy", "vz", "x", "y", "z")

    def __init__(self, x: float, y: float, z: float, vx: float, vy: float, vz: float, mass: float) -> None:
        self.x, self.y, self.z = x, y, z
        self.vx, self.vy, self.vz = vx * DAYS, vy * DAYS, vz * DAYS
        self.mass = mass * SOLAR_MASS


def bodies() -> list[Body]:
    system = [
        Body(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0),
        Body(4.84143144, -1.16032004, -0.10362204, 0.00166007, 0.00769901, -6.90460e-05, 9.54791e-04),
        Body(8.34336671, 4.12479856, -0.40352342, -0.00276742, 0.00499852, 2.30417e-05, 2.85885e-04),
        Body(12.8943695, -15.1111514, -0.22330757, 0.00296460, 0.00237847, -2.96589e-05, 4.36624e-05),
        Body(15.3796971, -25.9193146, 0.17925877, 0.00268067, 0.00162824, -9.51592e-05, 5.15138e-05),
    ]
    sun = system[0]
    for axis in ("vx", "vy", "vz"):
        setattr(sun, axis, -sum(getattr(body, axis) * body.mass for body in system[1:]) / SOLAR_MASS)
    return system


def _advance(system: list[Body], steps: int) -> None:
    dt = 0.01
    for _ in range(steps):
        for index, a in enumerate(system):
            for b in system[index + 1 :]:
                dx, dy, dz = a.x - b.x, a.y - b.y, a.z - b.z
                pull = dt / (dx * dx + dy * dy + dz * dz) ** 1.5
                a.vx -= dx * b.mass * pull
                a.vy -= dy * b.mass * pull
                a.vz -= dz * b.mass * pull
                b.vx += dx * a.mass * pull
                b.vy += dy * a.mass * pull
                b.vz += dz * a.mass * pull
        for body in system:
            body.x += dt * body.vx
            body.y += dt * body.vy
            body.z += dt * body.vz


def energy(system: list[Body]) -> float:
    total = 0.0
    for index, a in enumerate(system):
        total += a.mass * (a.vx * a.vx + a.vy * a.vy + a.vz * a.vz) / 2
        for b in system[index + 1 :]:
            total -= a.mass * b.mass / math.dist((a.x, a.y, a.z), (b.x, b.y, b.z))
    return total


_shared = bodies()


def nbody(steps: int) -> float:
    """Moves bodies that all tasks share there and back: to their places, if no other task moves them."""
    for body, fresh in zip(_shared, bodies()):
        for name in Body.__slots__:
            setattr(body, name, getattr(fresh, name))
    _advance(_shared, steps)
    return energy(_shared)


def nbody_unshared(steps: int) -> float:
    """The same with bodies of its own."""
    system = bodies()
    _advance(system, steps)
    return energy(system)


# rays


class Vector(NamedTuple):
    x: float
    y: float
    z: float

    def plus(self, other: Vector, times: float = 1.0) -> Vector:
        return Vector(self.x + other.x * times, self.y + other.y * times, self.z + other.z * times)

    def dot(self, other: Vector) -> float:
        return self.x * other.x + self.y * other.y + self.z * other.z

    def unit(self) -> Vector:
        return Vector(0.0, 0.0, 0.0).plus(self, 1 / math.sqrt(self.dot(self)))


class Sphere(NamedTuple):
    centre: Vector
    radius: float
    shine: float

    def distance(self, origin: Vector, ray: Vector) -> float:
        """Along the ray; infinite if it passes by."""
        to = self.centre.plus(origin, -1.0)
        along = to.dot(ray)
        left = self.radius**2 - to.dot(to) + along * along
        near = along - math.sqrt(left) if left > 0 else -1.0
        return near if near > 1e-6 else math.inf


SPHERES = (
    Sphere(Vector(0.0, 0.0, 6.0), 2.0, 0.6),
    Sphere(Vector(2.5, 1.0, 4.5), 0.8, 0.3),
    Sphere(Vector(-2.0, -0.5, 4.0), 0.7, 0.8),
    Sphere(Vector(0.0, -1002.0, 0.0), 1000.0, 0.1),
)
LIGHT = Vector(-5.0, 8.0, -4.0).unit()


def _shade(origin: Vector, ray: Vector, depth: int) -> float:
    nearest = min(SPHERES, key=lambda sphere: sphere.distance(origin, ray))
    distance = nearest.distance(origin, ray)
    if distance == math.inf:
        return 0.5 + 0.5 * ray.y
    where = origin.plus(ray, distance)
    normal = where.plus(nearest.centre, -1.0).unit()
    lit = all(sphere.distance(where, LIGHT) == math.inf for sphere in SPHERES)
    light = 0.1 + 0.9 * max(0.0, normal.dot(LIGHT)) * lit
    if depth == 0:
        return light
    mirrored = _shade(where, ray.plus(normal, -2 * ray.dot(normal)), depth - 1)
    return (1 - nearest.shine) * light + nearest.shine * mirrored


def raytrace(size: int) -> float:
    """The mean brightness of a picture of so many pixels each way."""
    eye = Vector(0.0, 1.0, -4.0)
    total = 0.0
    for row in range(size):
        for column in range(size):
            ray = Vector(2 * column / size - 1, 1 - 2 * row / size, 2.0).unit()
            total += _shade(eye, ray, 2)
    return total / size**2


# the programs that the published party was held with, of the package pyperformance


def has_pyperformance() -> bool:
    return importlib.util.find_spec("pyperformance") is not None


@lru_cache(None)
def pyperformance(name: str) -> ModuleType:
    """One of its programs. Each process and each interpreter has its own, which its threads share."""
    package = importlib.util.find_spec("pyperformance")
    assert package is not None
    assert package.origin is not None
    path = Path(package.origin).parent / "data-files" / "benchmarks" / f"bm_{name}" / "run_benchmark.py"
    spec = importlib.util.spec_from_file_location(f"bm_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    _specialise_or_not(program)
    return program


BODIES_ENERGY, STEP_ERROR = -0.169, 1e-3
"""What the energy of pyperformance's bodies is, and how far from it that of coarse steps may be."""


def pyperformance_nbody(iterations: int) -> bool:
    """Moves bodies that all tasks share on by so many steps; whether they still have their energy."""
    program = pyperformance("nbody")
    program.bench_nbody(1, program.DEFAULT_REFERENCE, iterations)
    return bool(abs(program.report_energy() - BODIES_ENERGY) < STEP_ERROR)


def pyperformance_raytrace(size: int) -> bool:
    """Renders a picture of so many pixels each way, and keeps it; whether the clock has moved."""
    return bool(pyperformance("raytrace").bench_raytrace(1, size, size, None) > 0)


def _done(_: int) -> bool:
    return True


# data


def data_pass(data: bytes) -> int:
    """Takes half a megabyte and does nothing with it."""
    return len(data)


def data_return(words: int) -> list[float]:
    """Returns as much, as a list of floats."""
    return [0.5] * words


def catalogue() -> list[Workload]:
    """All, with the sizes that they are known by."""
    undisturbed = lru_cache(None)(nbody_unshared)
    number = lru_cache(None)(fib)
    picture = lru_cache(None)(raytrace)
    half = bytes(8 * WORDS)
    return [
        Workload("fib", "fib(28)", fib, 28, 10, 64, number),
        Workload("fib2", "fib(28), counting its calls in an object of its own", fib2, 28, 10, 64, number),
        Workload("nbody", "five bodies that all tasks share", nbody, 2_000, 20, 64, undisturbed, shares=True),
        Workload("nbody-unshared", "the task's own five bodies", nbody_unshared, 2_000, 20, 64, undisturbed),
        Workload("raytrace", "a picture of 100 x 100 rays", raytrace, 100, 6, 64, picture),
        Workload("pyperformance-nbody", "pyperformance's nbody", pyperformance_nbody, 10, 1, 64, _done),
        Workload("pyperformance-raytrace", "its raytrace", pyperformance_raytrace, 100, 6, 64, _done),
        Workload("data-pass", "half a megabyte in", data_pass, half, half[:800], 64_000, len),
        Workload("data-return", "65,536 floats out", data_return, WORDS, 100, 1_024, data_return),
    ]


def _specialise_or_not(module: ModuleType) -> None:
    """Every worker imports its functions anew, so that each is to look whether they may be specialised."""
    if "FAIRLEAD_PROBE_SPECIALISATION" in os.environ:
        import probe_specialisation

        probe_specialisation.obey(module)


_specialise_or_not(sys.modules[__name__])
