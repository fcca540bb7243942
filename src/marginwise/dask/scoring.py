"""predict_files: score many files on a Dask cluster."""

from __future__ import annotations

import os
import pickle
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import dask
import joblib
from distributed import KilledWorker, as_completed
from sklearn.utils.validation import check_is_fitted

from marginwise._checks import check_arguments, threads
from marginwise.dask.clients import connected
from marginwise.dask.scoring_records import Record
from marginwise.dask.scoring_tasks import Job, Outcome, Scorer, score_file, unpack
from marginwise.dask.versions import check_workers, installed_version
from marginwise.data.errors import DataError
from marginwise.data.modelled import Layout, drop_names, split_model
from marginwise.data.recognise import expand
from marginwise.data.sniff import kind_of
from marginwise.model_io import load
from marginwise.removal.digest import model_digest

TYPED = {".parquet", ".pq", ".arrow", ".feather", ".ipc"}  # names of files with typed columns
TEXT = {".csv", ".tsv", ".txt", ".json", ".jsonl", ".ndjson", ".svm", ".npy", ".npz"}
PACKED = {".gz", ".zst", ".zstd"}


@dataclass
class ScoringReport:
    """Result of `predict_files`.

    Parameters
    ----------
    written : list of str
        Outputs that were written.
    skipped : list of str
        Complete outputs of an earlier call with the same model and input.
    failed : dict
        Error message for each input that could not be scored.
    rows : int
        Number of rows that were predicted.
    seconds : float
        Duration of the call.

    See Also
    --------
    predict_files : Score files on a Dask cluster.

    Examples
    --------
    >>> from marginwise.dask import ScoringReport
    >>> report = ScoringReport(["out/a.csv"], [], {}, rows=1000, seconds=0.5)
    >>> f"{report.rows / report.seconds:.0f} rows/s"
    '2000 rows/s'
    """

    written: list[str]
    skipped: list[str]
    failed: dict[str, str]
    rows: int
    seconds: float


class ScoringError(DataError):
    """Error raised if some files could not be scored.

    Parameters
    ----------
    report : ScoringReport
        Report on all files, including the files that were scored.
    """

    def __init__(self, report: ScoringReport) -> None:
        total = len(report.failed) + len(report.written) + len(report.skipped)
        first = next(iter(report.failed.values()))
        super().__init__(
            f"{len(report.failed)} of {total} files could not be scored; the predictions of the "
            f"others are complete. {first}"
        )
        self.report = report

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.report,)


def predict_files(
    model: Any,
    inputs: Any,
    folder: str | os.PathLike[str],
    *,
    client: Any = None,
    scores: bool = False,
    proba: bool = False,
    n_jobs: int = 1,
    force: bool = False,
    progress: Callable[[ScoringReport, int], None] | None = None,
    **layout: Any,
) -> ScoringReport:
    r"""Score files on a Dask cluster.

    Each input file is one task, which reads the file once, in chunks, and writes one output file
    with predictions. An output file appears only when it is complete. Workers must be able to
    access the files under the same paths as this process. After an interruption, repeat the call:
    complete outputs of the same model and the same input are skipped.

    Parameters
    ----------
    model : estimator, Pipeline, str or path-like
        Fitted model, or the path of a model file.
    inputs : str, path-like or list of them
        Files, glob patterns or folders. Rows are read as by :func:`marginwise.data.open_source`.
    folder : str or path-like
        Folder of the outputs, which is created if it does not exist. The output of a Parquet or
        Arrow file ``a.parquet`` is ``a.parquet``; the output of any other file such as ``b.svm`` or
        ``b.csv.gz`` is ``b.csv``. The columns are ``label``, followed by decision values and
        probabilities if requested. The order of rows is preserved.
    client : distributed.Client or str, default=None
        Connection to the cluster, or the address of its scheduler. None uses the current client or,
        if there is none, starts workers on this machine for the duration of the call.
    scores : bool, default=False
        Whether to write decision values: the column ``score`` for two classes, or ``score_a`` for
        each class.
    proba : bool, default=False
        Whether to write probabilities: the column ``p_a`` for each class. Requires a model with
        `calibration`.
    n_jobs : int, default=1
        Number of threads per task. Each worker runs as many tasks in parallel as it has threads.
    force : bool, default=False
        Whether to replace files in `folder` that were not written by an earlier call.
    progress : callable, default=None
        Function called as ``progress(report, total)`` after each file, with the current report and
        the total number of files.
    **layout : dict
        Keyword arguments ``label``, ``zero_based``, ``header`` and ``missing`` of
        :func:`marginwise.data.open_source`. Labels are ignored.

    Returns
    -------
    report : ScoringReport
        Lists of written and skipped outputs, and the number of rows.

    Raises
    ------
    ScoringError
        If files could not be read or written. The other files are scored, and the attribute
        `report` of the exception contains a message for each failed file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from distributed import Client
    >>> from marginwise import OnlineSVC
    >>> from marginwise.dask import predict_files
    >>> model = OnlineSVC(gamma=1.0).fit([[0.0], [1.0]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "new.svm").write_text("0 1:0.1\n0 1:0.9\n")
    ...     with Client(processes=False, dashboard_address=":0") as client:
    ...         report = predict_files(model, f"{folder}/*.svm", f"{folder}/out", client=client)
    ...     text = (Path(folder) / "out" / "new.csv").read_text()
    >>> report.rows, text.split()
    (2, ['label', 'a', 'b'])
    """
    began, report = time.monotonic(), ScoringReport([], [], {}, 0, 0.0)
    fitted, digest = _prepared(model, n_jobs, proba)
    jobs = _jobs(inputs, folder, _layout(**layout), scores, proba)
    with connected(client) as cluster:
        check_workers(cluster)
        record = _open_folder(Path(folder))
        origins = {job: _origin(job, digest) for job in jobs}
        todo = _unfinished(jobs, origins, record, report, force)
        for job, outcome in _run(cluster, fitted, todo):
            _note(job, outcome, origins[job], record, report)
            report.seconds = time.monotonic() - began
            if progress is not None:
                progress(report, len(jobs))
    report.seconds = time.monotonic() - began
    if report.failed:
        raise ScoringError(report)
    return report


# -- the model -------------------------------------------------------------------------------------


def _prepared(model: Any, n_jobs: int, proba: bool) -> tuple[bytes, str]:
    """Return a pickled copy of a model, and a digest that identifies its predictions."""
    check_arguments({"n_jobs": threads()}, n_jobs=n_jobs)
    if isinstance(model, str | os.PathLike):
        model = load(model)
    copy = pickle.loads(pickle.dumps(model))  # the caller's model keeps its parameters
    _, estimator = split_model(copy)
    check_is_fitted(estimator)
    if proba and getattr(estimator, "calibration", None) is None:
        raise ValueError(
            "the model has no probabilities: it was trained without calibration. Train it with "
            "calibration='sigmoid', or pass scores=True instead of proba=True."
        )
    _set_threads(estimator, None)
    digest = _digest(copy)
    _set_threads(estimator, n_jobs)
    names = drop_names(copy)
    return pickle.dumps(Scorer(copy, names)), digest


def _set_threads(estimator: Any, n_jobs: int | None) -> None:
    if "n_jobs" in estimator.get_params(deep=False):
        estimator.set_params(n_jobs=n_jobs)


def _digest(model: Any) -> str:
    try:
        return model_digest(model)
    except (ValueError, TypeError):  # a model that `save` does not support
        return str(joblib.hash(model))


# -- the files -------------------------------------------------------------------------------------


def _layout(missing: Collection[str] = (), **given: Any) -> Layout:
    return Layout(missing=tuple(missing), **given)


def _jobs(
    inputs: Any, folder: str | os.PathLike[str], layout: Layout, scores: bool, proba: bool
) -> list[Job]:
    """Return one job per file; raise if outputs would overwrite each other or an input."""
    target, release = Path(os.path.realpath(folder)), installed_version()
    found: dict[str, str] = {}
    given: dict[str, str] = {}  # names as passed: those of links, not of their targets
    for one in expand(inputs):
        given.setdefault(os.path.realpath(one), os.fspath(one))
    for path, named in given.items():
        if Path(path).parent == target:
            raise ValueError(
                f"{path} is in the folder of the outputs. Choose another folder for the outputs, "
                "or a pattern that does not match files in it."
            )
        name = output_name(named)
        if name in found:
            raise ValueError(
                f"{found[name]} and {path} would both be written to {target / name}; expected "
                "inputs of distinct names. Score them into different folders."
            )
        found[name] = path
    return [
        Job(path, str(target / name), layout, scores, proba, release)
        for name, path in found.items()
    ]


def output_name(path: str) -> str:
    """Return the name of the output of a file."""
    name = Path(path).name
    if Path(name).suffix.lower() in PACKED:
        name = Path(name).stem
    suffix = Path(name).suffix.lower()
    typed = suffix in TYPED or (suffix not in TEXT and _is_typed(path))
    known = suffix in TYPED or suffix in TEXT
    # A suffix that does not denote a format, such as that of part.1, belongs to the name.
    return (Path(name).stem if known else name) + (".parquet" if typed else ".csv")


def _is_typed(path: str) -> bool:
    try:
        return kind_of(Path(path)) in ("parquet", "arrow", "arrow stream")
    except (ValueError, OSError):  # the task reports the error
        return False


def _origin(job: Job, digest: str) -> dict[str, Any]:
    """Return the origin of an output: the model, the options and the identity of the input."""
    try:
        status = os.stat(job.source)
        identity = [status.st_size, status.st_mtime_ns]
    except OSError:  # the task reports the error
        identity = []
    layout = {**asdict(job.layout), "missing": sorted(job.layout.missing)}
    wanted = {"scores": job.scores, "proba": job.proba, "layout": layout}
    return {"model": digest, "input": job.source, "identity": identity, **wanted}


def _open_folder(folder: Path) -> Record:
    if folder.exists() and not folder.is_dir():
        raise NotADirectoryError(
            f"{folder} is a file; expected a folder for the predictions. Choose another name."
        )
    folder.mkdir(parents=True, exist_ok=True)
    return Record(folder)


def _unfinished(
    jobs: list[Job],
    origins: Mapping[Job, Mapping[str, Any]],
    record: Record,
    report: ScoringReport,
    force: bool,
) -> list[Job]:
    """Return the jobs whose outputs are missing or outdated, and remove outdated outputs."""
    todo = []
    for job in jobs:
        name = Path(job.target).name
        if os.path.isdir(job.target):
            raise IsADirectoryError(
                f"{job.target}, the output of {job.source}, is a folder. Choose another folder for "
                "the outputs, or move it."
            )
        if record.is_complete(name, origins[job]):
            report.skipped.append(job.target)
        elif os.path.lexists(job.target) and not record.knows(name) and not force:
            raise FileExistsError(
                f"{job.target} exists, and was not written by an earlier call. Choose another "
                "folder, or pass force=True to replace it."
            )
        else:
            todo.append(job)
    record.plan([Path(job.target).name for job in todo])
    for job in todo:  # so that the folder never mixes predictions of two models
        Path(job.target).unlink(missing_ok=True)
    return todo


def _note(
    job: Job, outcome: Outcome, origin: Mapping[str, Any], record: Record, report: ScoringReport
) -> None:
    if outcome.error is not None:
        report.failed[job.source] = outcome.error
        return
    written = outcome.size, outcome.mtime
    record.complete(Path(job.target).name, origin, written, outcome.rows)
    report.written.append(job.target)
    report.rows += outcome.rows


# -- the tasks -------------------------------------------------------------------------------------


def _run(client: Any, payload: bytes, jobs: list[Job]) -> Iterator[tuple[Job, Outcome]]:
    """Yield jobs with their outcomes as they complete; on exit, cancel the remaining tasks."""
    if not jobs:
        return
    run = secrets.token_hex(8)
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
        # If all workers with the model are lost, a task is repeated; scattered data would be lost.
        model = client.submit(unpack, payload, key=f"marginwise-model-{run}")
    futures = {
        client.submit(score_file, job, model, key=f"marginwise-predict-{run}-{k}"): job
        for k, job in enumerate(jobs)
    }
    try:
        for future in as_completed(list(futures), loop=client.loop):
            yield futures[future], _outcome(future, futures[future], client)
            future.release()
    finally:
        if client.status == "running":
            client.cancel([*futures, model], force=True)


def _outcome(future: Any, job: Job, client: Any) -> Outcome:
    """Return the outcome of a task; raise if the connection to the cluster is lost."""
    if future.status == "cancelled":
        raise ConnectionError(
            f"the Dask scheduler {client.scheduler.address} is gone. Files that are complete are "
            "kept: call again to score the others."
        )
    error = future.exception()
    if error is None:
        outcome = future.result()
        assert isinstance(outcome, Outcome)
        return outcome
    if isinstance(error, KilledWorker):
        return Outcome(
            error=f"{job.source}: the workers that read it died again and again; expected enough "
            "memory for a chunk of rows. See the logs of the workers."
        )
    return Outcome(error=f"{job.source}: {type(error).__name__}: {error}")
