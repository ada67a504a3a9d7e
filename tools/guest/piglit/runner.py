#!/usr/bin/python3
# SPDX-License-Identifier: MIT OR Apache-2.0
"""Runs piglit's OpenCL tests inside the guest, many in one boot, or on the model's node, and prints one line of JSON for each.

A line: {"name", "result": pass|warn|fail|skip|crash|timeout, "seconds", "detail": what the test says is wrong, or why
it was skipped, "faults": lines of the kernel log that report a GPU fault during the test, "again": true if the test
will be run again}. A test during which the GPU faulted does not pass, whatever it says. What did not pass beside
another test is run again alone, and the second result counts: a fault cannot be attributed while two tests run, and
the driver's reset after one test's fault disturbs the other.

The same lines are appended to a file, if one is named; tests that have a result there are not run.
"""
import argparse
import ast
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import xml.etree.ElementTree as xml
import zlib

# Of panfrost and of panthor.
FAULT = re.compile(r"js fault|gpu sched timeout|Unhandled Page fault|GPU Fault|reset timed out|AS_ACTIVE bit stuck|"
                   r"CS_FATAL|CS_FAULT|progress timeout|job timeout|exception type")
NODE_FAULT = re.compile(r"gpureplay node: the (?:chain|stream) at .*")
DETAIL_CHARACTERS = 400
# Kinds that take minutes where others take seconds: their kernels are large, and the compiler is emulated.
LONG = re.compile(r"builtin-shuffle|-private$|builtin-.*-(clamp|min|max|mad_hi|mul_hi|mad_sat|mix|smoothstep)-|"
                  r"float-(a?(sin|cos|tan)|pow|rootn|[lt]gamma|fmod|remquo|remainder|exp|log)|pyrit|bitcoin|tail-calls")


def all_tests(root):
    """Name and command line of every test of the profile; short ones first, else in an order that mixes all kinds."""
    with gzip.open(os.path.join(root, "tests/cl.xml.gz")) as stream:
        profile = xml.parse(stream).getroot()
    tests = []
    for test in profile.iter("Test"):
        options = {option.get("name"): ast.literal_eval(option.get("value")) for option in test.iter("option")}
        if test.get("type") == "cl_prog":
            command = ["cl-program-tester", os.path.join(root, options["filename"])]
        else:
            command = options["command"]
        tests.append((test.get("name"), [os.path.join(root, "bin", command[0])] + command[1:]))
    return sorted(tests, key=lambda test: (bool(LONG.search(test[0])), zlib.crc32(test[0].encode()), test[0]))


def known_results(path):
    """Results of a file, by test; of two of a test the later counts, a line that was cut off counts as none."""
    known = {}
    if path and os.path.exists(path):
        with open(path, encoding="utf-8") as stream:
            for line in stream:
                try:
                    outcome = json.loads(line)
                    known[outcome["name"]] = outcome
                except (ValueError, KeyError):
                    continue
    return known


class NodeLog:
    """In place of the kernel's log on the model's node, which says in a test's own output that a chain failed."""
    lines = []

    def mark(self):
        return 0


class KernelLog:
    """Fault lines that came since the last look."""

    def __init__(self):
        self.stream = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
        os.lseek(self.stream, 0, os.SEEK_END)
        self.lines = []
        self.lock = threading.Lock()

    def mark(self):
        """A point in time: how many fault lines there have been."""
        with self.lock:
            while True:
                try:
                    record = os.read(self.stream, 8192).decode(errors="replace")
                except BlockingIOError:
                    break
                except OSError:
                    # Records were overwritten before they were read; the next read goes on behind them.
                    continue
                text = record.split(";", 1)[-1].split("\n", 1)[0]
                if FAULT.search(text):
                    self.lines.append(text)
            return len(self.lines)


def interpret(code, output):
    """Result and explanation of a test that ended with `code`."""
    result, subtests = None, {}
    for line in output.splitlines():
        if not line.startswith("PIGLIT:"):
            continue
        try:
            said = json.loads(line[7:])
        except ValueError:
            continue
        result = said.get("result", result)
        subtests.update(said.get("subtest", {}))
    if code < 0:
        return "crash", f"ended by {signal.Signals(-code).name}"
    if result is None:
        result = "fail"
    detail = ""
    if result not in ("pass", "skip"):
        bad = [name for name, state in subtests.items() if state not in ("pass", "skip")]
        if bad:
            detail = f"{len(bad)} of {len(subtests)} subtests: {', '.join(bad[:6])}; "
    return result, detail


def interesting(output):
    """The lines that say what went wrong."""
    lines = [line.strip() for line in output.splitlines() if line.strip() and not line.startswith("PIGLIT:")]
    wanted = [line for line in lines if re.search(r"rror|xpect|ail|skip|kip|nsupport|not |Expecting|got", line)]
    return "; ".join(wanted or lines[-3:])[:DETAIL_CHARACTERS]


class Runner:
    def __init__(self, root, timeout, results, prefix=()):
        self.root = root  # Some tests name files below it.
        self.prefix = list(prefix)
        self.timeout = timeout
        self.results = results
        self.log = NodeLog() if prefix else KernelLog()
        self.environment = dict(os.environ, LD_LIBRARY_PATH=os.path.join(root, "lib"), PIGLIT_SOURCE_DIR=root,
                                PIGLIT_PLATFORM="surfaceless_egl")
        self.print_lock = threading.Lock()

    def run(self, name, command):
        start, mark = time.monotonic(), self.log.mark()
        child = subprocess.Popen(self.prefix + command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                 env=self.environment, cwd=self.root, start_new_session=True)
        try:
            output, _ = child.communicate(timeout=self.timeout)
            output = output.decode(errors="replace")
            result, detail = interpret(child.returncode, output)
            if result != "pass":
                detail += interesting(output)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            output = child.communicate()[0].decode(errors="replace")
            result, detail = "timeout", f"no end after {self.timeout} s"
        self.log.mark()
        faults = self.log.lines[mark:] or NODE_FAULT.findall(output)
        if faults and result in ("pass", "warn"):
            result, detail = "fail", "the GPU faulted although the test passed"
        return {"name": name, "result": result, "seconds": round(time.monotonic() - start, 1), "detail": detail,
                "faults": faults[:6]}

    def say(self, outcome):
        line = json.dumps(outcome)
        with self.print_lock:
            print(line, flush=True)
            if self.results:
                with open(self.results, "a", encoding="utf-8") as stream:
                    stream.write(line + "\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True, help="piglit's folder")
    parser.add_argument("--filter", default="", help="only tests whose name matches")
    parser.add_argument("--names", help="file with the names of the wanted tests")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600, help="seconds for one test")
    parser.add_argument("--until", type=float, default=1e9, help="seconds after which no further test begins")
    parser.add_argument("--results", help="file with results of an earlier run, to which this one adds")
    parser.add_argument("--prefix", default="", help="words in front of a test's command, without a guest: gpureplay node --")
    options = parser.parse_args()
    tests = [test for test in all_tests(options.root) if re.search(options.filter, test[0])]
    if options.names:
        with open(options.names, encoding="utf-8") as stream:
            names = {line.strip() for line in stream}
        tests = [test for test in tests if test[0] in names]
    known = known_results(options.results)
    again = [test for test in tests if known.get(test[0], {}).get("again")]
    queue = [test for test in reversed(tests) if test[0] not in known]

    runner = Runner(options.root, options.timeout, options.results, options.prefix.split())
    runner.say({"tests": len(tests)})
    for name, _ in tests:
        if name in known:
            print(json.dumps(known[name]), flush=True)
    end = time.monotonic() + options.until
    lock = threading.Lock()

    def work():
        while time.monotonic() < end:
            with lock:
                if not queue:
                    return
                name, command = queue.pop()
            outcome = runner.run(name, command)
            if options.jobs > 1 and outcome["result"] not in ("pass", "skip", "timeout"):
                outcome["again"] = True
                with lock:
                    again.append((name, command))
            runner.say(outcome)

    workers = [threading.Thread(target=work) for _ in range(options.jobs)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for name, command in again:
        if time.monotonic() < end:
            runner.say(runner.run(name, command))


if __name__ == "__main__":
    sys.exit(main())
