"""A ledger on both sides of a fork: in memory it is refused, in a file each process uses a connection of its own."""

from __future__ import annotations

from support.ledger_auditor import audit
from support.ledgers import run_script

IN_MEMORY = """
import os, sys
from support.ledgers import open_ledger, pay, request
from dpmine.owner.statements import entries_of
from dpmine.base.errors import LedgerError

ledger = open_ledger(None, cap=1000)
ledger.grant("ann", 1000)
child = os.fork()
if child == 0:
    refused = 0
    uses = [
        lambda: pay(ledger, request(10)),
        lambda: ledger.preview(request(10)),
        lambda: ledger.account("ann"),
        lambda: ledger.grant("bob", 5),
        lambda: ledger.verify(),
        lambda: entries_of(ledger),
    ]
    for use in uses:
        try:
            use()
        except LedgerError as error:
            refused += "cannot be shared with a forked process" in str(error)
    ledger.close()
    os._exit(refused)
refused = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
pay(ledger, request(10))
ledger.verify()
print(refused, ledger.account("ann").spent)
ledger.close()
"""


def test_a_ledger_in_memory_refuses_to_work_in_a_forked_child_and_goes_on_in_the_parent():
    assert run_script(IN_MEMORY).split() == ["6", "10"]


IN_A_FILE = """
import os, sys
from pathlib import Path
from support.ledgers import open_ledger, pay, request

ledger = open_ledger(Path(sys.argv[1]), cap=10_000)
ledger.grant("ann", 10_000)
pay(ledger, request(1), b"parent, before")
children = []
for number in range(3):
    child = os.fork()
    if child == 0:
        assert pay(ledger, request(1), b"child").answer == b"parent, before"
        for turn in range(5):
            pay(ledger, request(100 + 10 * number + turn), b"child")
        ledger.close()
        os._exit(0)
    children.append(child)
for turn in range(5):
    pay(ledger, request(200 + turn), b"parent")
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
ledger.verify()
print(ledger.account("ann").spent)
ledger.close()
"""


def test_a_ledger_in_a_file_works_on_both_sides_of_a_fork_at_once(tmp_path):
    codes, spent = run_script(IN_A_FILE, str(tmp_path / "l.db")).splitlines()
    expected = 1 + sum(100 + 10 * number + turn for number in range(3) for turn in range(5)) + sum(range(200, 205))
    assert (codes, int(spent)) == ("[0, 0, 0]", expected)
    assert audit(tmp_path / "l.db").spent("ann") == expected


THREADS_AFTER_A_FORK = """
import os, sys, threading
from pathlib import Path
from support.ledgers import open_ledger, pay, request

sys.setswitchinterval(1e-6)
ledger = open_ledger(Path(sys.argv[1]), cap=10_000)
ledger.grant("ann", 10_000)
child = os.fork()
if child == 0:
    barrier = threading.Barrier(8)
    done = []

    def ask(number):
        barrier.wait()
        pay(ledger, request(100 + number))
        done.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ledger.close()
    os._exit(len(done))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
ledger.verify()
ledger.close()
"""


def test_threads_that_start_in_a_forked_child_all_get_answers(tmp_path):
    assert run_script(THREADS_AFTER_A_FORK, str(tmp_path / "l.db")).strip() == "8"
    assert audit(tmp_path / "l.db").spent("ann") == sum(range(100, 108))


PARENT_CLOSES_FIRST = """
import os, sys
from pathlib import Path
from support.ledgers import open_ledger, pay, request

ledger = open_ledger(Path(sys.argv[1]), cap=10_000)
ledger.grant("ann", 10_000)
pay(ledger, request(1))
from_child, to_parent = os.pipe()
from_parent, to_child = os.pipe()
child = os.fork()
if child == 0:
    pay(ledger, request(20))
    os.write(to_parent, b"x")
    os.read(from_parent, 1)
    pay(ledger, request(300))
    os._exit(0)
os.read(from_child, 1)
ledger.close()
os.write(to_child, b"x")
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_parent_that_closes_its_ledger_takes_no_charge_of_its_child_away(tmp_path):
    """The last one to close a database deletes its write-ahead log: a child with inherited locks would not be counted."""
    assert run_script(PARENT_CLOSES_FIRST, str(tmp_path / "l.db")).strip() == "0"
    assert audit(tmp_path / "l.db").spent("ann") == 321


UNSEEN_FORK = """
import ctypes, os, sys
from pathlib import Path
from support.ledgers import open_ledger, pay, request
from dpmine.base.errors import LedgerError

ledger = open_ledger(Path(sys.argv[1]), cap=10_000)
ledger.grant("ann", 10_000)
child = ctypes.PyDLL(None).fork()
if child == 0:
    try:
        pay(ledger, request(20))
    except LedgerError as error:
        os._exit(7 if "cannot be shared with a forked process" in str(error) else 1)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
pay(ledger, request(20))
ledger.close()
"""


def test_a_connection_that_crossed_a_fork_outside_python_is_never_used(tmp_path):
    assert run_script(UNSEEN_FORK, str(tmp_path / "l.db")).strip() == "7"
    assert audit(tmp_path / "l.db").spent("ann") == 20


FORK_DURING_A_TRANSACTION = """
import os, sys, threading
from pathlib import Path
from support.ledgers import open_ledger, pay, request

inside, go_on = threading.Event(), threading.Event()

def pause(name):
    if name == "reserving":
        inside.set()
        go_on.wait()

ledger = open_ledger(Path(sys.argv[1]), cap=10_000, at_step=pause)
ledger.grant("ann", 10_000)
busy = threading.Thread(target=pay, args=(ledger, request(100)))
busy.start()
inside.wait()
threading.Timer(0.2, go_on.set).start()
child = os.fork()  # waits for the other thread, which a child would inherit as a lock that nobody gives back
if child == 0:
    pay(ledger, request(200))
    os._exit(0)
busy.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), ledger.account("ann").spent)
ledger.verify()
ledger.close()
"""


def test_a_fork_in_the_middle_of_a_transaction_neither_hangs_nor_loses_a_charge(tmp_path):
    assert run_script(FORK_DURING_A_TRANSACTION, str(tmp_path / "l.db")).split() == ["0", "300"]
    assert audit(tmp_path / "l.db").spent("ann") == 300
