"""`RayCluster`: the engine that runs units on a Ray cluster."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
import os
import platform
import queue
import secrets
import shutil
import signal
import socket
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from clusterea.engines.engine import SHARDS_PER_WORKER, OnResult, Ref
from clusterea.engines.packing import Buffer, pack, unpack
from clusterea.engines.references import replaced
from clusterea.engines.scratch import Scratch
from clusterea.errors import InputError
from clusterea.files import readable_size
from clusterea.freed_memory import give_back
from clusterea.threads import available_cpus
from clusterea.version import __version__

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Value = TypeVar("Value")
ANSWERS_WITHIN = 15.0  # seconds; in which a cluster must accept a connection
STARTS_WITHIN = 120.0  # seconds; in which it must accept the driver and start a worker on each node
ENDS_WITHIN = 20.0  # seconds; that a call gets to end, after its tasks were canceled
MOST_RETRIES = 5  # of a unit whose worker or node is lost
POLL = 0.5  # seconds between two looks at the results that are there
_LOOPBACK = ("127.", "::1", "localhost")
_ADVICE = " Does a cluster run there, and is its token in RAY_AUTH_TOKEN, with RAY_AUTH_MODE=token?"
_LONGEST_FOLDER = 40  # characters; the path of a Unix socket in it may have 107
# For a Ray that is started here. It listens on all interfaces of a machine that may be part of a
# cluster. The first is a setting for macOS and Windows, but Linux follows it too: then it listens
# on loopback only.
_ALONE = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    # Where all shared memory is in use, Ray would wait 2 s each time before it takes a file.
    "RAY_oom_grace_period_s": "0",
}
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # with another value it warns
}


class RayCluster:
    """Runs units on the workers of a Ray cluster, one CPU each; Ray repeats what is lost."""

    is_here = False

    def __init__(
        self,
        shards: int | None = None,
        address: str | None = None,
        folder: Path | None = None,
        warn: Callable[[str], None] | None = None,
        *,
        cpus: int | None = None,
        store: int | None = None,
    ) -> None:
        """Connects to a cluster, or starts Ray on this machine, and checks the workers.

        Args:
            shards: That the work is cut into; None: as many as the sizes ask for.
            address: HOST:PORT of the cluster; None: start Ray here, until `close`.
            folder: Gets a folder of temporary files; None: where the system has them.
            warn: Gets warnings.
            cpus: Of a Ray that is started here; default: those of this process.
            store: Bytes of shared memory of a Ray that is started here; default: Ray's.
        """
        self.shards = shards
        self._scratch = Scratch(folder)
        self._held: weakref.WeakSet[_Held] = weakref.WeakSet()
        self._caller = _Caller()
        self._end = contextlib.ExitStack()  # what `close` does, last first
        self._end.callback(self._caller.end)
        self._end.callback(self._scratch.close)
        if address is not None:
            _check_answers(address)
        try:
            self._ray = self._connected(address, cpus, store)
            self._end.callback(self._cancel)
            self._nodes = [
                _Node.of(row)
                for row in self._aside(self._ray.nodes, within=STARTS_WITHIN)
                if row["Alive"] and row["Resources"].get("CPU")
            ]
            if not self._nodes:
                raise InputError(f"the Ray cluster at {address} has no node with a CPU.")
            self._warn_of_exposure(address, warn)
            self._run = self._ray.remote(num_cpus=1, max_retries=MOST_RETRIES)(_run)
            self._check_versions()
        except BaseException:
            self.close()
            raise

    # ---- the protocol

    def put(self, value: Any) -> Ref:
        return self._hold(self._aside(lambda: self._ray.put(_Parcel(value))))

    def submit(self, unit: Callable[..., Any], *arguments: Any) -> Ref:
        return self._hold(self._submitted(None, unit, arguments))

    def submit_parts(self, parts: int, unit: Callable[..., Any], *arguments: Any) -> list[Ref]:
        found = self._submitted(parts, unit, arguments)
        return [self._hold(ref) for ref in (found if parts > 1 else [found])]

    def get(self, refs: Sequence[Ref], done: OnResult | None = None) -> list[Any]:
        wanted = [ref.ref for ref in refs]
        if done is not None:
            self._wait(wanted, done)
        return self._aside(lambda: self._ray.get(wanted))

    def empty(self, shape: Sequence[int], kind: torch.dtype) -> Tensor:
        return self._scratch.empty(shape, kind)

    def close(self) -> None:
        self._end.close()

    # ---- memory

    @property
    def memory_per_worker(self) -> int:
        """The bytes of memory of each worker, without shared memory, where they are fewest."""
        return min(node.memory // node.workers for node in self._nodes)

    def fit(self, needed: Callable[[int], int]) -> None:
        allowed, workers = self.memory_per_worker, sum(node.workers for node in self._nodes)
        shards = self.shards or SHARDS_PER_WORKER * workers
        enough = shards
        while needed(enough) > allowed and needed(2 * enough) < needed(enough):
            enough *= 2
        if needed(enough) > allowed or (self.shards is not None and enough > shards):
            self._refuse(needed(shards), enough if needed(enough) <= allowed else None)
        self.shards = enough

    def _refuse(self, needed: int, enough: int | None) -> None:
        """Raises: a worker has less memory than a unit needs. So many shards are enough."""
        least = min(self._nodes, key=lambda node: node.memory // node.workers)
        advice = "" if enough is None else f"--shards {enough}, or "
        raise InputError(
            f"a shard needs about {readable_size(needed)} of memory, but {least.address} has "
            f"{readable_size(self.memory_per_worker)} for each of its {least.workers} workers. "
            f"Use {advice}machines with more memory per CPU."
        )

    # ---- Ray

    def _connected(self, address: str | None, cpus: int | None, store: int | None) -> Any:
        """Ray, connected."""
        logging.getLogger("ray").setLevel(logging.ERROR)  # `ray.init` does it too late
        if address is None:
            self._end.enter_context(_environment({**_QUIET, **_ALONE, **_new_token()}))
        else:
            self._end.enter_context(_environment(_QUIET))
        ray = _imported()
        if ray.is_initialized():
            if address is not None:
                raise InputError("--address: this process is connected to a Ray cluster already.")
            return ray
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        if address is None:
            _refresh_authentication()
            here = _short_folder()
            self._end.callback(shutil.rmtree, here, ignore_errors=True)
            options |= {
                "address": "local",
                "num_cpus": cpus or available_cpus(),
                "num_gpus": 0,
                "include_dashboard": False,
                "object_store_memory": store,
                "object_spilling_directory": str(self._scratch.made()),
                "_temp_dir": str(here),
            }
        else:
            options["address"] = address
        self._end.enter_context(_without_messages())
        self._end.callback(ray.shutdown)
        self._end.callback(self._settle)
        where = "this machine" if address is None else address
        try:
            self._aside(lambda: ray.init(**options), within=STARTS_WITHIN)
        except TimeoutError as error:
            raise InputError(
                f"Ray at {where} did not answer within {STARTS_WITHIN:.0f} s."
            ) from error
        except (ray.exceptions.RayError, ConnectionError, RuntimeError) as error:
            advice = "" if address is None else _ADVICE
            raise InputError(f"Ray can't be used: {_first_line(error)}{advice}") from error
        _restore_signals()
        return ray

    def _submitted(
        self, parts: int | None, unit: Callable[..., Any], arguments: Sequence[Any]
    ) -> Any:
        """Ray's references to the results. Ray finds its references only among the arguments."""
        refs: list[Any] = []

        def numbered(held: _Held) -> _Slot:
            refs.append(held.ref)
            return _Slot(len(refs) - 1)

        parcel = _Parcel(replaced(tuple(arguments), _Held, numbered))
        name = getattr(unit, "__qualname__", "unit")
        run = self._run.options(num_returns=parts or 1, name=name)
        return self._aside(lambda: run.remote(unit, parts, parcel, *refs))

    def _hold(self, ref: Any) -> _Held:
        held = _Held(ref)
        self._held.add(held)
        return held

    def _wait(self, wanted: Sequence[Any], done: OnResult) -> None:
        missing = list(dict.fromkeys(wanted))
        while missing:
            look = partial(
                self._ray.wait,
                missing,
                num_returns=len(missing),
                timeout=POLL,
                fetch_local=False,
            )
            ready, missing = self._aside(look)
            if ready:
                done(len(wanted) - len(missing), len(wanted))

    def _aside(self, call: Callable[[], Value], within: float | None = None) -> Value:
        """The result of a call to Ray, in the thread for calls to Ray.

        A signal can't raise where Ray waits. In a thread, Ray waits, and signals raise here.
        """
        result = self._caller.begin(call)
        try:
            return result.result(within)
        except TimeoutError:
            raise
        except Exception as error:
            raise _own(error) from None

    def _cancel(self) -> None:
        """Ends the tasks that still run, and so the call that waits for them."""
        for held in list(self._held):
            with suppress(Exception):  # one that was put, or is lost
                self._ray.cancel(held.ref, force=True)
            held.ref = None  # in another session of Ray, it would be that of another object

    def _settle(self) -> None:
        """Waits for the call that runs. Half started, Ray could not be shut down."""
        with suppress(TimeoutError):
            self._caller.begin(lambda: None).result(ENDS_WITHIN)

    # ---- checks

    def _check_versions(self) -> None:
        """Raises if a worker has not the versions of this process."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        own = own_versions()

        # Inside this function, so that Ray sends its code: a node may have no clusterea.
        def probe() -> dict[str, str]:
            from clusterea.engines.ray_cluster import own_versions

            return own_versions()

        remote = self._ray.remote(num_cpus=0, max_retries=MOST_RETRIES)(probe)
        for node in self._nodes:
            here = NodeAffinitySchedulingStrategy(node.key, soft=False)
            try:
                ref = self._aside(remote.options(scheduling_strategy=here).remote)
                found = self._aside(partial(self._ray.get, ref), within=STARTS_WITHIN)
            except TimeoutError as error:
                raise InputError(
                    f"no worker started on {node.address} within {STARTS_WITHIN:.0f} s."
                ) from error
            except ImportError as error:
                raise InputError(
                    f"the workers on {node.address} can't import clusterea ({error}). Install "
                    f"clusterea {__version__} on all machines of the cluster."
                ) from error
            for name, version in own.items():
                if found[name] != version:
                    raise InputError(
                        f"the workers on {node.address} have {name} {found[name]}, but this process"
                        f" has {name} {version}. Results would differ: install the same version."
                    )

    def _warn_of_exposure(self, address: str | None, warn: Callable[[str], None] | None) -> None:
        if warn is None or address is not None:
            return
        for node in self._nodes:
            if not node.address.startswith(_LOOPBACK):
                warn(
                    f"Ray listens on {node.address} and all other addresses of this machine; a "
                    "random token protects it."
                )


class _Caller:
    """A thread that calls one function after the other.

    It lives until `end`: the processes that `ray.init` starts end with the thread that called it.
    """

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None]
        self._queue = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="ray-calls").start()

    def begin(self, call: Callable[[], Value]) -> Future[Value]:
        result: Future[Value] = Future()
        self._queue.put((result, call))
        return result

    def end(self) -> None:
        self._queue.put(None)

    def _run(self) -> None:
        while (asked := self._queue.get()) is not None:
            result, call = asked
            try:
                result.set_result(call())
            except BaseException as error:
                result.set_exception(error)
            del asked, result, call  # they would hold results until the next call


@dataclass(frozen=True, slots=True)
class _Node:
    """A machine of the cluster."""

    key: str
    address: str
    workers: int
    memory: int  # bytes, of all workers, without shared memory

    @classmethod
    def of(cls, row: dict[str, Any]) -> _Node:
        resources = row["Resources"]
        workers = max(1, int(resources["CPU"]))
        memory = int(resources.get("memory", 0))
        return cls(row["NodeID"], row["NodeManagerAddress"], workers, memory)


class _Held:
    """A reference. Unlike Ray's own, it can be referred to weakly."""

    __slots__ = ("__weakref__", "ref")

    def __init__(self, ref: Any) -> None:
        self.ref = ref


@dataclass(frozen=True, slots=True)
class _Slot:
    """The place of a reference among arguments."""

    number: int


class _Parcel:
    """A value on its way to Ray. Who receives it gets the value, in shared memory."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __reduce_ex__(self, protocol: Any) -> Any:
        import pickle

        pickled, buffers = pack(self._value)
        return _received, (pickled, *map(pickle.PickleBuffer, buffers))


def _received(pickled: bytes, *buffers: Buffer) -> Any:
    return unpack(pickled, buffers)


def _run(unit: Callable[..., Any], parts: int | None, arguments: Any, *values: Any) -> Any:
    """Runs a unit, in a worker. Ray has replaced references by values."""
    import torch

    if torch.get_num_threads() != 1:
        torch.set_num_threads(1)
    given = replaced(arguments, _Slot, lambda slot: values[slot.number])
    give_back()  # else a worker would keep what its largest unit took
    try:
        found = unit(*given)
    except InputError as error:
        raise InputError(str(error)) from error  # others can't be pickled
    give_back()  # before Ray copies the result
    if parts is None:
        return _Parcel(found)
    parcels = [_Parcel(part) for part in found]
    assert len(parcels) == parts
    return parcels if parts > 1 else parcels[0]


def own_versions() -> dict[str, str]:
    """The versions that results depend on."""
    return {
        "clusterea": __version__,
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "torch": importlib.metadata.version("torch").partition("+")[0],
    }


def _own(error: Exception) -> Exception:
    """What a unit raised, or what Ray's error means."""
    import ray

    kinds = ray.exceptions
    if not isinstance(error, kinds.RayError):
        return error
    cause: Any = error
    while isinstance(cause, kinds.RayTaskError) and isinstance(cause.cause, Exception):
        cause = cause.cause
    if not isinstance(cause, kinds.RayError):
        return cause  # type: ignore[no-any-return]
    if isinstance(cause, kinds.OutOfMemoryError | kinds.ObjectStoreFullError):
        return InputError(f"Ray ran out of memory: {_first_line(cause)} Use more --shards.")
    lost = (
        kinds.WorkerCrashedError,
        kinds.NodeDiedError,
        kinds.ObjectLostError,
        kinds.LocalRayletDiedError,
    )
    if isinstance(cause, lost):
        return InputError(
            f"the Ray cluster lost a unit of work too often: {_first_line(cause)} More --shards "
            "take less memory per worker."
        )
    return cause


def _first_line(error: BaseException) -> str:
    line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    line = line or type(error).__name__
    return line if line.endswith(".") else f"{line}."


def _imported() -> Any:
    try:
        import ray
    except ImportError as error:
        raise InputError(
            "--engine ray needs Ray, which is not installed. Install it with pip install "
            "'clusterea[ray]'."
        ) from error
    return ray


def _check_answers(address: str) -> None:
    """Raises if nothing accepts connections at the address."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), ANSWERS_WITHIN).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address}. Start one with `ray start --head`, and give its "
            "address."
        ) from error


def _new_token() -> dict[str, str]:
    """The environment with which Ray asks for a token that only we and our workers have."""
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _refresh_authentication() -> None:
    """Makes Ray read the token again, if it was imported before."""
    with suppress(ImportError, AttributeError):
        import ray._raylet

        inner: Any = ray._raylet
        inner.Config.initialize("")
        inner.AuthenticationTokenLoader.instance().reset_cache()


def _short_folder() -> Path:
    """A new folder for Ray's sockets and logs."""
    usual = tempfile.gettempdir()
    place = usual if len(usual) <= _LONGEST_FOLDER else "/tmp"  # noqa: S108  # mkdtemp is safe
    return Path(tempfile.mkdtemp(prefix="clusterea-", dir=place))


def _restore_signals() -> None:
    """Gives signals back to Python: Ray's handlers print where the program was."""
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            handler = signal.getsignal(number)
            if handler is not None:
                signal.signal(number, handler)


@contextmanager
def _without_messages() -> Iterator[None]:
    """Drops what Ray tells of lost workers, which it prints to standard output in any case."""
    import ray._private.worker

    inner: Any = ray._private.worker
    before = getattr(inner, "print_to_stdstream", None)
    inner.print_to_stdstream = lambda *_, **__: None
    try:
        yield
    finally:
        inner.print_to_stdstream = before


@contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Sets variables, and sets them back."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
