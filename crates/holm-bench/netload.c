/* Loads for the network section, of a fixed amount each.
 *
 *   netload serve               TCP sink, echo and short answers at 5001 to 5003, UDP sink at 5004;
 *                               prints "ready"
 *   netload client HOST KIND N  prints the milliseconds that N of KIND took, and how many of them all
 *                               CPUs together were busy for (/proc/stat, of the whole machine)
 *   netload client HOST KIND N together
 *                               one of several: prints "ready", begins when it reads a byte, and ends
 *                               at the end of its input
 *   netload client HOST KIND N same-cpu
 *                               on the server's CPU: none has to be woken up
 *   netload requests N WORKERS ADDRESS:PORT...
 *                               so many workers get N pages by HTTP, from one address after the other
 *
 * The server is on CPU 0, the client on the last one unless it says otherwise; the workers are on
 * CPU 0.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SINK = 5001, ECHO, SHORT, DATAGRAMS };
static char buffer[1 << 16];

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		fail("sched_setaffinity");
}

static int open_socket(int kind, int port)
{
	int one = 1, fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons(port) };
	if (fd < 0)
		fail("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) || (kind == SOCK_STREAM && listen(fd, 128)))
		fail("listen");
	return fd;
}

/* One connection, to its end. */
static void answer(int port, int fd)
{
	ssize_t got;
	while ((got = read(fd, buffer, sizeof(buffer))) > 0) {
		if (port == ECHO && write(fd, buffer, got) != got)
			return;
		if (port == SHORT)
			(void)!write(fd, buffer, 1024);
	}
	if (port == SINK)
		(void)!write(fd, "!", 1);
}

static void serve(void)
{
	int datagrams = open_socket(SOCK_DGRAM, DATAGRAMS);
	int fds[] = { open_socket(SOCK_STREAM, SINK), open_socket(SOCK_STREAM, ECHO),
		      open_socket(SOCK_STREAM, SHORT) };
	pin(0);
	for (int i = 0; i < 3; i++) {
		if (fork())
			continue;
		for (;;) {
			int fd = accept4(fds[i], NULL, NULL, SOCK_CLOEXEC);
			if (fd < 0)
				fail("accept");
			/* Of these there may be several at a time. */
			pid_t child = i ? 0 : fork();
			if (!child)
				answer(SINK + i, fd);
			if (!child && !i)
				exit(0);
			close(fd);
		}
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		(void)!recv(datagrams, buffer, sizeof(buffer), 0);
}

/* Milliseconds that the CPUs were busy for (proc_stat(5), USER_HZ is 100). */
static double busy(void)
{
	unsigned long user, nice, system, idle, wait, irq, softirq;
	FILE *stat = fopen("/proc/stat", "r");
	if (!stat || fscanf(stat, "cpu %lu %lu %lu %lu %lu %lu %lu", &user, &nice, &system, &idle,
			    &wait, &irq, &softirq) != 7)
		fail("/proc/stat");
	fclose(stat);
	return (user + nice + system + irq + softirq) * 10.0;
}

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1e3 + time.tv_nsec / 1e6;
}

static int connected(int kind, const struct sockaddr_in *to)
{
	int fd = socket(AF_INET, kind | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)to, sizeof(*to)))
		fail("connect");
	return fd;
}

static void transfer(int fd, size_t size, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t left = size;
		while (left) {
			ssize_t put = write(fd, buffer, left);
			if (put <= 0)
				fail("write");
			left -= put;
		}
	}
}

/* Until those that are started together may begin. */
static void wait_for_all(void)
{
	char byte;
	puts("ready");
	fflush(stdout);
	if (read(0, &byte, 1) != 1)
		fail("standard input");
}

static void client(const char *host, const char *kind, size_t count, const char *how)
{
	int together = !strcmp(how, "together");
	struct sockaddr_in to = { .sin_family = AF_INET };
	if (inet_pton(AF_INET, host, &to.sin_addr) != 1)
		fail(host);
	pin(strcmp(how, "same-cpu") ? sysconf(_SC_NPROCESSORS_ONLN) - 1 : 0);
	if (together)
		wait_for_all();
	double begin = now(), busy_before = busy();
	if (!strcmp(kind, "stream")) {
		to.sin_port = htons(SINK);
		int fd = connected(SOCK_STREAM, &to);
		transfer(fd, sizeof(buffer), count);
		shutdown(fd, SHUT_WR);
		if (read(fd, buffer, 1) != 1)
			fail("the sink");
	} else if (!strcmp(kind, "echo")) {
		to.sin_port = htons(ECHO);
		int fd = connected(SOCK_STREAM, &to);
		for (size_t i = 0; i < count; i++)
			if (write(fd, buffer, 1) != 1 || read(fd, buffer, 1) != 1)
				fail("echo");
	} else if (!strcmp(kind, "connect")) {
		to.sin_port = htons(SHORT);
		for (size_t i = 0; i < count; i++) {
			int fd = connected(SOCK_STREAM, &to);
			if (write(fd, buffer, 64) != 64)
				fail("request");
			for (ssize_t left = 1024, got; left > 0; left -= got)
				if ((got = read(fd, buffer, left)) <= 0)
					fail("answer");
			/* By a reset: else ports that wait (TIME_WAIT) would be what is measured. */
			struct linger now = { .l_onoff = 1 };
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
			close(fd);
		}
	} else {
		/* udp-SIZE: a socket that names the destination each time, as servers do. */
		size_t size = atoi(strchr(kind, '-') + 1);
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		to.sin_port = htons(DATAGRAMS);
		for (size_t i = 0; i < count; i++)
			if (sendto(fd, buffer, size, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
				fail("sendto");
	}
	printf("%.3f %.0f\n", now() - begin, busy() - busy_before);
	fflush(stdout);
	/* What its end costs is not measured. */
	while (together && read(0, buffer, 1) > 0)
		;
}

/* Gets a page, to the end of the connection. */
static void get_page(const struct sockaddr_in *from)
{
	static const char request[] = "GET / HTTP/1.0\r\n\r\n";
	int fd = connected(SOCK_STREAM, from);
	size_t got = 0;
	ssize_t more;
	if (write(fd, request, sizeof(request) - 1) != sizeof(request) - 1)
		fail("request");
	while ((more = read(fd, buffer + got, sizeof(buffer) - got)) > 0)
		got += more;
	if (more < 0 || got < 12 || memcmp(buffer + 8, " 200", 4)) {
		fprintf(stderr, "no page, but %zu bytes\n", got);
		exit(1);
	}
	close(fd);
}

static void requests(size_t count, size_t workers, char **servers, size_t number)
{
	struct sockaddr_in *all = calloc(number, sizeof(*all));
	for (size_t i = 0; i < number; i++) {
		char *port = strchr(servers[i], ':');
		if (!port)
			fail(servers[i]);
		*port = 0;
		all[i] = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(atoi(port + 1)) };
		if (inet_pton(AF_INET, servers[i], &all[i].sin_addr) != 1)
			fail(servers[i]);
	}
	pin(0);
	/* Whether all went well, as their exit status tells. */
	signal(SIGCHLD, SIG_DFL);
	double begin = now(), busy_before = busy();
	for (size_t worker = 0; worker < workers; worker++) {
		if (fork())
			continue;
		for (size_t i = worker; i < count; i += workers)
			get_page(&all[i % number]);
		exit(0);
	}
	for (size_t worker = 0; worker < workers; worker++) {
		int status;
		if (wait(&status) < 0 || status)
			exit(1);
	}
	printf("%.3f %.0f\n", now() - begin, busy() - busy_before);
}

int main(int argc, char **argv)
{
	signal(SIGCHLD, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	if (argc == 2 && !strcmp(argv[1], "serve"))
		serve();
	if (argc > 4 && !strcmp(argv[1], "requests")) {
		requests(strtoul(argv[2], NULL, 10), strtoul(argv[3], NULL, 10), argv + 4, argc - 4);
		return 0;
	}
	if (argc < 5 || strcmp(argv[1], "client")) {
		fputs("usage: netload serve | client HOST KIND COUNT [together|same-cpu] |\n"
		      "       requests COUNT WORKERS ADDRESS:PORT...\n", stderr);
		return 2;
	}
	client(argv[2], argv[3], strtoul(argv[4], NULL, 10), argc > 5 ? argv[5] : "");
	return 0;
}
