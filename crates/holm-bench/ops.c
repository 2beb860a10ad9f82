/* What operations on files, or on processes and memory, cost: for each a line with its name, a tab, and
 * the nanoseconds of CPU time of one of them. CPU time, so that other programs do not count.
 *
 * usage: ops [--filter] [--read-only] DIRECTORY
 *        ops [--filter] --processes
 *        ops --write FILE | --copy-and-write FILE NEW | --clone-and-write FILE NEW
 *
 * The last form prints the milliseconds until a file, or a copy of it, was written to once.
 *
 * DIRECTORY has the files of the base: base/0 to base/99 of 4 KiB each, and base/big of 1 MiB.
 * Files that are made and changed are in DIRECTORY/work, which is made. All paths are relative to
 * DIRECTORY, so that it does not matter how deep it lies. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FILES = 100, BIG = 1 << 20, PAGE = 4096, TOUCHED = 1024 * PAGE, SPAN_NS = 20 * 1000 * 1000 };

static char buffer[BIG];
static int own, base_file;
static char names[FILES][16];
static const char *program;

static void fail(const char *what) {
  fprintf(stderr, "%s: %s\n", what, strerror(errno));
  exit(1);
}

static void check(long result, const char *what) {
  if (result < 0) fail(what);
}

static int opened(const char *name, int flags) {
  int fd = open(name, flags | O_CLOEXEC, 0644);
  check(fd, name);
  return fd;
}

static double now(clockid_t clock) {
  struct timespec time;
  check(clock_gettime(clock, &time), "clock_gettime");
  return time.tv_sec * 1e9 + time.tv_nsec;
}

static void stat_base(int i) {
  struct stat found;
  check(fstatat(AT_FDCWD, names[i % FILES], &found, 0), "stat");
}

static void failed_lookup(int i) {
  struct stat found;
  (void)i;
  if (fstatat(AT_FDCWD, "base/missing", &found, 0) == 0) exit(1);
}

static void open_read_close(const char *name) {
  int fd = opened(name, O_RDONLY);
  check(read(fd, buffer, PAGE), "read");
  close(fd);
}

static void open_base(int i) { open_read_close(names[i % FILES]); }

static void read_page(int i) {
  (void)i;
  check(pread(base_file, buffer, PAGE, 0), "pread");
}

static void read_big(int i) {
  (void)i;
  check(pread(base_file, buffer, BIG, 0), "pread");
}

static void map_and_fault(int i) {
  (void)i;
  volatile char *at = mmap(NULL, BIG, PROT_READ, MAP_SHARED, base_file, 0);
  if (at == MAP_FAILED) fail("mmap");
  for (int page = 0; page < BIG; page += PAGE) (void)at[page];
  munmap((void *)at, BIG);
}

static void list(int i) {
  (void)i;
  DIR *directory = opendir("base");
  if (!directory) fail("base");
  while (readdir(directory)) {}
  closedir(directory);
}

static void stat_own(int i) {
  struct stat found;
  (void)i;
  check(fstatat(AT_FDCWD, "work/own", &found, 0), "stat");
}

static void open_own(int i) { (void)i; open_read_close("work/own"); }

static void create_of(size_t size) {
  int fd = opened("work/new", O_WRONLY | O_CREAT | O_EXCL);
  if (size) check(write(fd, buffer, size), "write");
  close(fd);
  check(unlink("work/new"), "unlink");
}

static void create_empty(int i) { (void)i; create_of(0); }
static void create_10k(int i) { (void)i; create_of(10240); }

static void rename_own(int i) {
  static const char *sides[] = {"work/left", "work/right"};
  check(rename(sides[i % 2], sides[(i + 1) % 2]), "rename");
}

static void make_directory(int i) {
  (void)i;
  check(mkdir("work/directory", 0755), "mkdir");
  check(rmdir("work/directory"), "rmdir");
}

static void write_page(int i) { (void)i; check(pwrite(own, buffer, PAGE, 0), "pwrite"); }
static void write_16(int i) { (void)i; check(pwrite(own, buffer, 16 * PAGE, 0), "pwrite"); }

static void get_pid(int i) { (void)i; syscall(SYS_getpid); }

static void wait_for(pid_t child) {
  int status;
  check(waitpid(child, &status, 0), "waitpid");
  if (status != 0) exit(1);
}

static void fork_wait(int i) {
  (void)i;
  pid_t child = fork();
  check(child, "fork");
  if (child == 0) _exit(0);
  wait_for(child);
}

static void fork_exec_wait(int i) {
  (void)i;
  pid_t child = fork();
  check(child, "fork");
  if (child == 0) {
    execl(program, program, "--exit", NULL);
    _exit(1);
  }
  wait_for(child);
}

static void touch_memory(int i) {
  (void)i;
  volatile char *at =
    mmap(NULL, TOUCHED, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) fail("mmap");
  /* Or a fault gives 2 MiB, when the machine has them. */
  madvise((void *)at, TOUCHED, MADV_NOHUGEPAGE);
  for (int page = 0; page < TOUCHED; page += PAGE) at[page] = 1;
  munmap((void *)at, TOUCHED);
}

struct operation {
  const char *name;
  void (*run)(int);
  int writes;
};

static const struct operation operations[] = {
  {"stat, base file", stat_base, 0},
  {"failed lookup", failed_lookup, 0},
  {"open, read 4 KiB, close, base file", open_base, 0},
  {"list 101 files", list, 0},
  {"read 4 KiB", read_page, 0},
  {"read 1 MiB", read_big, 0},
  {"map and fault 1 MiB", map_and_fault, 0},
  {"stat, own file", stat_own, 1},
  {"open, read 4 KiB, close, own file", open_own, 1},
  {"create, unlink, empty", create_empty, 1},
  {"create, unlink, 10 KiB", create_10k, 1},
  {"rename", rename_own, 1},
  {"mkdir, rmdir", make_directory, 1},
  {"write 4 KiB", write_page, 1},
  {"write 64 KiB", write_16, 1},
};

static const struct operation processes[] = {
  {"getpid", get_pid, 0},
  {"fork, exit, wait", fork_wait, 0},
  {"fork, exec, exit, wait", fork_exec_wait, 0},
  {"1024 page faults", touch_memory, 0},
};

/* Reads the big file anew, in the same way each time: the size of its folios in the page cache
 * depends on how it was first read, and a mapping of small ones costs twice as much. */
static void reread(void) {
  if (posix_fadvise(base_file, 0, 0, POSIX_FADV_DONTNEED) != 0) fail("posix_fadvise");
  read_page(0);
  read_big(0);
}

/* Of this process, and of its children that were waited for. */
static double cpu_time(void) {
  struct rusage children;
  check(getrusage(RUSAGE_CHILDREN, &children), "getrusage");
  struct timeval user = children.ru_utime, kernel = children.ru_stime;
  double micro = (user.tv_sec + kernel.tv_sec) * 1e6 + user.tv_usec + kernel.tv_usec;
  return now(CLOCK_PROCESS_CPUTIME_ID) + micro * 1e3;
}

/* Runs it an even number of times, so that what it renames is where it was. */
static double cost(void (*run)(int)) {
  int count = 2;
  for (;;) {
    double begin = cpu_time();
    for (int i = 0; i < count; i++) run(i);
    double took = cpu_time() - begin;
    if (took >= SPAN_NS) return took / count;
    count *= 2;
  }
}

/* As any program in a guest has one: the kernel's part of a filter, without rules. */
static void install_filter(void) {
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {1, &allow};
  check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs");
  check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), "seccomp");
}

static void copy(int from, int to) {
  ssize_t length;
  while ((length = read(from, buffer, sizeof buffer)) > 0)
    if (write(to, buffer, length) != length) fail("write");
  check(length, "read");
}

/* Wall time: a copy waits for the disk too. */
static int first_write(const char *how, const char *file, const char *new) {
  memset(buffer, 'x', sizeof buffer);
  double begin = now(CLOCK_MONOTONIC);
  int fd;
  if (!strcmp(how, "--write")) {
    fd = opened(file, O_WRONLY);
  } else {
    int from = opened(file, O_RDONLY);
    fd = opened(new, O_WRONLY | O_CREAT | O_EXCL);
    if (!strcmp(how, "--copy-and-write")) copy(from, fd);
    else check(ioctl(fd, FICLONE, from), "FICLONE");
  }
  check(pwrite(fd, buffer, 1, 0), file);
  close(fd);
  printf("%.4f\n", (now(CLOCK_MONOTONIC) - begin) / 1e6);
  return 0;
}

static void measure(const struct operation *operations, size_t count, int read_only) {
  for (const struct operation *it = operations; it < operations + count; it++)
    if (!(it->writes && read_only)) printf("%s\t%.1f\n", it->name, cost(it->run));
}

static void measure_files(const char *directory, int read_only) {
  memset(buffer, 'x', sizeof buffer);
  check(chdir(directory), directory);
  for (int i = 0; i < FILES; i++) snprintf(names[i], sizeof names[i], "base/%d", i);
  base_file = opened("base/big", O_RDONLY);
  reread();
  if (!read_only) {
    if (mkdir("work", 0755) < 0 && errno != EEXIST) fail("work");
    own = opened("work/own", O_RDWR | O_CREAT);
    check(pwrite(own, buffer, BIG, 0), "work/own");
    close(opened("work/left", O_WRONLY | O_CREAT));
  }
  measure(operations, sizeof operations / sizeof *operations, read_only);
}

int main(int argc, char **argv) {
  int read_only = 0;
  program = argv[0];
  if (argc == 2 && !strcmp(argv[1], "--exit")) return 0;
  if (argc > 2 && strstr(argv[1], "write")) return first_write(argv[1], argv[2], argv[argc - 1]);
  for (; argc > 2; argc--, argv++) {
    if (!strcmp(argv[1], "--filter")) install_filter();
    else if (!strcmp(argv[1], "--read-only")) read_only = 1;
    else break;
  }
  if (argc != 2) {
    fprintf(stderr, "usage: ops [--filter] DIRECTORY | --processes | --write FILE...\n");
    return 2;
  }
  if (strcmp(argv[1], "--processes")) measure_files(argv[1], read_only);
  else measure(processes, sizeof processes / sizeof *processes, 0);
  return 0;
}
