"""The sandbox of a submission: what it may read, use and reach, on Linux, with nothing to install.

policy.py says what may be read.  layers.py has the limits and sets up the layers: namespaces.py,
landlock.py, seccomp.py, cgroups.py, and a user without rights; syscalls.py has the system calls that they
need.  selftest.py finds out which layers hold on this machine.  supervisor.py watches a running submission
and ends it, and usage.py measures what it uses.  Begin with layers.py.
"""
