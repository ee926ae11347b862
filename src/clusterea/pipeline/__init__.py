"""Runs the stages in order and stores their results; contains no algorithm."""

from clusterea.pipeline.align import Stage, align, check_names
from clusterea.pipeline.device import choose_device
from clusterea.pipeline.learning import fits, num_held_out
from clusterea.pipeline.measure import measured
from clusterea.pipeline.observer import Observer, PythonWarnings, Silent
from clusterea.pipeline.previous import find_previous
from clusterea.pipeline.result import AlignmentResult
from clusterea.pipeline.run import load_run, run_in_folder

__all__ = [
    "AlignmentResult",
    "Observer",
    "PythonWarnings",
    "Silent",
    "Stage",
    "align",
    "check_names",
    "choose_device",
    "find_previous",
    "fits",
    "load_run",
    "measured",
    "num_held_out",
    "run_in_folder",
]
