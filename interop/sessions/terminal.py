"""A pseudo-terminal with a screen: what a person sees of a program."""

import fcntl
import os
import pty
import select
import shlex
import struct
import subprocess
import termios
import time

import pyte

ROWS = 24
# Debug builds on busy machines are slow.
PATIENCE = 300


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, words, columns, directory, environment):
        self.screen = pyte.HistoryScreen(columns, ROWS, history=100_000, ratio=0.5)
        self.stream = pyte.ByteStream(self.screen)
        self.seen = 0
        self.bytes = b""
        self.pid, self.descriptor = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
            os.chdir(directory)
            os.environ.update(environment, TERM="xterm-256color")
            os.environ.pop("NO_COLOR", None)
            os.execvp(words[0], words)

    def read(self, seconds):
        """Reads what comes within some seconds; returns whether the program still writes."""
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        if not ready:
            return True
        try:
            more = os.read(self.descriptor, 65536)
        except OSError:
            more = b""
        self.bytes += more
        self.stream.feed(more)
        return bool(more)

    def lines(self):
        """Returns all lines: those that scrolled away, then those on the screen."""
        old = ["".join(line[column].data for column in range(self.screen.columns)) for line in self.screen.history.top]
        return [line.rstrip() for line in old + list(self.screen.display)]

    def text(self):
        """Returns all lines as one text."""
        return "\n".join(self.lines()).rstrip()

    def type(self, text):
        """Types a text; a line ends with a carriage return."""
        os.write(self.descriptor, text.encode())

    def wait_for(self, text):
        """Waits until a text appears after what was waited for before."""
        end = time.monotonic() + PATIENCE
        while (at := self.text().find(text, self.seen)) < 0:
            if not self.read(0.2) and self.text().find(text, self.seen) < 0 or time.monotonic() > end:
                raise AssertionError(f"`{text}` did not appear:\n{self.text()[self.seen:]}")
        self.seen = at + len(text)

    def end(self):
        """Waits for the end of the program; returns its exit code."""
        end = time.monotonic() + PATIENCE
        while self.read(0.2):
            if time.monotonic() > end:
                raise AssertionError(f"the program does not end:\n{self.text()}")
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Session:
    """Commands of one person, in a directory, on a terminal of some width."""

    def __init__(self, gguf, columns, directory):
        self.columns, self.directory = columns, directory
        links = os.path.join(directory, "bin")
        os.makedirs(links)
        os.symlink(os.path.abspath(gguf), os.path.join(links, "gguf"))
        self.environment = {
            "PATH": links + os.pathsep + os.environ["PATH"],
            "HOME": directory,
            "HF_ENDPOINT": "http://no-such-host.invalid",
        }

    def path(self, name):
        return os.path.join(self.directory, name)

    def start(self, line):
        """Starts a command line."""
        return Terminal(shlex.split(line), self.columns, self.directory, self.environment)

    def run(self, line, code=0, shows=(), hides=()):
        """Runs a command line to its end, and checks its exit code and what is on the screen."""
        print(f"  {self.columns}$ {line}", flush=True)
        terminal = self.start(line)
        found = terminal.end()
        text = terminal.text()
        assert found == code, f"exit code {found} instead of {code}:\n{text}"
        # Lines wrap at the width of the terminal.
        flat = " ".join(text.split())
        for part in shows:
            assert part in flat, f"`{part}` is missing:\n{text}"
        for part in (*hides, "0 B/0 B", "panicked", "os error"):
            assert part not in flat, f"`{part}` is shown:\n{text}"
        return terminal

    def piped(self, line):
        """Returns the standard output of a command line that is not on a terminal."""
        environment = {**os.environ, **self.environment}
        done = subprocess.run(
            shlex.split(line), cwd=self.directory, env=environment, check=True, stdin=subprocess.DEVNULL, capture_output=True
        )
        return done.stdout.decode()

    def answers(self, line, code=0):
        """Runs a command line whose output must stay on the screen as it is in a pipe."""
        expected = "".join(self.piped(line).split())
        assert expected, f"`{line}` prints nothing"
        terminal = self.run(line, code)
        shown = "".join(terminal.text().split())
        assert shown.endswith(expected), f"`{expected}` is not what is left on the screen:\n{terminal.text()}"
        return terminal
