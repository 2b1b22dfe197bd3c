"""What hostile code tries, and what must come of it; one table, readable top to bottom.

`outcome` is the cause of the ConfinedError, or "value" where the code ran to its end without
having got anything; `sees` is what the message or value must contain. `{secret}`, `{folder}`,
`{port}` and `{name}` stand for a planted file, its folder, a listening port and the name of the
listening unix socket.
"""
# ruff: noqa: E501 - a table with one attack a line

from typing import NamedTuple


class Attack(NamedTuple):
    """One hostile snippet; `kind` is the table that it stands in."""

    name: str
    outcome: str
    sees: str
    code: str
    kind: str = ""


# Landlock answers "cross-device" to a link out of a folder that it closed.
REFUSED = r"PermissionError|FileNotFoundError|Read-only file system|cross-device link"
DENIED = r"PermissionError"

# Statements; `solution` is made of them. The last value is assigned to `got`.
PRELUDE = """
import ctypes, errno, os, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    ctypes.set_errno(0)
    result = getattr(libc, name)(*arguments)
    return f"{result} {errno.errorcode.get(ctypes.get_errno(), 'OK')}"
def raw(number, *arguments):
    return call("syscall", ctypes.c_long(number), *arguments)
"""

FILES = [
    ("reads /etc/passwd", REFUSED, "got = open('/etc/passwd').read()"),
    ("reads /etc/shadow", REFUSED, "got = open('/etc/shadow').read()"),
    ("reads a planted secret", REFUSED, "got = open('{secret}').read()"),
    ("lists the secret's folder", REFUSED, "got = os.listdir('{folder}')"),
    ("lists the host's logs", REFUSED, "got = os.listdir('/var/log')"),
    ("lists /home", REFUSED, "got = os.listdir('/home')"),
    ("lists /sys", REFUSED, "got = os.listdir('/sys/kernel')"),
    ("makes a file beside the secret", REFUSED, "open('{folder}/new', 'w').write('x')"),
    ("overwrites the secret", REFUSED, "open('{secret}', 'w').write('x')"),
    ("deletes the secret", REFUSED, "os.unlink('{secret}')"),
    ("renames the secret", REFUSED, "os.rename('{secret}', '{secret}.x')"),
    ("opens up the secret's rights", REFUSED, "os.chmod('{secret}', 0o777)"),
    ("changes the secret's time", REFUSED, "os.utime('{secret}', (0, 0))"),
    ("cuts the secret off", REFUSED, "os.truncate('{secret}', 0)"),
    ("marks the secret", REFUSED, "os.setxattr('{secret}', 'user.x', b'1')"),
    ("reads the secret through a link", REFUSED, "os.symlink('{secret}', 'l'); open('l').read()"),
    ("keeps a hard link to the secret", REFUSED, "os.link('{secret}', 'l'); open('l').read()"),
    ("writes into /usr", REFUSED, "open('/usr/lib/x', 'w').write('x')"),
    ("writes into Python's own folder", REFUSED, "open(sys.prefix + '/x', 'w').write('x')"),
    ("cuts off Python's library", REFUSED, "os.truncate(os.__file__, 0)"),
    ("makes Python's library writable", REFUSED, "os.chmod(os.__file__, 0o777)"),
    ("writes into the root folder", REFUSED, "open('/x', 'w').write('x')"),
    ("reads kernel messages", REFUSED, "open('/dev/kmsg').read(1)"),
    ("makes a device", DENIED, "import stat; os.mknod('d', stat.S_IFBLK | 0o600, os.makedev(8, 0))"),
    ("reads its parent's environment", REFUSED, "got = open(f'/proc/{os.getppid()}/environ').read()"),
    ("reads its parent's memory", REFUSED, "got = open(f'/proc/{os.getppid()}/mem', 'rb').read(1)"),
    ("changes the kernel's settings", REFUSED, "open('/proc/sys/kernel/core_pattern', 'w').write('x')"),
    ("makes a program that runs as its owner", DENIED, "open('s', 'w').close(); os.chmod('s', 0o4755)"),
    ("makes one with its first breath", DENIED, "os.open('t', os.O_CREAT | os.O_WRONLY, 0o4755)"),
    ("enters a folder by handle", REFUSED, "fd = os.open('{folder}', os.O_RDONLY); os.fchdir(fd)"),
    ("fills shared memory", REFUSED, "open('/dev/shm/x', 'wb').write(bytes(100))"),
]  # fmt: skip

NETWORK = [
    ("connects over TCP", DENIED, "import socket; socket.create_connection(('127.0.0.1', {port}))"),
    ("listens on TCP", DENIED, "import socket; socket.create_server(('127.0.0.1', 0))"),
    ("sends UDP", DENIED, "import socket; s = socket.socket(2, 2); s.sendto(b'x', ('127.0.0.1', 9))"),
    ("uses IPv6", DENIED, "import socket; socket.socket(socket.AF_INET6)"),
    ("connects to a unix socket", DENIED, "import socket; socket.socket(1).connect('{folder}/s')"),
    ("connects to an abstract socket", DENIED, "import socket; socket.socket(1).connect('\\0{name}')"),
    ("makes a socket pair", DENIED, "import socket; socket.socketpair()"),
    ("reaches the hypervisor (vsock)", DENIED, "import socket; socket.socket(40, 1)"),
    ("opens netlink", DENIED, "import socket; socket.socket(16, 3)"),
    ("opens a raw socket", DENIED, "import socket; socket.socket(2, 3, 1)"),
    ("looks up a name", "gaierror|PermissionError", "import socket; socket.getaddrinfo('a.b', 80)"),
    ("fetches a page", "URLError", "import urllib.request as u; u.urlopen('http://127.0.0.1:{port}')"),
]  # fmt: skip

PROCESSES = [
    ("forks", DENIED, "os.fork()"),
    ("starts a program", DENIED, "import subprocess; subprocess.run(['/bin/ls'])"),
    ("becomes a program", DENIED, "os.execv('/bin/ls', ['ls'])"),
    ("spawns a program", DENIED, "os.posix_spawn('/bin/ls', ['ls'], {{}})"),
    ("uses multiprocessing", "Error", "import multiprocessing as m; m.Process(target=print).start()"),
    ("kills its parent", DENIED, "os.kill(os.getppid(), 9)"),
    ("kills everybody", DENIED, "os.kill(-1, 9)"),
    ("kills process 1", DENIED, "os.kill(1, 9)"),
    ("kills its process group", DENIED, "os.killpg(0, 9)"),
    ("leaves its process group", DENIED, "os.setsid()"),
    ("has the kernel signal its parent", DENIED,
     "import fcntl; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETOWN, os.getppid())"),
    ("picks the signal for that", DENIED,
     "import fcntl; r, w = os.pipe(); fcntl.fcntl(r, fcntl.F_SETSIG, 9)"),
    ("opens its parent as a descriptor", DENIED, "os.pidfd_open(os.getppid())"),
    ("limits its parent", DENIED, "import resource as r; r.prlimit(os.getppid(), 0, (1, 1))"),
    ("slows its parent down", DENIED, "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)"),
    ("pins its parent to a processor", DENIED, "os.sched_setaffinity(os.getppid(), [0])"),
    ("raises its own limits", "ValueError|PermissionError",
     "import resource as r; r.setrlimit(r.RLIMIT_AS, (-1, -1))"),
]  # fmt: skip

KERNEL = [
    ("runs a shell", r"^(-1|32512)$", "got = os.system('id')"),
    ("makes a user namespace", "^-1 EPERM$", "got = call('unshare', 0x10000000)"),
    ("makes a network namespace", "^-1 EPERM$", "got = call('unshare', 0x40000000)"),
    ("clones into a user namespace", "^-1 EPERM$",
     "n = {{'x86_64': 56, 'aarch64': 220}}[os.uname().machine]; got = raw(n, 0x10000011, 0, 0, 0, 0)"),
    ("clones by the newer call", "^-1 ENOSYS$", "got = raw(435, bytes(88), 88)"),
    ("enters a namespace", "^-1 EPERM$", "got = call('setns', 0, 0)"),
    ("mounts", "^-1 EPERM$", "got = call('mount', b'none', b'/tmp', b'tmpfs', 0, None)"),
    ("changes its root", "^-1 EPERM$", "got = call('chroot', b'/tmp')"),
    ("traces its parent", "^-1 EPERM$", "got = call('ptrace', 16, os.getppid(), 0, 0)"),
    ("reads its parent's memory by call", "^-1 EPERM$",
     "got = call('process_vm_readv', os.getppid(), None, 0, None, 0, 0)"),
    ("sets up io_uring", "^-1 EPERM$", "got = raw(425, 1, bytes(120))"),
    ("loads BPF", "^-1 EPERM$",
     "n = {{'x86_64': 321, 'aarch64': 280}}[os.uname().machine]; got = raw(n, 0, None, 0)"),
    ("uses the keyring", "^-1 EPERM$",
     "n = {{'x86_64': 250, 'aarch64': 219}}[os.uname().machine]; got = raw(n, 0, -3, 0)"),
    ("reserves memory outside its own", "^-1 EPERM$", "got = call('memfd_create', b'x', 0)"),
    ("reserves memory that outlives it", "^-1 EPERM$", "got = call('shmget', 0, 4096, 0o1600)"),
    ("asks to outlive its parent", "^-1 EPERM$", "got = call('prctl', 1, 0, 0, 0, 0)"),
    ("uses a call newer than the table", "^-1 ENOSYS$", "got = raw(460, 0, 0, 0)"),
    ("types into a terminal", "^-1 ENOTTY$", "got = call('ioctl', 2, 0x5412, b'x')"),
    ("prints its environment", "LANG", "got = sorted(os.environ.items())"),
    ("reads every environment in /proc", r"^\[\]$",
     "import glob\n"
     "got = []\n"
     "for path in [*glob.glob('/proc/[0-9]*/environ'), '/proc/self/environ', '/proc/1/environ']:\n"
     "    try:\n"
     "        got.append(open(path).read())\n"
     "    except OSError:\n"
     "        pass"),
    ("reads what is left on its stdin", r"^''$", "got = repr(sys.stdin.read())"),
    ("looks for open descriptors", r"^\[0, 1, 2, 3\]$",
     "got = []\n"
     "for number in range(256):\n"
     "    try:\n"
     "        os.fstat(number)\n"
     "    except OSError:\n"
     "        continue\n"
     "    got.append(number)"),
    ("forges a good reply", "^42$", "os.write(3, b'{{\"text\": \"42\"}}'); os._exit(0)"),
    ("takes over the runner's functions", "^mine$",
     "import json; json.dumps = lambda *_: '{{\"text\": \"mine\"}}'"),
]  # fmt: skip

LIMITS = [
    ("starts 5000 threads", "error|memory|timeout", "can't start new thread|memory|MemoryError|stopped",
     "import threading, time\n"
     "for _ in range(5000):\n"
     "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"),
    ("takes 8 GiB", "memory", "limit", "got = bytearray(8 << 30)"),
    ("takes memory bit by bit", "memory", "limit",
     "hold = []\nwhile True:\n    hold.append(bytearray(1 << 20))"),
    ("maps memory without touching it", "error|memory", "ENOMEM|memory|Cannot allocate",
     "import mmap\nhold = [mmap.mmap(-1, 1 << 28) for _ in range(100)]"),
    ("writes one endless file", "error|disk", "No space|File too large|wrote more than",
     "f = open('big', 'wb')\nwhile True:\n    f.write(bytes(1 << 20))"),
    ("writes many large files", "error|disk", "No space|wrote more than",
     "for i in range(100000):\n    open(str(i), 'wb').write(bytes(1 << 20))"),
    ("reserves disk without writing", "error|disk", "No space|File too large|wrote more than",
     "import time\n"
     "for i in range(100):\n"
     "    os.posix_fallocate(os.open(str(i), os.O_RDWR | os.O_CREAT), 0, 4 << 20)\n"
     "time.sleep(60)"),
    ("loops for ever", "timeout", "stopped after", "while True:\n    pass"),
    ("ignores the warning about its time", "timeout|killed", "stopped after|was killed",
     "import signal\nsignal.signal(signal.SIGXCPU, signal.SIG_IGN)\nwhile True:\n    pass"),
    ("sleeps", "timeout", "stopped after", "import time; time.sleep(1000)"),
    ("stays in one long calculation", "timeout|memory", "stopped after|memory", "got = 9**9**9"),
    ("waits for a lock", "timeout", "stopped after",
     "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()"),
    ("hides in another thread", "timeout", "stopped after",
     "import threading\n"
     "def spin():\n"
     "    while True: pass\n"
     "t = threading.Thread(target=spin); t.start(); t.join()"),
    ("floods stdout", "output", "printed more", "while True:\n    print('x' * 1000)"),
    ("floods stderr", "output", "printed more", "while True:\n    os.write(2, b'x' * 65536)"),
    ("floods the reply", "output", "printed more", "while True:\n    os.write(3, b'x' * 65536)"),
    ("returns far too much", "output", "larger than", "got = 'x' * (5 << 20)"),
    ("raises far too much", "error", "ValueError: xxx", "raise ValueError('x' * (5 << 20))"),
]  # fmt: skip

ENDINGS = [
    ("forges a reply with a path", "crashed", "cannot be read",
     "os.write(3, b'{{\"text\": \"x\", \"path\": \"/etc/passwd\"}}'); os._exit(0)"),
    ("forges a result and an error at once", "crashed", "contradicts",
     "os.write(3, b'{{\"text\": \"x\", \"error\": \"y\"}}'); os._exit(0)"),
    ("forges a missing jail", "error", "without a message",
     "os.write(3, b'{{\"setup\": \"bubblewrap is missing\"}}'); os._exit(0)"),
    ("forges before the true reply", "crashed", "cannot be read", "os.write(3, b'{{\"text\": \"x\"}}')"),
    ("forges rubbish", "crashed", "cannot be read", "os.write(3, os.urandom(99)); os._exit(0)"),
    ("forges a deep reply", "crashed", "cannot be read",
     "os.write(3, b'[' * 60000); os._exit(0)"),
    ("forges bytes that are none", "crashed", "cannot be read",
     "os.write(3, b'{{\"bytes\": \"###\"}}'); os._exit(0)"),
    ("forges half a character", "crashed", "cannot be read",
     "os.write(3, b'{{\"text\": \"' + bytes([92]) + b'ud800\"}}'); os._exit(0)"),
    ("forges a number for a text", "crashed", "cannot be read",
     "os.write(3, b'{{\"text\": 1' + b'0' * 9999 + b'}}'); os._exit(0)"),
    ("replies well and ends badly", "crashed", "contradicts",
     "os.write(3, b'{{\"text\": \"x\"}}'); os._exit(3)"),
    ("pretends to be a fresh jail", "crashed", "without a result",
     "os.write(2, b'gta-bench jail: ready' + bytes([10])); os._exit(70)"),
    ("ends without a word", "crashed", "without a result", "os._exit(0)"),
    ("ends with a status", "crashed", "exit status 5", "os._exit(5)"),
    ("leaves by SystemExit", "error", "SystemExit", "sys.exit('bye')"),
    ("interrupts itself", "error", "KeyboardInterrupt", "raise KeyboardInterrupt"),
    ("touches address 0", "crashed", "SIGSEGV", "ctypes.string_at(0)"),
    ("aborts", "crashed", "SIG", "os.abort()"),
    ("recurses without end", "error", "RecursionError", "def f(): f()\nf()"),
    ("recurses past the stack", "crashed|memory|error", "SIG|memory|Error",
     "sys.setrecursionlimit(10**9)\nimport ctypes\n"
     "@ctypes.CFUNCTYPE(None)\n"
     "def f(): f()\n"
     "f()"),
    ("closes every descriptor", "crashed", "without a result", "os.closerange(0, 256)"),
    ("raises an error that cannot be shown", "error", "failed: Bad",
     "class Bad(Exception):\n    def __str__(self): raise MemoryError\nraise Bad"),
    ("divides by zero", "error", r"ZeroDivisionError: .*line \d+: 1 / 0", "1 / 0"),
]  # fmt: skip

# mov eax, 20 (getpid of i386); int 0x80; ret / mov eax, 0x40000027 (getpid of x32); syscall; ret
MACHINE_CODE = """
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write({code!r})
got = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
"""
X86_ONLY = [
    ("calls the 32-bit kernel", MACHINE_CODE.format(code=b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")),
    ("calls the x32 kernel", MACHINE_CODE.format(code=b"\xb8\x27\x00\x00\x40\x0f\x05\xc3")),
]


def _attack(name: str, outcome: str, sees: str, statements: str, *, plain: bool = False) -> Attack:
    body = statements if plain else statements.replace("{{", "\0").replace("}}", "\1")
    indented = "\n".join(f"    {line}" for line in body.splitlines())
    code = f"{PRELUDE}\ndef solution():\n    got = None\n{indented}\n    return got\n"
    return Attack(name, outcome, sees, code)


def attacks(machine: str) -> list[Attack]:
    """The whole corpus for an architecture."""
    tables = {"files": FILES, "network": NETWORK, "processes": PROCESSES}
    found = [
        _attack(name, "error", sees, code)._replace(kind=kind)
        for kind, table in tables.items()
        for name, sees, code in table
    ]
    found += [
        _attack(name, "value", sees, code)._replace(kind="kernel") for name, sees, code in KERNEL
    ]
    for kind, bounds in (("limits", LIMITS), ("endings", ENDINGS)):
        found += [_attack(*row)._replace(kind=kind) for row in bounds]
    if machine == "x86_64":
        for name, code in X86_ONLY:
            attack = _attack(name, "crashed", "SIGSYS", code, plain=True)
            found.append(attack._replace(kind="machine"))
    return found


def filled(attack: Attack, places: dict[str, str]) -> str:
    """The attack's code with the planted things in it."""
    code = attack.code
    for name, value in places.items():
        code = code.replace("{" + name + "}", value)
    return code.replace("\0", "{").replace("\1", "}")


# What a program comes to where it may start processes: nothing of it reaches beyond its own jail.
# A pattern over the outcome and its words.
FORKS = {
    "forks": "value",
    "starts a program": "value",
    "becomes a program": "crashed",
    "spawns a program": "value|crashed",
    "uses multiprocessing": "value|crashed",
    "runs a shell": "value: 0",
    "reserves memory outside its own": "value: 3 OK",
    "looks for open descriptors": r"value: \[0, 1, 2\]",
    "forges a good reply": "error: OSError: .*Bad file descriptor",
    "takes over the runner's functions": "crashed",
}
# What it comes to in namespaces of its own: it meets nobody but itself.
ALONE = {
    **FORKS,
    "fills shared memory": "value",
    "connects over TCP": "error: ConnectionRefusedError",
    "listens on TCP": "value",
    "sends UDP": "value",
    "uses IPv6": "value",
    "connects to a unix socket": "error: FileNotFoundError",
    "connects to an abstract socket": "error: ConnectionRefusedError",
    "makes a socket pair": "value",
    "reaches the hypervisor (vsock)": "error: OSError: .*Address family not supported",
    "opens netlink": "value",
    "kills everybody": "error: ProcessLookupError|gone",
    "kills its process group": "killed|crashed",
    "leaves its process group": "value|error: PermissionError",
    "has the kernel signal its parent": "value",
    "picks the signal for that": "value",
    "asks to outlive its parent": "value: 0 OK",
    "reads every environment in /proc": "value: .*LANG",
    # An ordinary user's bubblewrap is the same user; it has the same filter and nothing to give.
    "reads its parent's environment": "error: PermissionError|value: LANG|value: $",
    "reads its parent's memory": "error",
    "kills its parent": "error: PermissionError|value|gone",
    "kills process 1": "error: PermissionError|value",
    "slows its parent down": "error|value",
    "pins its parent to a processor": "error|value",
}
# A harness has a home and accounts of its own, and memory is bounded for all of it together.
IN_CELL = {
    **ALONE,
    "reads /etc/passwd": r"value: harness:x:\d+:\d+::/home/harness:/bin/sh\n$",
    "lists /home": r"value: \['harness'\]",
    "raises its own limits": "value",
    "calls the 32-bit kernel": "crashed",
    "calls the x32 kernel": "crashed",
}


def expected(attack: Attack, kind: str, road: str) -> str:
    """A pattern over the outcome and its words, for a kind of jail and a road into it."""
    instead: dict[str, str] = {}
    if road == "program":
        instead = ALONE if kind == "bubblewrap" else FORKS
    elif road == "cell":
        instead = IN_CELL
    usual = f"(?:{attack.outcome}): .*(?:{attack.sees.removeprefix('^')})"
    return instead.get(attack.name, usual)
