"""Measures how fast machines all-reduce with one another. It measures and reports; what is slow is decided by whoever reads that.

A process of each machine waits for orders (`machine`), and starts a process for each of its GPUs (`worker`). One more pod gives the orders
(`conduct`): group after group, those of a round at the same time. It prints what it learns, a JSON document a line."""

import datetime
import glob
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time

BACKEND = os.environ.get("INFRA_BACKEND", "gloo")
PORT = 29400
# The groups of each round meet at another port: the one before may not be free yet.
FIRST_MEETING_PORT = 29500
# How much later than the processes themselves a machine gives them up: they know more of what failed.
GRACE_SECONDS = 5
# PyTorch is read from a disk that has never seen it, by as many processes as there are GPUs.
START_SECONDS = 300
CONNECT_SECONDS = 30
# What NCCL says of its network is in these lines.
NETWORK = re.compile(r"Using network|Selected provider|NET/Plugin|NET/OFI.*(rror|ailed|nable|No eligible)", re.IGNORECASE)
MOST_LINES, LONGEST_LINE = 20, 200


class Silent(Exception):
    """A process or a machine did not answer in time."""


class Lines:
    """Lines of JSON over two files or a connection. `read` ends after a while."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    def write(self, document):
        self.writer.write(json.dumps(document).encode() + b"\n")
        self.writer.flush()

    def read(self):
        line = self.reader.readline()
        return json.loads(line) if line else None


class Worker:
    """A process for one GPU, or for the whole machine without any."""

    def __init__(self, number, logs):
        environment = os.environ | {"LOCAL_RANK": str(number), "NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET",
                                    "NCCL_DEBUG_FILE": f"{logs}/{number}.%p"}
        self.process = subprocess.Popen([sys.executable, "-u", __file__, "worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        env=environment)
        self.lines = Lines(self.process.stdout, self.process.stdin)
        self.answer = None

    def ask(self, order):
        try:
            self.lines.write(order)
            self.answer = self.lines.read()
        except (OSError, ValueError):
            self.answer = None

    def stop(self):
        self.process.kill()
        self.process.wait()


class Machine:
    """The processes of this machine. After one that hangs or fails, new ones begin."""

    def __init__(self, count):
        self.count, self.workers, self.logs = count, [], tempfile.mkdtemp()

    def carry_out(self, order):
        failed = None if self.workers else self.begin()
        if failed:
            return failed
        answer = self.ask(order, order["limit"])
        if "error" in answer:
            # Now, so that no other machine waits for it.
            self.begin()
        return answer

    def begin(self):
        """Starts the processes anew, and says what fails."""
        self.stop()
        self.workers = [Worker(number, self.logs) for number in range(self.count)]
        answer = self.ask({"do": "prepare"}, START_SECONDS)
        if "error" in answer:
            self.stop()
            return answer
        return None

    def ask(self, order, limit):
        """The answer of the first process, or what is wrong with any."""
        orders = [order | {"rank": order.get("rank", 0) + number} for number in range(self.count)]
        threads = [threading.Thread(target=worker.ask, args=(one,), daemon=True) for worker, one in zip(self.workers, orders)]
        for worker, thread in zip(self.workers, threads):
            worker.answer = None
            thread.start()
        until = time.monotonic() + limit + GRACE_SECONDS
        for thread in threads:
            thread.join(max(0, until - time.monotonic()))
        answers = [worker.answer for worker in self.workers]
        errors = [answer["error"] for answer in answers if answer and "error" in answer]
        if not errors and None not in answers:
            return answers[0]
        # A process that says what failed, or ends, explains why the others hang.
        died = [f"a process ended with {worker.process.poll()}" for worker in self.workers if worker.process.poll() is not None]
        return {"error": (errors or died or ["no answer in time"])[0]}

    def network(self):
        """What NCCL says of its network, without the rest."""
        found = {}
        for path in sorted(glob.glob(f"{self.logs}/*")):
            with open(path, errors="replace") as file:
                for line in file:
                    if NETWORK.search(line):
                        found[line.rpartition("NCCL INFO ")[2].strip()[:LONGEST_LINE]] = None
        return list(found)[:MOST_LINES]

    def stop(self):
        for worker in self.workers:
            worker.stop()
        self.workers = []


def run_machine():
    """Carries out one order after the other, from whoever connects."""
    machine = Machine(int(os.environ["INFRA_PROCESSES"]))
    with socket.create_server((os.environ["INFRA_ADDRESS"], PORT)) as server:
        print("this machine waits for orders", flush=True)
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb") as file:
                lines = Lines(file, file)
                try:
                    while order := lines.read():
                        lines.write({"network": machine.network()} if order["do"] == "tell" else machine.carry_out(order))
                except (OSError, ValueError) as error:
                    print(f"the connection ended: {error}", flush=True)


def run_worker():
    """Carries out orders on stdin; whatever else prints goes to the log."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lines = Lines(sys.stdin.buffer, answers)
    while order := lines.read():
        try:
            lines.write(prepare() if order["do"] == "prepare" else measure(order))
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            lines.write({"error": text[:LONGEST_LINE]})


def prepare():
    """What takes long once: PyTorch, and the first use of a GPU."""
    import torch
    import torch.distributed

    if BACKEND == "nccl":
        torch.zeros(1, device=device())
    return {"torch": torch.__version__}


def device():
    return f"cuda:{os.environ['LOCAL_RANK']}" if BACKEND == "nccl" else "cpu"


def measure(order):
    """The seconds of one all-reduce, on the slowest process: the best of five series, since whatever disturbs one of them is not the network."""
    import torch
    import torch.distributed as group

    where, world = torch.device(device()), order["world"]
    limit = datetime.timedelta(seconds=order["limit"])
    more = {"device_id": where} if BACKEND == "nccl" else {}
    group.init_process_group(BACKEND, init_method=f"tcp://{order['at']}:{order['port']}", rank=order["rank"], world_size=world, timeout=limit,
                             **more)
    try:
        values = torch.full((order["bytes"] // 4,), float(order["rank"] + 1), device=where)
        group.all_reduce(values)
        if not bool((values == world * (world + 1) / 2).all()):
            raise ArithmeticError("the sum is wrong: data was changed on its way")
        values.zero_()

        def series(count):
            if BACKEND == "nccl":
                torch.cuda.synchronize()
            began = time.monotonic()
            for _ in range(count):
                group.all_reduce(values)
            if BACKEND == "nccl":
                torch.cuda.synchronize()
            slowest = torch.tensor([(time.monotonic() - began) / count], dtype=torch.float64, device=where)
            group.all_reduce(slowest, group.ReduceOp.MAX)
            return slowest.item()

        # Everyone has the same times, and so measures as often.
        best = series(1)
        if best < 2:
            count = max(1, min(50, int(0.5 / best)))
            best = min(best, *(series(count) for _ in range(5)))
        return {"seconds": best, "ranks": world}
    finally:
        group.destroy_process_group()


class Member:
    """A machine, as the one that conducts sees it."""

    def __init__(self, number, facts):
        self.number, self.address, self.processes = number, facts["address"], facts["processes"]
        self.lines, self.answer, self.lost, self.good = None, None, None, False

    def ask(self, order):
        """Its answer, an error among them; a machine that breaks off is lost."""
        try:
            if not self.lines:
                self.connection = self.connect()
                file = self.connection.makefile("rwb")
                self.lines = Lines(file, file)
            self.connection.settimeout(order["limit"] + START_SECONDS + 30)
            self.lines.write(order)
            self.answer = self.lines.read()
        except (OSError, ValueError) as error:
            self.answer = None
            self.lost = f"its pod does not answer: {error}"
        if self.answer is None and not self.lost:
            self.lost = "its pod ended"
        if self.lost:
            self.answer = {"error": self.lost}

    def connect(self):
        """Its pod runs, and listens a moment later."""
        until = time.monotonic() + CONNECT_SECONDS
        while True:
            try:
                return socket.create_connection((self.address, PORT), timeout=CONNECT_SECONDS)
            except ConnectionRefusedError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)


def together(work):
    threads = [threading.Thread(target=function, args=arguments) for function, arguments in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def say(document):
    print(json.dumps(document), flush=True)


class Conductor:
    def __init__(self, plan):
        self.limit, self.bytes, self.rounds = plan["limit"], plan["bytes"], plan["rounds"]
        self.members = [Member(number, facts) for number, facts in enumerate(plan["machines"])]

    def conduct(self):
        together([(member.ask, ({"do": "prepare", "limit": self.limit},)) for member in self.members])
        for member in self.members:
            if "error" in member.answer:
                member.lost = member.answer["error"]
                say({"machine": member.number, "error": member.lost})
        for number, groups in enumerate(self.rounds):
            say({"round": number + 1, "of": len(self.rounds)})
            self.measure([[self.members[index] for index in members] for members in groups], FIRST_MEETING_PORT + number)
        for member in self.members:
            if not member.lost:
                member.ask({"do": "tell", "limit": self.limit})
                say({"machine": member.number, "network": member.answer.get("network", [])})
        say({"end": True})

    def measure(self, groups, port):
        """Groups that share no machine, at the same time. More than two machines are measured without those that nobody reaches."""
        work = []
        for members in groups:
            if len(members) > 2:
                members = [member for member in members if member.good and not member.lost]
            if len(members) > 1:
                work.append((self.measure_group, (members, port)))
        together(work)

    def measure_group(self, members, port):
        numbers = [member.number for member in members]
        lost = {member.number: member.lost for member in members if member.lost}
        if not lost:
            # The more machines, the longer they take to meet.
            order = {"do": "measure", "bytes": self.bytes, "limit": self.limit + 2 * (len(members) - 2), "at": members[0].address, "port": port,
                     "world": sum(member.processes for member in members)}
            work, rank = [], 0
            for member in members:
                work.append((member.ask, (order | {"rank": rank},)))
                rank += member.processes
            together(work)
            lost = {member.number: member.answer["error"] for member in members if "error" in member.answer}
        if lost:
            say({"group": numbers, "errors": lost})
            return
        for member in members:
            member.good = True
        say({"group": numbers, "seconds": members[0].answer["seconds"], "ranks": members[0].answer["ranks"]})


def main():
    if sys.argv[1] == "machine":
        run_machine()
    elif sys.argv[1] == "worker":
        run_worker()
    else:
        Conductor(json.loads(os.environ["INFRA_PLAN"])).conduct()


main()
