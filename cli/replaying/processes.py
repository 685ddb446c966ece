"""Pieces judged by every core. Results come in the order of the pieces, whoever is done first."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import chain, islice

from cli.replaying.comparison import Comparer, Comparison
from cli.replaying.counting import Counted, count_piece
from cli.replaying.total import Total
from cli.terminal.progress import Progress
from documents.recordings.pieces import Piece, pieces
from policies.document import InputError

_AHEAD = 2
"""Pieces that are held for each process: one that it works on, one that waits."""
_FEW = 4
"""Pieces for which processes are started: some 3,000 events, which take one core as long as a process takes to start and
to load its modules. Fewer are judged right here."""
_comparer: Comparer | None = None
"""Of a process that judges for another one."""
Judged = tuple[Piece, Counted] | InputError


def replay_files(files: Sequence[str], chosen: Comparison, processes: int = 0) -> Total:
    """Judge the recordings in files and folders, and show how far it is. ``processes``: 0 for one for each core."""
    total = Total()
    with Progress() as progress:
        for one in replay_pieces(pieces(files), chosen, processes or _cores()):
            if isinstance(one, InputError):
                total.fail(one)
            else:
                total.add(*one)
            progress.show(f"evaluated {total.tally.all.pods} pods from {sum(total.files.values())} lines")
    return total


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def replay_pieces(found: Iterable[Piece | InputError], chosen: Comparison, processes: int) -> Iterator[Judged]:
    """Yield the results of all pieces, and the errors among them. Few pieces, or one process, are judged right here."""
    every = iter(found)
    beginning = list(islice(every, _FEW))
    if processes == 1 or len(beginning) < _FEW:
        comparer = Comparer(chosen)
        for one in chain(beginning, every):
            yield one if isinstance(one, InputError) else (one, _readable(one, comparer))
        return
    # Not by fork: a process that is copied with its threads may hold a lock for ever.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_start, initargs=(chosen,)) as pool:
        try:
            yield from _in_order(chain(beginning, every), pool, processes * _AHEAD)
        except BrokenProcessPool:
            message = "a worker process was killed, possibly out of memory; use fewer: --processes 1"
            raise InputError(file="berth replay", message=message) from None
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _in_order(found: Iterable[Piece | InputError], pool: ProcessPoolExecutor, most: int) -> Iterator[Judged]:
    waiting: deque[tuple[Piece, Future[Counted]] | InputError] = deque()
    for one in found:
        waiting.append(one if isinstance(one, InputError) else (one, _submitted(pool, one)))
        if len(waiting) >= most:
            yield _done(waiting.popleft())
    while waiting:
        yield _done(waiting.popleft())


def _submitted(pool: ProcessPoolExecutor, piece: Piece) -> Future[Counted]:
    """Hand a piece on. Processes that this starts inherit that Ctrl-C is blocked: it reaches them too, while they still import."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_judge, piece)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _done(one: tuple[Piece, Future[Counted]] | InputError) -> Judged:
    return one if isinstance(one, InputError) else (one[0]._replace(data=None), one[1].result())


def _start(chosen: Comparison) -> None:
    global _comparer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes, and the first one ends the others
    _comparer = Comparer(chosen)


def _judge(piece: Piece) -> Counted:
    assert _comparer is not None
    return _readable(piece, _comparer)


def _readable(piece: Piece, comparer: Comparer) -> Counted:
    try:
        return count_piece(piece, comparer)
    except OSError as error:
        return Counted(errors=[InputError(file=piece.file, message=f"cannot be read completely: {error.strerror or error}")])
