/* Sends the packets of a pcap file on an interface: send_packets INTERFACE FILE. */
#define _DEFAULT_SOURCE
#include <pcap/pcap.h>
#include <stdio.h>

int main(int count, char **arguments) {
    char error[PCAP_ERRBUF_SIZE] = "expected INTERFACE FILE";
    pcap_t *from = count == 3 ? pcap_open_offline(arguments[2], error) : NULL;
    pcap_t *to = from ? pcap_open_live(arguments[1], 64, 0, 10, error) : NULL;
    struct pcap_pkthdr *header;
    const u_char *bytes;
    while (to && pcap_next_ex(from, &header, &bytes) == 1) {
        if (pcap_inject(to, bytes, header->caplen) != (int)header->caplen) {
            snprintf(error, sizeof error, "%s", pcap_geterr(to));
            break;
        }
        error[0] = 0;
    }
    if (error[0]) fprintf(stderr, "send_packets: %s\n", error);
    return error[0] != 0;
}
