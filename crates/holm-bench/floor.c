/* The kernel's own share of starting a minimal guest: every namespace, id maps, an overlay root on a
 * tmpfs, /proc, pivot_root, exec; nothing else. Usage: floor ROOT [net] PROGRAM... */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void must(int ok, const char *what) {
	if (!ok) {
		fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
		_exit(125);
	}
}

static void put(const char *path, const char *text) {
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	must(fd >= 0 && write(fd, text, strlen(text)) > 0, path);
	close(fd);
}

static void enter(const char *root, char **argv) {
	char options[96];
	must(!setresgid(0, 0, 0) && !setresuid(0, 0, 0), "setresuid");
	must(!mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private");
	/* The tmpfs may cover the root's directory. */
	int lower = open(root, O_PATH | O_CLOEXEC);
	must(lower >= 0, root);
	must(!mount("floor", "/tmp", "tmpfs", 0, NULL), "tmpfs");
	must(!mkdir("/tmp/u", 0755) && !mkdir("/tmp/w", 0755) && !mkdir("/tmp/r", 0755), "mkdir");
	snprintf(options, sizeof options, "lowerdir=/proc/self/fd/%d,upperdir=/tmp/u,workdir=/tmp/w", lower);
	must(!mount("floor", "/tmp/r", "overlay", 0, options), "overlay");
	must(!mount("proc", "/tmp/r/proc", "proc", 0, NULL), "proc");
	must(!chdir("/tmp/r") && !syscall(SYS_pivot_root, ".", "."), "pivot_root");
	must(!umount2(".", MNT_DETACH), "umount");
	execv(argv[0], argv);
	must(0, argv[0]);
}

int main(int argc, char **argv) {
	char path[64], c;
	int net = argc > 2 && !strcmp(argv[2], "net"), go[2], status;
	must(argc > 2 + net, "usage: floor ROOT [net] PROGRAM...");
	must(!pipe2(go, O_CLOEXEC), "pipe");
	long flags = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWCGROUP;
	pid_t pid = syscall(SYS_clone, flags | (net ? CLONE_NEWNET : 0) | SIGCHLD, 0, 0, 0, 0);
	must(pid >= 0, "clone");
	if (pid == 0) {
		close(go[1]);
		must(read(go[0], &c, 1) == 0, "wait");
		enter(argv[1], argv + 2 + net);
	}
	snprintf(path, sizeof path, "/proc/%d/uid_map", pid);
	put(path, "0 1000000 65536");
	snprintf(path, sizeof path, "/proc/%d/gid_map", pid);
	put(path, "0 1000000 65536");
	close(go[1]);
	must(waitpid(pid, &status, 0) == pid, "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
