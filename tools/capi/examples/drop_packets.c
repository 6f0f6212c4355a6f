/* Drops duplicate packets between an input and a pcap file, and prints a report.
 *
 *     drop_packets [-s SPEC] FILE OUTPUT [EXPRESSION]
 *     drop_packets [-s SPEC] [-c PACKETS] -i INTERFACE OUTPUT [EXPRESSION]
 *
 * Ticks are milliseconds of the capture, so "window=1000" in SPEC is a second: a copy of a packet
 * that comes later than that is no duplicate. EXPRESSION is that of tcpdump. An interface is read
 * until PACKETS were captured, or to SIGINT.
 *
 *     cc drop_packets.c $(pkg-config --cflags --libs echoless libpcap) -o drop_packets
 */
#define _DEFAULT_SOURCE /* libpcap needs u_char and u_int */
#include <echoless.h>

#include <inttypes.h>
#include <pcap/pcap.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BATCH 256
#define SNAP_LENGTH (1 << 18)
#define ROOM (8 * SNAP_LENGTH)

/* Packets that were captured and not judged yet. Their bytes are copied: those of libpcap are
 * valid until the next packet only. */
struct batch {
    echoless_packet packets[BATCH];
    uint64_t ticks[BATCH];
    struct pcap_pkthdr headers[BATCH];
    uint8_t bytes[ROOM];
    size_t count, used;
    echoless_handle *filter;
    echoless_handle *reader;
    pcap_dumper_t *output;
};

static pcap_t *input;

static void stop(int signal) {
    (void)signal;
    pcap_breakloop(input);
}

static void fail(const char *what, const char *why) {
    fprintf(stderr, "drop_packets: %s: %s\n", what, why);
    exit(2);
}

static void check(int status) {
    if (status != ECHOLESS_OK) fail("echoless", echoless_last_error());
}

/* Judges the batch and writes the packets that are no duplicates. */
static void flush(struct batch *batch) {
    uint64_t duplicates[BATCH / 64];
    echoless_keys keys = echoless_packets(batch->packets, batch->count, batch->reader);
    check(echoless_observe(batch->filter, echoless_at(keys, batch->ticks), duplicates, NULL));
    for (size_t i = 0; i < batch->count; i++) {
        if (!echoless_is_duplicate(duplicates, i))
            pcap_dump((u_char *)batch->output, &batch->headers[i], batch->packets[i].data);
    }
    batch->count = batch->used = 0;
}

static void capture(u_char *context, const struct pcap_pkthdr *header, const u_char *bytes) {
    struct batch *batch = (struct batch *)(void *)context;
    if (batch->count == BATCH || header->caplen > ROOM - batch->used) flush(batch);
    if (header->caplen > ROOM) fail("packet", "longer than the buffer");
    uint8_t *copy = batch->bytes + batch->used;
    memcpy(copy, bytes, header->caplen);
    batch->used += header->caplen;
    batch->packets[batch->count] = (echoless_packet){copy, header->caplen, header->len};
    batch->headers[batch->count] = *header;
    batch->ticks[batch->count] =
        (uint64_t)header->ts.tv_sec * 1000 + (uint64_t)header->ts.tv_usec / 1000;
    batch->count++;
}

static pcap_t *open_interface(const char *name) {
    char error[PCAP_ERRBUF_SIZE];
    pcap_t *opened = pcap_create(name, error);
    if (!opened) fail(name, error);
    if (pcap_set_snaplen(opened, SNAP_LENGTH) || pcap_set_promisc(opened, 1) ||
        pcap_set_timeout(opened, 10) || pcap_set_buffer_size(opened, 16 << 20) ||
        pcap_activate(opened) < 0)
        fail(name, pcap_geterr(opened));
    if (pcap_setdirection(opened, PCAP_D_IN)) fail(name, pcap_geterr(opened));
    return opened;
}

int main(int count, char **arguments) {
    const char *spec = "clocked:window=1000,refresh=false,form=line,memory=64MiB";
    const char *interface = NULL;
    uint64_t most = UINT64_MAX;
    int option;
    while ((option = getopt(count, arguments, "s:i:c:")) != -1) {
        if (option == 's') spec = optarg;
        else if (option == 'i') interface = optarg;
        else if (option == 'c') most = strtoull(optarg, NULL, 10);
        else return 2;
    }
    const char *file = interface || optind == count ? NULL : arguments[optind++];
    if (optind == count || (!interface && !file)) fail("arguments", "expected INPUT OUTPUT");
    const char *output = arguments[optind++];

    char error[PCAP_ERRBUF_SIZE];
    input = interface ? open_interface(interface) : pcap_open_offline(file, error);
    if (!input) fail(file, error);
    if (optind < count) {
        struct bpf_program program;
        if (pcap_compile(input, &program, arguments[optind], 1, PCAP_NETMASK_UNKNOWN) ||
            pcap_setfilter(input, &program))
            fail(arguments[optind], pcap_geterr(input));
        pcap_freecode(&program);
    }

    struct batch *batch = calloc(1, sizeof *batch);
    if (!batch) fail("batch", "no memory");
    /* libpcap has a number of its own for raw IP; all others that matter are those of files. */
    int link = pcap_datalink(input);
    echoless_packet_options options = {.link_type = link == DLT_RAW ? 101 : (uint16_t)link};
    check(echoless_packet_keys(&options, &batch->reader));
    check(echoless_new(ECHOLESS_KIND_FILTER, spec, NULL, 1, &batch->filter));
    batch->output = pcap_dump_open(input, output);
    if (!batch->output) fail(output, pcap_geterr(input));
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    if (interface) {
        fprintf(stderr, "capturing on %s\n", interface);
        fflush(stderr);
    }

    uint64_t captured = 0;
    while (captured < most) {
        int wanted = most - captured < BATCH ? (int)(most - captured) : BATCH;
        int got = pcap_dispatch(input, wanted, capture, (u_char *)batch);
        flush(batch);
        if (got == PCAP_ERROR) fail("input", pcap_geterr(input));
        if (got == PCAP_ERROR_BREAK || (got == 0 && file)) break;
        captured += (uint64_t)got;
    }

    echoless_report report = {.size = sizeof report};
    check(echoless_read_report(batch->filter, &report));
    printf("packets %" PRIu64 "\nduplicates %" PRIu64 "\n", report.observed,
           report.observed - report.fresh);
    printf("evicted %" PRIu64 "\nfalse duplicates expected %.1e\n", report.evictions,
           report.expected_false_duplicates);
    if (pcap_dump_flush(batch->output)) fail(output, "could not be written");
    pcap_dump_close(batch->output);
    pcap_close(input);
    check(echoless_free(batch->filter));
    check(echoless_free(batch->reader));
    free(batch);
    return 0;
}
