"""Runs a program at a terminal of its own, for tests.

Each line of standard input is a JSON object: {"type": TEXT}, {"resize": [COLUMNS, ROWS]} or {"signal": NAME}. Everything that the terminal
shows goes to standard output. The exit code is the program's, or 128 and the number of the signal that ended it. On standard error is said
whether the terminal's settings are as they were before.
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


def obey(orders, master, child):
    """Without a next order the terminal stays."""
    for line in orders:
        order = json.loads(line)
        if "type" in order:
            text = order["type"].encode("latin-1")
            while text:
                text = text[os.write(master, text) :]
        elif "resize" in order:
            resize(master, *order["resize"])
        else:
            os.kill(child, getattr(signal, f"SIG{order['signal']}"))


def end_with(parent, child):
    """Nobody is left who would end what runs here."""
    while os.getppid() == parent:
        time.sleep(1)
    os.kill(child, signal.SIGKILL)
    os._exit(1)


def show(master):
    while True:
        try:
            shown = os.read(master, 65536)
        except OSError:
            return
        if not shown:
            return
        while shown:
            shown = shown[os.write(1, shown) :]


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
        try:
            os.execvp(sys.argv[1], sys.argv[1:])
        finally:
            os._exit(127)
    threading.Thread(target=obey, args=(sys.stdin, master, child), daemon=True).start()
    threading.Thread(target=end_with, args=(os.getppid(), child), daemon=True).start()
    showing = threading.Thread(target=show, args=(master,), daemon=True)
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
