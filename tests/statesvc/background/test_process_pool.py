"""Computing in real processes: one call at a time each, and what one dies of is
that call's failure alone.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from statesvc.background.process_pool import PoolFullError, ProcessDiedError, ProcessPool
from statesvc.http.problem import Code, Problem
from statesvc.roles.supervisor.child_plan import API, BUSY_NICENESS, INGRESS, NICENESS
from tests.world.waiting import has_ended, until

pytestmark = pytest.mark.usefixtures("own_processes")

ROOT = Path(__file__).parents[3]
CHILD = f"""
import asyncio, os, sys
sys.path.insert(0, {str(ROOT)!r})
from statesvc.background.process_pool import serve_tasks
from statesvc.http.problem import Code, Problem

class Odd(Exception):
    def __init__(self, one, two):
        super().__init__("odd")

async def pid(argument): return os.getpid(), argument
async def die(_): os._exit(3)
async def hang(_): await asyncio.Event().wait()
async def spin(path):
    open(path, "w").write(str(os.getpid()))
    while True: pass
async def refuse(_): raise Problem(Code.NOT_FOUND, "no such thing", headers={{"X-One": "1"}}, members={{"two": 2}})
async def odd(_): raise Odd(1, 2)
async def chat(argument): print("to nobody"); return argument

asyncio.run(serve_tasks(dict(pid=pid, die=die, hang=hang, spin=spin, refuse=refuse, odd=odd, chat=chat))())
"""
_GATE = "while not os.path.exists({!r}): time.sleep(0.01)"
Make = Callable[..., ProcessPool]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    async with AsyncExitStack() as stack:

        def make(**limits: Any) -> ProcessPool:
            pool = ProcessPool(
                **{
                    "command": [sys.executable, "-c", CHILD],
                    "processes_max": 1,
                    "waiting_max": 8,
                    **limits,
                }
            )
            stack.push_async_callback(pool.close)
            return pool

        yield make


async def test_a_start_that_takes_longer_than_its_caller_waits_is_there_for_the_next(
    make: Make, tmp_path: Path
) -> None:
    gate, begun = tmp_path / "gate", tmp_path / "begun"
    pool = make(
        command=[
            sys.executable,
            "-c",
            (
                f"import os, time\nopen({str(begun)!r}, 'a').write(f'{{os.getpid()}}"
                f" ')\n{_GATE.format(str(gate))}\n{CHILD}"
            ),
        ]
    )
    for _ in range(2):
        call = asyncio.create_task(pool.call("pid", None))
        await until(lambda: begun.exists() and pool.busy == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    gate.touch()
    pid, _ = await pool.call("pid", None)
    assert begun.read_text().split() == [str(pid)]


async def test_a_process_that_died_while_it_was_idle_fails_no_call(make: Make) -> None:
    pool = make()
    pid, _ = await pool.call("pid", None)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not Path(f"/proc/{pid}").exists())
    assert (await pool.call("pid", None))[0] != pid


async def test_calls_are_answered_by_one_process_after_the_other(make: Make) -> None:
    pool = make()
    answers = await asyncio.gather(*(pool.call("pid", b"x" * place) for place in (0, 1, 3_000_000)))
    assert {pid for pid, _ in answers}.isdisjoint({os.getpid()})
    assert len({pid for pid, _ in answers}) == 1
    assert [len(argument) for _, argument in answers] == [0, 1, 3_000_000]
    assert await pool.call("chat", "said") == "said"


async def test_a_process_that_computes_stands_behind_every_role(make: Make) -> None:
    pid, _ = await make().call("pid", None)
    assert os.getpriority(os.PRIO_PROCESS, pid) > max(*NICENESS.values(), *BUSY_NICENESS.values())
    assert os.getsid(pid) == pid
    assert not hasattr(os, "SCHED_IDLE") or os.sched_getscheduler(pid) == os.SCHED_IDLE
    assert NICENESS.get(INGRESS, 0) < NICENESS[API] < BUSY_NICENESS["worker"]


async def test_two_processes_work_at_a_time_and_no_more(make: Make) -> None:
    pool = make(processes_max=2)
    hanging = [asyncio.create_task(pool.call("hang", None)) for _ in range(3)]
    await until(lambda: pool.busy == 2)
    assert pool.waiting == 1
    for call in hanging:
        call.cancel()


async def test_a_process_that_dies_fails_its_own_call_only(make: Make) -> None:
    pool = make(processes_max=2)
    living = asyncio.create_task(pool.call("pid", "well"))
    with pytest.raises(ProcessDiedError):
        await pool.call("die", None)
    assert (await living)[1] == "well"
    assert (await pool.call("pid", "again"))[1] == "again"


async def test_what_a_task_raises_is_raised_where_it_was_called(make: Make) -> None:
    pool = make()
    (first, _) = await pool.call("pid", None)
    with pytest.raises(Problem) as refused:
        await pool.call("refuse", None)
    problem = refused.value
    assert (problem.code, problem.detail, problem.headers, problem.members) == (
        Code.NOT_FOUND,
        "no such thing",
        {"X-One": "1"},
        {"two": 2},
    )
    with pytest.raises(RuntimeError, match="Odd in a computing process"):
        await pool.call("odd", None)
    assert (await pool.call("pid", None))[0] == first


async def test_more_calls_than_may_wait_are_refused(make: Make) -> None:
    pool = make(waiting_max=1)
    hanging = asyncio.create_task(pool.call("hang", None))
    await until(lambda: pool.busy == 1)
    waiting = asyncio.create_task(pool.call("pid", None))
    await until(lambda: pool.waiting == 1)
    with pytest.raises(PoolFullError):
        await pool.call("pid", None)
    hanging.cancel()
    assert await waiting


async def test_a_caller_that_stops_waiting_ends_the_computing(make: Make, tmp_path: Path) -> None:
    pool = make()
    report = tmp_path / "pid"
    spinning = asyncio.create_task(pool.call("spin", str(report)))
    await until(lambda: report.exists() and report.read_text() != "")
    spinning.cancel()
    await until(lambda: has_ended(int(report.read_text())))
    assert await pool.call("pid", None)


async def test_idle_processes_end(make: Make) -> None:
    pool = make(idle_seconds=0.05)
    (first, _) = await pool.call("pid", None)
    await until(lambda: has_ended(first))
    (second, _) = await pool.call("pid", None)
    assert second != first


async def test_a_process_ends_with_its_parent_even_in_the_middle_of_a_call(tmp_path: Path) -> None:
    report = tmp_path / "pid"
    parent = (
        "import asyncio, sys\nfrom statesvc.background.process_pool import ProcessPool\npool ="
        f" lambda: ProcessPool([sys.executable, '-c', {CHILD!r}], processes_max=1,"
        " waiting_max=1)\nasync def main():\n    await pool().call('spin',"
        f" {str(report)!r})\nasyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", parent, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}
    )
    await until(lambda: report.exists() and report.read_text() != "")
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await until(lambda: has_ended(int(report.read_text())))
