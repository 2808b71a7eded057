"""Connections to a Dask cluster, which may be one of processes on this machine."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from threadpoolctl import threadpool_info

from dpregress.display import shown
from dpregress.errors import DPRegressError, InvalidInput
from dpregress.rows.readers.failures import raise_alone
from dpregress.version import __version__

#: Cluster that is started on this machine.
LOCAL = "local"
#: Seconds until a scheduler answers, and until a first worker is there: a queue may start it.
_CONNECT, _FIRST_WORKER = 10.0, 120.0
_PACKAGES = ("numpy", "scipy", "pyarrow", "distributed")
#: Local workers add in one thread, and leave memory and disk alone.
_WORKER = (
    *("--nthreads", "1", "--no-nanny", "--memory-limit", "0", "--death-timeout", "30"),
    *("--host", "127.0.0.1", "--no-dashboard", "--dashboard-address", "127.0.0.1:0"),
)
_PAGES = "DASK_DISTRIBUTED__WORKER__HTTP__ROUTES"
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@contextmanager
def connected(cluster: Any, workers: int | None) -> Iterator[Any]:
    """A client of the cluster, which has a worker; what is opened here is closed in the end.

    Parameters
    ----------
    cluster : str, distributed.Client or cluster of Dask
    workers : int, optional
        Of a local cluster.

    Raises
    ------
    InvalidInput
        If Dask is not installed, no scheduler answers, or no worker joins.
    """
    try:
        import distributed
    except ImportError as error:
        raise InvalidInput("Dask is not installed: pip install 'dpregress[dask]'") from error
    opened: AbstractContextManager[Any]
    if isinstance(cluster, distributed.Client):
        if cluster.asynchronous:
            raise InvalidInput("the Dask client is asynchronous: give one made with asynchronous=False, or an address")
        opened = nullcontext(cluster)
    elif cluster == LOCAL:
        workers = workers or len(os.sched_getaffinity(0))
        opened = _local(workers)
    else:
        opened = _client(cluster)
    with opened as client:
        with working(f"no worker has joined {_name(cluster)}: start one"):
            client.wait_for_workers(workers or 1, timeout=_FIRST_WORKER)
        yield client


def _name(cluster: Any) -> str:
    return f"the Dask scheduler at {shown(cluster)}" if isinstance(cluster, str) else "the Dask cluster"


@contextmanager
def _client(cluster: Any, **options: Any) -> Iterator[Any]:
    import distributed

    try:
        client = distributed.Client(cluster, timeout=_CONNECT, set_as_default=False, **options)
    except Exception:  # of any kind of network or certificate
        raise_alone(InvalidInput(f"{_name(cluster)} does not answer: start it, or check address and certificates"))
    try:
        yield client
    finally:
        client.close(timeout=5)


@contextmanager
def working(said: str, kind: type[DPRegressError] = InvalidInput) -> Iterator[None]:
    """Turn an error of Dask, which may quote an argument of a task, into one line."""
    try:
        yield
    except DPRegressError:
        raise
    except Exception:
        raise_alone(kind(said))


def has_workers(client: Any) -> bool:
    """Whether the cluster is there and has a worker."""
    try:
        return client.status == "running" and bool(client.sync(client.scheduler.ncores, callback_timeout=5))
    except Exception:  # of any kind of network
        return False


# ---------------------------------------------------------------- processes on this machine


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    """A client of as many worker processes, to which nobody else on this machine can connect.

    Workers are programs of their own. Those that Dask starts itself run the main module of the caller again, which may
    fit, and charge, again.
    """
    import dask
    import distributed

    security = distributed.Security.temporary()
    nothing: dict[str, list[str]] = {"distributed.scheduler.http.routes": []}  # its pages take no certificate
    with TemporaryDirectory(prefix="dpregress-") as folder:
        options = _certificates(security, Path(folder))
        with working("the local Dask cluster did not start: try a fit without engine="), dask.config.set(nothing):
            cluster = distributed.LocalCluster(
                n_workers=0, host="127.0.0.1", security=security, dashboard_address="127.0.0.1:0", silence_logs=50
            )
        with (
            cluster,
            _processes(workers, [cluster.scheduler_address, *options, "--local-directory", folder]),
            _client(cluster.scheduler_address, security=security) as client,
        ):
            yield client


def _certificates(security: Any, folder: Path) -> list[str]:
    """Options of a worker, with the files that they name."""
    found = []
    worker = security.get_tls_config_for_role("worker")
    for name in "ca-file", "cert", "key":
        path = folder / f"{name}.pem"
        path.touch(mode=0o600)
        path.write_text(worker[name.replace("-", "_")], encoding="ascii")
        found += [f"--tls-{name}", str(path)]
    return found


@contextmanager
def _processes(workers: int, arguments: list[str]) -> Iterator[None]:
    command = [sys.executable, "-P", "-m", "distributed.cli.dask_worker", *arguments, *_WORKER]
    path = os.pathsep.join(each for each in sys.path if each)  # what can be imported here can be there
    given = {**os.environ, **dict.fromkeys(_ONE_THREAD, "1"), "PYTHONPATH": path, _PAGES: "[]"}
    none = subprocess.DEVNULL
    started: list[subprocess.Popen[bytes]] = []
    try:
        while len(started) < workers:
            started.append(subprocess.Popen(command, env=given, stdin=none, stdout=none, stderr=none))
        yield
    finally:
        for process in started:
            process.kill()
        for process in started:
            process.wait()


# ---------------------------------------------------------------- what a worker is


@cache
def software() -> str:
    """The versions on which the meaning of what is sent depends."""
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return f"Python {platform.python_version()}, dpregress {__version__}, {packages}"


@cache
def arithmetic() -> str:
    """The kind of processor and the libraries of which roundings of a row may depend."""
    libraries = [each for each in threadpool_info() if each["user_api"] == "blas"]
    blas = {(each["internal_api"], str(each.get("architecture"))) for each in libraries}
    simd: Any = np.show_config(mode="dicts")
    return repr((platform.machine(), platform.libc_ver(), simd["SIMD Extensions"]["found"], sorted(blas)))
