"""Forbid the system calls that a submission does not need: a seccomp filter, as the kernel's bytecode.

No network, no access or signals to other processes, no mounts and namespaces, no kernel keys, modules,
tracing or clocks, no changes of owners and modes, and no memory that escapes the limits: shared by processes
without being mapped, pinned by pipes, in enlarged buffers of sockets and pipes.
"""

import errno
import os
import platform
import re
import struct
from collections.abc import Sequence

# Name, number on x86_64, number on aarch64 ("-": there is none).
CALLS = """
socket 41 198 ptrace 101 117 process_vm_readv 310 270 process_vm_writev 311 271 process_madvise 440 440
process_mrelease 448 448 pidfd_getfd 438 438 kcmp 312 272 mount 165 40 umount2 166 39 pivot_root 155 41
chroot 161 51 move_mount 429 429 open_tree 428 428 open_tree_attr 467 467 fsopen 430 430 fsmount 432 432
fsconfig 431 431 fspick 433 433 mount_setattr 442 442 unshare 272 97 setns 308 268
kexec_load 246 104 kexec_file_load 320 294 init_module 175 105 finit_module 313 273 delete_module 176 106
reboot 169 142 swapon 167 224 swapoff 168 225 acct 163 89 quotactl 179 60 quotactl_fd 443 443 syslog 103 116
iopl 172 - ioperm 173 - vhangup 153 58 sethostname 170 161 setdomainname 171 162 settimeofday 164 170
clock_settime 227 112 clock_adjtime 305 266 adjtimex 159 171 bpf 321 280 perf_event_open 298 241
userfaultfd 323 282 io_uring_setup 425 425 io_uring_enter 426 426 io_uring_register 427 427 keyctl 250 219
add_key 248 217 request_key 249 218 fanotify_init 300 262 name_to_handle_at 303 264 open_by_handle_at 304 265
memfd_create 319 279 memfd_secret 447 447 shmget 29 194 msgget 68 186 semget 64 190 mq_open 240 180
chmod 90 - fchmod 91 52 fchmodat 268 53 fchmodat2 452 452 chown 92 - lchown 94 - fchown 93 55 fchownat 260 54
utime 132 - utimes 235 - futimesat 261 - utimensat 280 88 setxattr 188 5 lsetxattr 189 6 fsetxattr 190 7
setxattrat 463 463 removexattr 197 14 lremovexattr 198 15 fremovexattr 199 16 removexattrat 466 466
file_setattr 469 469 mknod 133 - mknodat 259 33 setpriority 141 140 ioprio_set 251 30
sched_setaffinity 203 122 sched_setparam 142 118 sched_setscheduler 144 119 sched_setattr 314 274
migrate_pages 256 238 move_pages 279 239 vmsplice 278 75
"""
# Calls that may be made, but not with every argument; clone3 hides its arguments, so clone must do.
PARTLY = "clone 56 220 clone3 435 435 prctl 157 167 prlimit64 302 261 ioctl 16 29 mmap 9 222 " \
         "setsockopt 54 208 fcntl 72 25 "
SIGNALS = "kill 62 129 tgkill 234 131 tkill 200 130 rt_sigqueueinfo 129 138 rt_tgsigqueueinfo 297 240 " \
          "pidfd_send_signal 424 424"
NEWEST = 469  # what came later is not known here, and answered as if the kernel were older
NEW_SPACES, PDEATHSIG, DUMPABLE, TIOCSTI = 0x7E020000, 1, 4, 0x5412
SHARED_ANONYMOUS, HUGETLB, SETPIPE_SZ = 0x21, 0x40000, 1031
BUFFER_SIZES = 7, 8, 32, 33  # SO_SNDBUF, SO_RCVBUF, SO_SNDBUFFORCE, SO_RCVBUFFORCE
ARCHITECTURES = {"x86_64": (0xC000003E, 1), "aarch64": (0xC00000B7, 2)}

LOAD, AND, EQUAL, GREATER, ANY_BIT, RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06  # instructions
ALLOW, ERROR = 0x7FFF0000, 0x00050000
# Call, which of its arguments, and what it may not be.
ARGUMENT = (("clone", 0, ANY_BIT, NEW_SPACES), ("prctl", 0, EQUAL, PDEATHSIG), ("prctl", 0, EQUAL, DUMPABLE),
            ("ioctl", 1, EQUAL, TIOCSTI), ("fcntl", 1, EQUAL, SETPIPE_SZ), ("mmap", 3, ANY_BIT, HUGETLB),
            *(("setsockopt", 2, EQUAL, option) for option in BUFFER_SIZES))
NUMBER, ARCHITECTURE, ARGUMENTS = 0, 4, 16  # where they stand in what a filter is given


def known() -> bool:
    """Whether there is a filter for this machine."""
    return platform.machine() in ARCHITECTURES


def numbers(calls: str = CALLS + PARTLY + SIGNALS) -> dict[str, int]:
    """{name: number} of these calls on this machine."""
    column = ARCHITECTURES[platform.machine()][1]
    return {call[0]: int(call[column]) for call in re.findall(r"(\w+) (\d+|-) (\d+|-)", calls)
            if call[column] != "-"}


def program(hold_signals: bool) -> bytes:
    """The filter.  hold_signals: forbid signals to any process but this one, where nothing else does."""
    known = numbers()
    code = [_step(LOAD, ARCHITECTURE), *_unless(EQUAL, ARCHITECTURES[platform.machine()][0], errno.EPERM),
            _step(LOAD, NUMBER), *_if(GREATER, NEWEST, errno.ENOSYS),
            *_if(EQUAL, known["clone3"], errno.ENOSYS)]
    for number in numbers(CALLS).values():
        code += _if(EQUAL, number, errno.EPERM)
    for name, index, test, value in ARGUMENT:
        code += _with_argument(known[name], index, _if(test, value, errno.EPERM))
    code += _with_argument(known["prlimit64"], 0, _unless(EQUAL, 0, errno.EPERM))
    code += _with_argument(known["mmap"], 3, [_step(AND, SHARED_ANONYMOUS),
                                              *_if(EQUAL, SHARED_ANONYMOUS, errno.EPERM)])
    if hold_signals:
        for name in ("kill", "tgkill"):
            code += _with_argument(known[name], 0, _unless(EQUAL, os.getpid(), errno.EPERM))
        for name in ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"):
            code += _if(EQUAL, known[name], errno.EPERM)
    return b"".join([*code, _step(RETURN, ALLOW)])


def _step(instruction: int, value: int, then: int = 0, otherwise: int = 0) -> bytes:
    return struct.pack("=HBBI", instruction, then, otherwise, value)


def _if(test: int, value: int, error: int) -> list[bytes]:
    return [_step(test, value, 0, 1), _step(RETURN, ERROR | error)]


def _unless(test: int, value: int, error: int) -> list[bytes]:
    return [_step(test, value, 1, 0), _step(RETURN, ERROR | error)]


def _with_argument(number: int, index: int, steps: Sequence[bytes]) -> list[bytes]:
    """Apply `steps` to an argument of one call, and go on with the call's number loaded again."""
    inner = [_step(LOAD, ARGUMENTS + 8 * index), *steps, _step(LOAD, NUMBER)]
    return [_step(EQUAL, number, 0, len(inner)), *inner]
