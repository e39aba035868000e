"""Runs a program at a terminal of its own, for tests.

Each line of standard input is a JSON object: {"type": TEXT}, {"resize": [COLUMNS, ROWS]}, {"signal": NAME} or {"await": TEXT}, which
holds the next orders back until the terminal has shown the text. Everything that it shows goes to standard output. The exit code is the
program's, or 128 and the number of the signal that ended it. On standard error is said whether the terminal's settings are as they were
before.
"""

import fcntl
import json
import os
import signal
import struct
import sys
import termios
import threading
import time


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


class Shown:
    """What the terminal has shown so far."""

    def __init__(self):
        self.text, self.more = b"", threading.Condition()

    def add(self, text):
        with self.more:
            self.text += text
            self.more.notify_all()

    def wait_for(self, text):
        with self.more:
            self.more.wait_for(lambda: text in self.text)


def obey(orders, master, child, shown):
    """Without a next order the terminal stays."""
    for line in orders:
        order = json.loads(line)
        if "type" in order:
            text = order["type"].encode("latin-1")
            while text:
                text = text[os.write(master, text) :]
        elif "resize" in order:
            resize(master, *order["resize"])
        elif "await" in order:
            shown.wait_for(order["await"].encode())
        else:
            os.kill(child, getattr(signal, f"SIG{order['signal']}"))


def end_with(parent, child):
    """Nobody is left who would end what runs here."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(child, signal.SIGKILL)
    os._exit(1)


def show(master, shown):
    while True:
        try:
            text = os.read(master, 65536)
        except OSError:
            return
        if not text:
            return
        shown.add(text)
        while text:
            text = text[os.write(1, text) :]


def main():
    master, terminal = os.openpty()
    resize(master, 80, 24)
    before = termios.tcgetattr(terminal)
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for number in range(3):
            os.dup2(terminal, number)
        os.close(master)
        os.close(terminal)
        # Of what was started in the background these are ignored, and a program inherits that.
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        try:
            os.execvp(sys.argv[1], sys.argv[1:])
        finally:
            os._exit(127)
    shown = Shown()
    threading.Thread(target=obey, args=(sys.stdin, master, child, shown), daemon=True).start()
    threading.Thread(target=end_with, args=(os.getppid(), child), daemon=True).start()
    showing = threading.Thread(target=show, args=(master, shown), daemon=True)
    showing.start()
    _, status = os.waitpid(child, 0)
    after = termios.tcgetattr(terminal)
    print("the terminal is as before" if before == after else f"the terminal was {before} and is {after}", file=sys.stderr)
    # Everything that was written is read before the end of the terminal is.
    os.close(terminal)
    showing.join()
    sys.stderr.flush()
    os._exit(os.waitstatus_to_exitcode(status) % 256 if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))


main()
