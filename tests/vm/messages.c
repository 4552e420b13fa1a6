// Messages between two machines, over TCP and over TIPC, one program for both so that their figures compare.
//
// messages serve                    answers everything below, until it is killed
// messages call HOW COUNT BYTES     so many messages there and back, each compared; half a round trip in us: median,
//                                   99th percentile, shortest
// messages stream HOW COUNT BYTES   so many messages one way; Mbit/s until the last one has arrived
// messages ask HOW                  one message after the other, each until it is answered, up to the first that is after
//                                   SIGTERM. A line with the first answer; then how many came and the longest wait for
//                                   one in ms. Fails if the connection ends, or if that takes too long
//
// HOW: tcp:ADDRESS, tipc (a connection), tipc-rdm (messages without one; `ask` only)

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tipc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// Of TCP, and types of service of TIPC.
enum { PORT = 7000, CONNECTED = 7000, UNCONNECTED = 7001 };
// An unanswered message is sent again after so long.
enum { AGAIN_MS = 20 };
// Longest wait for the last answer: TCP may have doubled its time-out some times.
enum { LAST_SECONDS = 30 };
enum { BYTES_MAX = 1 << 20 };

// What a connection starts with.
struct order {
	uint32_t one_way;
	uint32_t bytes;
	uint64_t count;
};

static volatile sig_atomic_t ended;

static void end(int signal)
{
	(void)signal;
	ended = 1;
	alarm(LAST_SECONDS);
}

static void fail(const char *what)
{
	fprintf(stderr, "messages: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(void)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	return at.tv_sec * 1e6 + at.tv_nsec / 1e3;
}

// What stands in every message.
static char *pattern(size_t bytes)
{
	char *buffer = malloc(bytes);

	for (size_t i = 0; buffer && i < bytes; i++)
		buffer[i] = (char)(i * 31 + i / 251);
	if (!buffer)
		fail("memory");
	return buffer;
}

// All of it or nothing: false when the connection ends.
static int get(int fd, void *to, size_t bytes)
{
	for (char *at = to; bytes;) {
		ssize_t some = recv(fd, at, bytes, 0);

		if (some < 0 && errno == EINTR)
			continue;
		if (some <= 0)
			return 0;
		at += some;
		bytes -= (size_t)some;
	}
	return 1;
}

static int put(int fd, const void *from, size_t bytes)
{
	for (const char *at = from; bytes;) {
		ssize_t some = send(fd, at, bytes, MSG_NOSIGNAL);

		if (some < 0 && errno == EINTR)
			continue;
		if (some <= 0)
			return 0;
		at += some;
		bytes -= (size_t)some;
	}
	return 1;
}

static struct sockaddr_tipc service(uint32_t type)
{
	struct sockaddr_tipc address = { .family = AF_TIPC, .addrtype = TIPC_SERVICE_ADDR };

	address.scope = TIPC_CLUSTER_SCOPE;
	address.addr.name.name.type = type;
	return address;
}

// Small messages are not held back.
static void at_once(int fd, int is_tcp)
{
	int on = 1;

	if (setsockopt(fd, is_tcp ? IPPROTO_TCP : SOL_TIPC, is_tcp ? TCP_NODELAY : TIPC_NODELAY, &on, sizeof(on)))
		fail("no delay");
}

static void answer(int fd)
{
	struct order order;
	char *buffer, done = 1;

	if (!get(fd, &order, sizeof(order)) || !order.bytes || order.bytes > BYTES_MAX)
		return;
	buffer = pattern(order.bytes);
	for (uint64_t i = 0; i < order.count && get(fd, buffer, order.bytes); i++)
		if (!order.one_way && !put(fd, buffer, order.bytes))
			return;
	if (order.one_way)
		put(fd, &done, 1);
	// The other side ends it, having everything.
	get(fd, &done, 1);
}

static void answer_connections(int listener, int is_tcp)
{
	if (listen(listener, 8))
		fail("listen");
	for (;;) {
		int fd = accept(listener, NULL, NULL);

		if (fd < 0)
			continue;
		if (!fork()) {
			at_once(fd, is_tcp);
			answer(fd);
			_exit(0);
		}
		close(fd);
	}
}

static void answer_messages(int fd)
{
	for (;;) {
		struct sockaddr_tipc from;
		socklen_t length = sizeof(from);
		uint32_t number;

		if (recvfrom(fd, &number, sizeof(number), 0, (void *)&from, &length) != sizeof(number))
			continue;
		// So that a message which comes back undelivered is not taken for its answer.
		number = ~number;
		sendto(fd, &number, sizeof(number), 0, (void *)&from, length);
	}
}

static int serve(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6, .sin6_port = htons(PORT) };
	struct sockaddr_tipc connected = service(CONNECTED), unconnected = service(UNCONNECTED);
	int tcp = socket(AF_INET6, SOCK_STREAM, 0), on = 1;
	int tipc = socket(AF_TIPC, SOCK_STREAM, 0), rdm = socket(AF_TIPC, SOCK_RDM, 0);

	signal(SIGCHLD, SIG_IGN);
	if (tcp < 0 || tipc < 0 || rdm < 0)
		fail("socket");
	if (setsockopt(tcp, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) || bind(tcp, (void *)&any, sizeof(any)) ||
	    bind(tipc, (void *)&connected, sizeof(connected)) || bind(rdm, (void *)&unconnected, sizeof(unconnected)))
		fail("bind");
	if (!fork())
		answer_connections(tcp, 1);
	if (!fork())
		answer_connections(tipc, 0);
	answer_messages(rdm);
	return 1;
}

static int reach(const char *how, struct order order)
{
	int fd, is_tcp = !strncmp(how, "tcp:", 4);

	if (is_tcp) {
		struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(PORT) };

		if (inet_pton(AF_INET, how + 4, &to.sin_addr) != 1) {
			errno = EINVAL;
			fail(how);
		}
		fd = socket(AF_INET, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (void *)&to, sizeof(to)))
			fail(how);
	} else {
		struct sockaddr_tipc to = service(CONNECTED);

		fd = socket(AF_TIPC, SOCK_STREAM, 0);
		if (fd < 0 || connect(fd, (void *)&to, sizeof(to)))
			fail(how);
	}
	at_once(fd, is_tcp);
	if (!put(fd, &order, sizeof(order)))
		fail("order");
	return fd;
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static int call(const char *how, uint64_t count, uint32_t bytes)
{
	int fd = reach(how, (struct order){ .bytes = bytes, .count = count });
	char *sent = pattern(bytes), *back = malloc(bytes);
	double *halves = calloc(count, sizeof(*halves));

	if (!back || !halves)
		fail("memory");
	for (uint64_t i = 0; i < count; i++) {
		double begun = now();

		if (!put(fd, sent, bytes) || !get(fd, back, bytes))
			fail("connection");
		halves[i] = (now() - begun) / 2;
		if (memcmp(sent, back, bytes)) {
			fprintf(stderr, "messages: message %ju came back changed\n", (uintmax_t)i);
			return 1;
		}
	}
	qsort(halves, count, sizeof(*halves), by_value);
	printf("%.1f %.1f %.1f\n", halves[count / 2], halves[count * 99 / 100], halves[0]);
	return 0;
}

static int stream(const char *how, uint64_t count, uint32_t bytes)
{
	int fd = reach(how, (struct order){ .one_way = 1, .bytes = bytes, .count = count });
	char *sent = pattern(bytes), done;
	double begun = now();

	for (uint64_t i = 0; i < count; i++)
		if (!put(fd, sent, bytes))
			fail("connection");
	if (!get(fd, &done, 1))
		fail("connection");
	printf("%.1f\n", (double)count * bytes * 8 / (now() - begun));
	return 0;
}

// One message without a connection and its answer; false if it has to be sent again.
static int ask_once(int fd, uint32_t number)
{
	struct sockaddr_tipc to = service(UNCONNECTED);
	uint32_t reply;

	if (sendto(fd, &number, sizeof(number), 0, (void *)&to, sizeof(to)) != sizeof(number)) {
		// Nobody offers the service just now.
		usleep(AGAIN_MS * 1000);
		return 0;
	}
	// Late answers to earlier messages may come first.
	while (recv(fd, &reply, sizeof(reply), 0) == sizeof(reply))
		if (reply == ~number)
			return 1;
	return 0;
}

static int ask(const char *how)
{
	int is_rdm = !strcmp(how, "tipc-rdm");
	int fd = is_rdm ? socket(AF_TIPC, SOCK_RDM, 0)
			: reach(how, (struct order){ .bytes = sizeof(uint32_t), .count = UINT64_MAX });
	struct timeval again = { .tv_usec = AGAIN_MS * 1000 };
	struct sigaction on_end = { .sa_handler = end };
	double longest = 0, begun = now();
	uint32_t number = 0, reply;

	if (fd < 0 || (is_rdm && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &again, sizeof(again))))
		fail(how);
	sigaction(SIGTERM, &on_end, NULL);
	for (int last = 0; !last;) {
		int was_last = ended;

		if (is_rdm) {
			if (!ask_once(fd, number))
				continue;
		} else if (!put(fd, &number, sizeof(number)) || !get(fd, &reply, sizeof(reply))) {
			fail("connection");
		}
		last = was_last;
		if (now() - begun > longest)
			longest = now() - begun;
		if (!number++) {
			puts("answered");
			fflush(stdout);
		}
		begun = now();
	}
	printf("%u %.0f\n", number, longest / 1e3);
	return 0;
}

int main(int count, char **words)
{
	if (count == 2 && !strcmp(words[1], "serve"))
		return serve();
	if (count == 3 && !strcmp(words[1], "ask"))
		return ask(words[2]);
	if (count == 5) {
		uint64_t number = strtoull(words[3], NULL, 10);
		unsigned long bytes = strtoul(words[4], NULL, 10);

		if (number && bytes && bytes <= BYTES_MAX && !strcmp(words[1], "call"))
			return call(words[2], number, (uint32_t)bytes);
		if (number && bytes && bytes <= BYTES_MAX && !strcmp(words[1], "stream"))
			return stream(words[2], number, (uint32_t)bytes);
	}
	fprintf(stderr, "messages: see the first lines of tests/vm/messages.c\n");
	return 2;
}
