"""Numbers of the system calls that the filter mentions, for x86_64 and aarch64.

Grouped by what they would allow. Sources: the kernel's `unistd_64.h` and
`asm-generic/unistd.h`; a test compares every number with the headers where they are installed.
"""

from typing import NamedTuple

# name:x86_64:aarch64, with a dash if the architecture does not have the call.
GROUPS = {
    "processes": """
        fork:57:- vfork:58:- execve:59:221 execveat:322:281
    """,
    "sockets": """
        socket:41:198 socketpair:53:199 connect:42:203 bind:49:200 listen:50:201 accept:43:202
        accept4:288:242 sendto:44:206 sendmsg:46:211 sendmmsg:307:269
    """,
    "signals": """
        kill:62:129 tkill:200:130 tgkill:234:131 rt_sigqueueinfo:129:138 rt_tgsigqueueinfo:297:240
        pidfd_send_signal:424:424
    """,
    "tracing": """
        ptrace:101:117 process_vm_readv:310:270 process_vm_writev:311:271 process_madvise:440:440
        process_mrelease:448:448 pidfd_open:434:434 pidfd_getfd:438:438 kcmp:312:272
    """,
    "namespaces": """
        unshare:272:97 setns:308:268 mount:165:40 umount2:166:39 pivot_root:155:41 chroot:161:51
        move_mount:429:429 open_tree:428:428 fsopen:430:430 fsconfig:431:431 fsmount:432:432
        fspick:433:433 mount_setattr:442:442 name_to_handle_at:303:264 open_by_handle_at:304:265
        quotactl:179:60 quotactl_fd:443:443
    """,
    "kernel": """
        bpf:321:280 perf_event_open:298:241 userfaultfd:323:282 io_uring_setup:425:425
        io_uring_enter:426:426 io_uring_register:427:427 add_key:248:217 request_key:249:218
        keyctl:250:219 init_module:175:105 finit_module:313:273 delete_module:176:106
        kexec_load:246:104 kexec_file_load:320:294 reboot:169:142 swapon:167:224 swapoff:168:225
        acct:163:89 syslog:103:116 settimeofday:164:170 clock_settime:227:112
        clock_adjtime:305:266 adjtimex:159:171 sethostname:170:161 setdomainname:171:162
        iopl:172:- ioperm:173:- modify_ldt:154:- personality:135:92 vhangup:153:58
        lookup_dcookie:212:18 uselib:134:- ustat:136:- sysfs:139:- fanotify_init:300:262
        fanotify_mark:301:263 nfsservctl:180:42
    """,
    "shared memory": """
        shmget:29:194 shmat:30:196 shmctl:31:195 semget:64:190 semop:65:193 semtimedop:220:192
        semctl:66:191 msgget:68:186 msgsnd:69:189 msgrcv:70:188 msgctl:71:187 mq_open:240:180
        mq_unlink:241:181 mq_notify:244:184
    """,
    "unmapped memory": """
        memfd_create:319:279 memfd_secret:447:447
    """,
    "neighbors": """
        setsid:112:157 setpgid:109:154 setpriority:141:140 ioprio_set:251:30
        sched_setaffinity:203:122 sched_setscheduler:144:119 sched_setparam:142:118
        sched_setattr:314:274 migrate_pages:256:238 move_pages:279:239 mbind:237:235
        set_mempolicy:238:237 inotify_init:253:- inotify_init1:294:26 inotify_add_watch:254:27
    """,
    "metadata": """
        chmod:90:- fchmod:91:52 fchmodat:268:53 fchmodat2:452:452 chown:92:- lchown:94:-
        fchown:93:55 fchownat:260:54 utime:132:- utimes:235:- utimensat:280:88 futimesat:261:-
        setxattr:188:5 lsetxattr:189:6 fsetxattr:190:7 removexattr:197:14 lremovexattr:198:15
        fremovexattr:199:16
    """,
    "making files": """
        open:2:- openat:257:56 openat2:437:437 creat:85:- mknod:133:- mknodat:259:33
    """,
    "judged by argument": """
        clone:56:220 clone3:435:435 prlimit64:302:261 prctl:157:167 fcntl:72:25 ioctl:16:29
    """,
    "ours": """
        seccomp:317:277 landlock_create_ruleset:444:444 landlock_add_rule:445:445
        landlock_restrict_self:446:446
    """,
}

# Calls added after `futex_requeue` (Linux 6.7) are not in this table and fail with ENOSYS: programs
# then use the older call, and a new kernel cannot open a new hole.
FIRST_UNKNOWN = 457


class Architecture(NamedTuple):
    """How a filter recognizes an architecture, and its column of the table."""

    machine: str
    audit: int
    column: int


ARCHITECTURES = {
    "x86_64": Architecture("x86_64", 0xC000003E, 0),
    "aarch64": Architecture("aarch64", 0xC00000B7, 1),
}


def numbers(group: str, architecture: Architecture) -> dict[str, int]:
    """The group's calls that exist on that architecture, by name."""
    found = {}
    for entry in GROUPS[group].split():
        name, *columns = entry.split(":")
        if columns[architecture.column] != "-":
            found[name] = int(columns[architecture.column])
    return found
