"""`repeated`: a step that is run many times, on a GPU as a graph of its kernels."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import torch

WARM = 3  # steps before the capture, in which libraries take their workspaces


def repeated(step: Callable[[], None], times: int, drop: torch.Generator) -> None:
    """Runs a step so many times.

    On a GPU its kernels are captured once and launched as one graph. Launching small kernels one by
    one from Python takes longer than they run. Where they can't be captured, each step is run.

    Args:
        step: Changes tensors in place, and nothing else. It must not wait for a GPU: that can't be
            captured.
        times: How often.
        drop: The only generator that the step draws from; its device is where the step runs.
    """
    device = drop.device
    if device.type != "cuda":
        for _ in range(times):
            step()
        return
    here, aside = torch.cuda.current_stream(device), torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    aside.wait_stream(here)
    with torch.cuda.stream(aside):
        graph = None
        for done in range(times):
            if done == WARM:
                graph = _captured(step, drop)
            if graph is None:
                step()
            else:
                graph.replay()
    here.wait_stream(aside)


def _captured(step: Callable[[], None], drop: torch.Generator) -> torch.cuda.CUDAGraph | None:
    """The kernels of a step, which are not run; None if they can't be captured."""
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(drop)
    torch.cuda.synchronize(drop.device)
    graph.capture_begin(capture_error_mode="thread_local")  # other threads may use the GPU
    try:
        step()
    except RuntimeError:
        with suppress(RuntimeError):
            graph.capture_end()
        return None
    try:
        graph.capture_end()
    except RuntimeError:
        return None
    return graph
