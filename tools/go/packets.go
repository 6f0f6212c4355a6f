package echoless

// #include "bridge.h"
import "C"

import "unsafe"

// Ethernet is the link type of most captures, as pcap files number them.
const Ethernet = 1

// PacketOptions say what the keys of packets are made of. The zero value is the default of each,
// which is that of the command echoless packets.
type PacketOptions struct {
	// From is "link", "network" (the default), "transport" or "payload": the layer a key begins at.
	From string
	// Ignore are fields that copies may differ in, such as "lan-id,ttl,checksum" (the default); with
	// "tunnel" among them the packets inside of tunnels are compared.
	Ignore string
	// Group is "none" (the default) or "vlan": what copies must have in common besides.
	Group string
	// PayloadBytes are the bytes that are compared behind the header of TCP, UDP, SCTP or ICMP; 0
	// are all.
	PayloadBytes uint32
	// SnapSafe are the bytes of a packet that every capture has, at least 40; 0 if captures do not
	// cut.
	SnapSafe uint32
	// SkipBytes are the bytes in front of the link header that are left out.
	SkipBytes uint32
}

// A Packet is a captured packet, as gopacket has it.
type Packet struct {
	// Data are the captured bytes, from the link header on.
	Data []byte
	// Length is the length on the wire (gopacket's CaptureInfo.Length), more than the captured bytes
	// if the capture cut the packet. 0 is the number of captured bytes.
	Length int
}

// PacketKeys make keys of packets. All goroutines may use them at the same time.
type PacketKeys struct {
	handle
}

// NewPacketKeys makes packet keys for packets of a link type, such as Ethernet.
func NewPacketKeys(linkType uint16, options PacketOptions) (*PacketKeys, error) {
	typed := C.echoless_packet_options{
		link_type:     C.uint16_t(linkType),
		payload_bytes: C.uint32_t(options.PayloadBytes),
		snap_safe:     C.uint32_t(options.SnapSafe),
		skip_bytes:    C.uint32_t(options.SkipBytes),
	}
	for _, text := range []struct {
		name, value string
		into        **C.char
	}{
		{"From", options.From, &typed.from},
		{"Ignore", options.Ignore, &typed.ignore},
		{"Group", options.Group, &typed.group},
	} {
		copied, err := cString(text.name, text.value)
		if err != nil {
			return nil, err
		}
		defer C.free(unsafe.Pointer(copied))
		*text.into = copied
	}
	result := C.go_packet_keys(typed)
	if err := failure(&result); err != nil {
		return nil, err
	}
	keys := new(PacketKeys)
	keys.init(result.value)
	return keys, nil
}

// Of are the keys of packets, for a filter.
func (p *PacketKeys) Of(packets []Packet) Keys {
	if p == nil {
		return Keys{wrong: invalidArgument("invalid PacketKeys=nil: expected those of NewPacketKeys")}
	}
	return Keys{form: C.ECHOLESS_FORM_PACKETS, packets: packets, reader: p, count: len(packets)}
}
