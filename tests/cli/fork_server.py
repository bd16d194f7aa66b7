"""Runs commands in copies of a process that has imported what commands import, and run nothing.

A command in a process of its own spends seconds on imports. A copy has its own streams,
folder, environment and ending, as a new process has; what asks about imports, or about how a
process starts, is tested in a new one. Here is the server's program; `commands` in conftest
talks with it: a line of JSON and two streams for each command, its number and its ending back.
"""

import gc
import json
import os
import runpy
import signal
import socket
import sys

LONGEST = 1 << 20


def serve(channel):
    """Copy this process for each request; only a copy returns, with the words of its command."""
    while True:
        line, streams, *_ = socket.recv_fds(channel, LONGEST, 2)
        if not line:
            sys.exit()
        while not line.endswith(b"\n"):
            line += channel.recv(LONGEST)
        request = json.loads(line)
        pid = os.fork()
        if not pid:
            channel.close()
            become(request, streams)
            return request["words"]
        for stream in streams:
            os.close(stream)
        channel.send(f"{pid}\n".encode())
        _, status = os.waitpid(pid, 0)
        channel.send(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(request, streams):
    """Be as a process that was started for the request."""
    for target, stream in enumerate(streams, 1):
        os.dup2(stream, target)
        os.close(stream)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    sys.path[0] = request["folder"]  # as with `python -m`
    signal.signal(signal.SIGINT, signal.default_int_handler)


if __name__ == "__main__":
    import torch._dynamo  # noqa: F401

    import shapetrace.api.tracing.trace_target
    import shapetrace.api.transformer.generate_run
    import shapetrace.api.transformer.run_pass
    import shapetrace.api.transformer.train_run
    import shapetrace.cli  # noqa: F401

    gc.collect()  # so that copies need not, each of all that was imported
    if os.path.isdir("/proc/self/task"):  # noqa: PTH112
        assert len(os.listdir("/proc/self/task")) == 1, "threads don't survive a fork"  # noqa: PTH208
    sys.argv = ["shapetrace", *serve(socket.socket(fileno=int(sys.argv[1])))]
    runpy.run_module("shapetrace", run_name="__main__", alter_sys=True)
