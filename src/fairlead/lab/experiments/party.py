"""The same tasks under every method of running them: threads, processes, interpreters, pools."""

EXPERIMENT = {
    "id": "party",
    "size_name": "tasks",
    "smallest": 1,
    "growth": False,
    "ways": "method",
    "base": "sequential",
    "cases": {
        "fib": {
            "title": "Pool party: a recursive function",
            "question": "Which method runs a function of nothing but calls and sums the fastest?",
            "explanation": (
                "fib(28) needs nothing but the interpreter: a number in, a number out. Threads under a GIL "
                "take as long as no threads do. Processes and interpreters have a GIL each and use all "
                "cores, less the time it takes to start them; without a GIL threads do as well, if that "
                "build's single thread is not too slow."
            ),
            "sizes": {"quick": [40], "standard": [64], "full": [64]},
            "claims": [
                {
                    "topic": "threads, processes",
                    "of": {
                        "method": "processes-fork",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "over": {
                        "method": "threads",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "more_than": 1.1,
                    "says": "{n} tasks are faster in threads than in processes",
                    "otherwise": "{n} tasks are no faster in threads than in processes",
                    "main": False,
                },
                {
                    "topic": "threads, interpreters",
                    "of": {
                        "method": "interpreters-channel",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "over": {
                        "method": "threads",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "more_than": 1.1,
                    "says": "{n} tasks are faster in threads than in interpreters",
                    "otherwise": "{n} tasks are no faster in threads than in interpreters",
                    "main": False,
                },
            ],
        },
        "fib2": {
            "title": "Pool party: a recursive function that counts",
            "question": "What does it cost if every call updates an attribute of the task's own object?",
            "explanation": (
                "As party.fib, and each of its 1,028,457 calls looks up and updates an attribute of an "
                "object that its task has made and no other thread uses. What threads without a GIL still "
                "share is the object's class: where the look-up counts references to it, their cores take "
                "that from each other on every call, and more threads can take longer than one. Processes "
                "and interpreters have a class each."
            ),
            "sizes": {"quick": [12], "standard": [32], "full": [64]},
        },
        "nbody": {
            "title": "Pool party: bodies that all tasks share",
            "question": "How fast, and how wrong, are tasks that change the same objects?",
            "explanation": (
                "Every task puts five bodies in their places and moves them; the bodies belong "
                "to the module, so that tasks of one interpreter that run at the same time move the same "
                "ones. Then the energy comes out wrong: the GIL does not help, for it changes hands in the "
                "midst of a task. Processes and interpreters, one task at a time in each, are right. A "
                "method with wrong answers is no candidate, however fast it is."
            ),
            "sizes": {"quick": [10], "standard": [32], "full": [100]},
            "parameters": {
                "steps": {
                    "default": 32000,
                    "choices": [
                        2000,
                        4000,
                        8000,
                        12000,
                        16000,
                        24000,
                        32000,
                        48000,
                        64000,
                        96000,
                        128000,
                        192000,
                    ],
                    "help": "how far a task moves the bodies: calibrated, so that it takes 0.1 s or a little more",
                },
            },
            "calibrated": {
                "parameter": "steps",
                "seconds": 1.0,
                "of": {"experiment": "party.nbody", "method": "sequential"},
            },
        },
        "nbody-unshared": {
            "title": "Pool party: bodies of the task's own",
            "question": "Which method is the fastest for tasks that change many objects of their own?",
            "explanation": (
                "As party.nbody with bodies that belong to the task: all answers are right, and what is "
                "measured is attributes and floating-point numbers. What it takes longer than there, if it "
                "does, it spends on making bodies; what threads without a GIL gain, they gain because no "
                "two of them touch the same objects."
            ),
            "sizes": {"quick": [10], "standard": [32], "full": [100]},
            "parameters": {
                "steps": {
                    "default": 32000,
                    "choices": [
                        2000,
                        4000,
                        8000,
                        12000,
                        16000,
                        24000,
                        32000,
                        48000,
                        64000,
                        96000,
                        128000,
                        192000,
                    ],
                    "help": "how far a task moves the bodies: calibrated, so that it takes 0.1 s or a little more",
                },
            },
            "calibrated": {
                "parameter": "steps",
                "seconds": 1.0,
                "of": {"experiment": "party.nbody", "method": "sequential"},
            },
        },
        "raytrace": {
            "title": "Pool party: a picture of rays",
            "question": "Which method is the fastest for tasks that make many small objects?",
            "explanation": (
                "Each task follows the rays of a picture of 100 x 100 pixels: method calls, and a new tuple "
                "for each vector. Little goes in, one number comes out, and what it takes is the same for "
                "all: of the workloads here the one that is nearest to what people compute, and the one in "
                "which methods differ by nothing but their workers."
            ),
            "sizes": {"quick": [4], "standard": [16], "full": [64]},
        },
        "pyperformance-nbody": {
            "title": "Pool party: pyperformance's nbody",
            "question": "Which method runs pyperformance's nbody, of 10 iterations a task, the fastest?",
            "explanation": (
                "The program that the published party was held with, taken from the package pyperformance. "
                "Its bodies belong to a module, and each task moves them on by 10 iterations: tasks of one "
                "interpreter change the same lists of floats. An answer counts as wrong if the energy is far "
                "off. A task is so short that starting and feeding the workers is most of what is measured; "
                "party.nbody has long ones."
            ),
            "sizes": {"quick": [64], "standard": [64], "full": [64]},
        },
        "pyperformance-raytrace": {
            "title": "Pool party: pyperformance's raytrace",
            "question": "Which method renders pyperformance's picture of 100 x 100 pixels the fastest?",
            "explanation": (
                "The program that the published party was held with, taken from the package pyperformance. "
                "Each task builds the scene, and sends a ray through each pixel: objects with attributes and "
                "many method calls, where party.raytrace has tuples. Nothing is shared by tasks but the "
                "classes, and the picture stays where it was rendered."
            ),
            "sizes": {"quick": [4], "standard": [16], "full": [64]},
        },
        "data-pass": {
            "title": "Pool party: half a megabyte in",
            "question": "What does it cost to hand 0.5 MB to a task that does nothing with it?",
            "explanation": (
                "Nothing is computed, so that all of the time is what the method costs. A thread is given a "
                "reference. A process is sent the bytes: pickled, written, read. An interpreter is given a "
                "view of them and makes a copy."
            ),
            "sizes": {"quick": [400], "standard": [4000], "full": [64000]},
            "claims": [
                {
                    "topic": "passing, processes",
                    "of": {
                        "method": "processes-fork",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "over": {
                        "method": "threads",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "more_than": 1.1,
                    "says": "what is passed {n} times goes faster to threads than to processes",
                    "otherwise": "what is passed {n} times goes no faster to threads than to processes",
                    "main": False,
                },
                {
                    "topic": "passing, interpreters",
                    "of": {
                        "method": "interpreters-channel",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "over": {
                        "method": "threads",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "more_than": 1.1,
                    "says": "what is passed {n} times goes faster to threads than to interpreters",
                    "otherwise": "what is passed {n} times goes no faster to threads than to interpreters",
                    "main": False,
                },
            ],
        },
        "data-return": {
            "title": "Pool party: 65,536 floats out",
            "question": "What does it cost to get a list of 65,536 floats back from a task?",
            "explanation": (
                "The other reading of passing data: objects come back, and not bytes. A thread returns a "
                "reference to the list. From a process or an interpreter each of the floats is written, "
                "read and made anew, by the one thread that takes the results."
            ),
            "sizes": {"quick": [32], "standard": [128], "full": [1024]},
            "claims": [
                {
                    "topic": "passing, processes",
                    "of": {
                        "method": "processes-fork",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "over": {
                        "method": "threads",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "more_than": 1.1,
                    "says": "what is passed {n} times goes faster to threads than to processes",
                    "otherwise": "what is passed {n} times goes no faster to threads than to processes",
                    "main": False,
                },
                {
                    "topic": "passing, interpreters",
                    "of": {
                        "method": "interpreters-channel",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "over": {
                        "method": "threads",
                        "task": "whole",
                        "specialisation": "on",
                        "workers": "cores",
                    },
                    "more_than": 1.1,
                    "says": "what is passed {n} times goes faster to threads than to interpreters",
                    "otherwise": "what is passed {n} times goes no faster to threads than to interpreters",
                    "main": False,
                },
            ],
        },
    },
    "metrics": [
        {"name": "cpu_share", "title": "CPU, all cores", "unit": "share"},
        {"name": "peak_kb", "title": "memory", "unit": "KiB"},
        {"name": "gil_share", "title": "GIL held", "unit": "share"},
        {"name": "wrong_answers", "title": "wrong", "unit": "count"},
    ],
    "claims": [
        {
            "topic": "processes",
            "of": {"method": "sequential", "task": "whole", "specialisation": "on"},
            "over": {"method": "processes-fork", "task": "whole", "specialisation": "on"},
            "more_than": 1.1,
            "says": "{n} tasks are faster in processes than one after the other",
            "otherwise": "{n} tasks are no faster in processes than one after the other",
            "main": False,
        },
        {
            "topic": "threads",
            "of": {"method": "threads", "task": "whole", "specialisation": "on"},
            "over": {"method": "sequential", "task": "whole", "specialisation": "on"},
            "more_than": 1.1,
            "says": "{n} tasks are slower in threads than one after the other",
            "otherwise": "{n} tasks are no slower in threads than one after the other",
            "main": False,
        },
        {
            "topic": "interpreters",
            "of": {"method": "sequential", "task": "whole", "specialisation": "on"},
            "over": {"method": "interpreters-channel", "task": "whole", "specialisation": "on"},
            "more_than": 1.1,
            "says": "{n} tasks are faster in interpreters than one after the other",
            "otherwise": "{n} tasks are no faster in interpreters than one after the other",
            "main": False,
        },
        {
            "topic": "16 workers",
            "of": {"method": "threads", "task": "whole", "specialisation": "on", "workers": "cores"},
            "over": {"method": "threads", "task": "whole", "specialisation": "on", "workers": 16},
            "more_than": 1.1,
            "says": "{n} tasks are faster in 16 threads than in as many as there are cores",
            "otherwise": "{n} tasks are no faster in 16 threads than in as many as there are cores",
            "main": False,
        },
    ],
    "parameters": {
        "method": {
            "default": "sequential",
            "choices": [
                "sequential",
                "threads",
                "thread-pool",
                "futures",
                "processes-fork",
                "processes-spawn",
                "processes-forkserver",
                "interpreters-channel",
                "interpreters-call",
                "fairlead-threads",
                "fairlead-processes",
                "fairlead-interpreters",
                "fairlead-auto",
            ],
            "help": "what runs the tasks; on a free-threaded build those of threads run without a GIL",
        },
        "workers": {
            "default": "cores",
            "choices": ["cores", "4 x cores + 1", 16],
            "help": "how many threads, processes or interpreters run them",
        },
        "task": {
            "default": "whole",
            "choices": ["whole", "tiny"],
            "help": "how much one task does: as much as it is known by, or next to nothing",
        },
        "specialisation": {
            "default": "on",
            "choices": ["on", "off"],
            "help": "off: the tasks run without CPython's specialised instructions (not on 3.12)",
        },
    },
    "variants": [
        {"label": "sequential", "params": {"method": "sequential"}},
        {"label": "threads", "params": {"method": "threads"}},
        {"label": "thread-pool", "params": {"method": "thread-pool"}, "modes": ["standard", "full"]},
        {"label": "futures", "params": {"method": "futures"}, "modes": ["standard", "full"]},
        {"label": "processes-fork", "params": {"method": "processes-fork"}},
        {"label": "processes-spawn", "params": {"method": "processes-spawn"}, "modes": ["standard", "full"]},
        {
            "label": "processes-forkserver",
            "params": {"method": "processes-forkserver"},
            "modes": ["standard", "full"],
        },
        {"label": "interpreters-channel", "params": {"method": "interpreters-channel"}},
        {
            "label": "interpreters-call",
            "params": {"method": "interpreters-call"},
            "modes": ["standard", "full"],
        },
        {
            "label": "fairlead-threads",
            "params": {"method": "fairlead-threads"},
            "modes": ["standard", "full"],
        },
        {
            "label": "fairlead-processes",
            "params": {"method": "fairlead-processes"},
            "modes": ["standard", "full"],
        },
        {"label": "fairlead-interpreters", "params": {"method": "fairlead-interpreters"}},
        {"label": "fairlead-auto", "params": {"method": "fairlead-auto"}, "modes": ["standard", "full"]},
        {
            "label": "thread-pool, 16 workers",
            "params": {"method": "thread-pool", "workers": 16},
            "modes": ["full"],
        },
        {"label": "threads, 16 workers", "params": {"method": "threads", "workers": 16}, "modes": ["full"]},
        {
            "label": "processes-fork, 16 workers",
            "params": {"method": "processes-fork", "workers": 16},
            "modes": ["full"],
        },
        {
            "label": "sequential, not specialised",
            "params": {"method": "sequential", "specialisation": "off"},
            "modes": ["full"],
        },
        {
            "label": "threads, not specialised",
            "params": {"method": "threads", "specialisation": "off"},
            "modes": ["full"],
        },
    ],
    "timeout_s": 600,
    "pythons": ">=3.8",
}

import probe  # noqa: E402
import probe_methods  # noqa: E402
import probe_workloads  # noqa: E402


def measure(params):
    if params["specialisation"] == "off":
        import probe_specialisation

        probe_specialisation.begin()
    module = probe_workloads
    (work,) = [work for work in probe_workloads.catalogue() if work.name == params["case"]]
    if work.name.startswith("pyperformance-"):
        if not probe_workloads.has_pyperformance():
            raise probe.Skipped("needs the package pyperformance in the interpreter that is measured")
        # read here, because that is no part of the time
        module = probe_workloads.pyperformance(work.name.partition("-")[2])
    item = params.get("steps", work.item) if params["task"] == "whole" else work.small
    workers = {"cores": probe.cores(), "4 x cores + 1": 4 * probe.cores() + 1}.get(params["workers"], 16)
    items = [item] * params["n"]
    answer = work.answer(item)
    result = probe_methods.measure(params["method"], work.function, items, answer, workers)
    if params["specialisation"] == "off" and (share := probe_specialisation.share(module)):
        raise probe.Failed("%.0f %% of the instructions have been specialised" % (100 * share))
    return result


if __name__ == "__main__":
    probe.main(EXPERIMENT, measure)
