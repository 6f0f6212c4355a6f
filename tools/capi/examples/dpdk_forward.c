/* Forwards between two ports of DPDK and drops duplicates, in bursts of 32.
 *
 *     dpdk_forward EAL-OPTIONS -- [-s SPEC] [-c PACKETS]
 *
 * Ticks are milliseconds. A copy is dropped on whichever port it arrives. The program runs until
 * PACKETS were received, or to SIGINT. Without huge pages and without devices, from file to file:
 *
 *     dpdk_forward -l 0 --no-huge -m 64 --no-pci --no-shconf --iova-mode=va \
 *         --vdev net_pcap0,rx_pcap=a.pcap,tx_pcap=to_a.pcap \
 *         --vdev net_pcap1,rx_pcap=b.pcap,tx_pcap=to_b.pcap -- -c 1000
 *
 *     cc dpdk_forward.c $(pkg-config --cflags --libs echoless libdpdk) -o dpdk_forward
 */
#define _GNU_SOURCE
#include <echoless.h>

#include <inttypes.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BURST 32
#define DESCRIPTORS 512

static volatile sig_atomic_t stopped;

static void stop(int signal) {
    (void)signal;
    stopped = 1;
}

static void check(int status) {
    if (status != ECHOLESS_OK) rte_exit(2, "echoless: %s\n", echoless_last_error());
}

static void start_port(uint16_t port, struct rte_mempool *pool) {
    struct rte_eth_conf configuration = {0};
    int status = rte_eth_dev_configure(port, 1, 1, &configuration);
    int socket = rte_eth_dev_socket_id(port);
    if (status == 0) status = rte_eth_rx_queue_setup(port, 0, DESCRIPTORS, socket, NULL, pool);
    if (status == 0) status = rte_eth_tx_queue_setup(port, 0, DESCRIPTORS, socket, NULL);
    if (status == 0) status = rte_eth_dev_start(port);
    if (status != 0) rte_exit(2, "port %u: %s\n", port, rte_strerror(-status));
    /* Some virtual devices have no such mode, and need none. */
    rte_eth_promiscuous_enable(port);
}

int main(int count, char **arguments) {
    int taken = rte_eal_init(count, arguments);
    if (taken < 0) rte_exit(2, "options of DPDK: %s\n", rte_strerror(rte_errno));
    count -= taken, arguments += taken;
    const char *spec = "clocked:window=1000,refresh=false,form=line,memory=64MiB";
    uint64_t most = UINT64_MAX;
    int option;
    while ((option = getopt(count, arguments, "s:c:")) != -1) {
        if (option == 's') spec = optarg;
        else if (option == 'c') most = strtoull(optarg, NULL, 10);
        else rte_exit(2, "expected EAL-OPTIONS -- [-s SPEC] [-c PACKETS]\n");
    }
    if (rte_eth_dev_count_avail() != 2) rte_exit(2, "expected two ports\n");
    struct rte_mempool *pool = rte_pktmbuf_pool_create("packets", 8191, 256, 0,
                                                       RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    if (!pool) rte_exit(2, "pool of packets: %s\n", rte_strerror(rte_errno));
    for (uint16_t port = 0; port < 2; port++) start_port(port, pool);

    echoless_handle *reader = NULL;
    echoless_handle *filter = NULL;
    check(echoless_packet_keys(NULL, &reader));
    check(echoless_new(ECHOLESS_KIND_FILTER, spec, NULL, 1, &filter));
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);

    uint64_t received = 0, forwarded = 0, unsent = 0;
    for (uint16_t port = 0; !stopped && received < most; port ^= 1) {
        struct rte_mbuf *burst[BURST], *fresh[BURST], *dropped[BURST];
        uint64_t wanted = most - received < BURST ? most - received : BURST;
        uint16_t got = rte_eth_rx_burst(port, 0, burst, (uint16_t)wanted);
        if (got == 0) continue;
        echoless_packet packets[BURST];
        for (uint16_t i = 0; i < got; i++) {
            /* One piece where it has room; else the first segment is compared, with the length. */
            rte_pktmbuf_linearize(burst[i]);
            packets[i] = (echoless_packet){rte_pktmbuf_mtod(burst[i], const uint8_t *),
                                           rte_pktmbuf_data_len(burst[i]),
                                           rte_pktmbuf_pkt_len(burst[i])};
        }
        check(echoless_advance(filter, rte_get_timer_cycles() * 1000 / rte_get_timer_hz()));
        uint64_t duplicates;
        check(echoless_observe(filter, echoless_packets(packets, got, reader), &duplicates, NULL));
        uint16_t to_send = 0, to_drop = 0;
        for (uint16_t i = 0; i < got; i++) {
            if (echoless_is_duplicate(&duplicates, i)) dropped[to_drop++] = burst[i];
            else fresh[to_send++] = burst[i];
        }
        rte_pktmbuf_free_bulk(dropped, to_drop);
        uint16_t sent = rte_eth_tx_burst(port ^ 1, 0, fresh, to_send);
        rte_pktmbuf_free_bulk(fresh + sent, to_send - sent);
        received += got, forwarded += sent, unsent += to_send - sent;
    }

    echoless_report report = {.size = sizeof report};
    check(echoless_read_report(filter, &report));
    for (uint16_t port = 0; port < 2; port++) {
        rte_eth_dev_stop(port);
        rte_eth_dev_close(port);
    }
    printf("received %" PRIu64 "\nforwarded %" PRIu64 "\nunsent %" PRIu64 "\nduplicates %" PRIu64
           "\n",
           received, forwarded, unsent, report.observed - report.fresh);
    check(echoless_free(filter));
    check(echoless_free(reader));
    rte_eal_cleanup();
    return 0;
}
