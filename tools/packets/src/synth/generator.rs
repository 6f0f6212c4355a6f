//! Draws packets from a seed.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::header::{Header, Ipv4, Ipv6, Tcp};
use super::stack::Stack;
use crate::packet::LinkType;

/// Draws stacks of headers and payloads. The same seed gives the same packets on every machine.
///
/// # Examples
/// ```
/// use echoless_packets::synth::Generator;
/// let mut packets = Generator::new(7);
/// let (stack, payload) = (packets.stack(), packets.payload(100));
/// assert!(payload.len() <= 100);
/// let mut again = Generator::new(7);
/// assert_eq!((again.stack(), again.payload(100)), (stack, payload));
/// ```
#[derive(Debug, Clone)]
pub struct Generator {
    rng: Xoshiro256PlusPlus,
}

impl Generator {
    /// A generator with this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }

    /// A number below `bound`, which must not be 0. Slightly biased for large bounds.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.rng.next_u64() % bound
    }

    /// Up to `max` bytes.
    pub fn payload(&mut self, max: usize) -> Vec<u8> {
        let len = self.below(max as u64 + 1) as usize;
        self.bytes(len)
    }

    /// A packet of IP in any link header, behind any shims, in up to two tunnels.
    pub fn stack(&mut self) -> Stack {
        let mut headers = Vec::new();
        self.link(&mut headers);
        for _ in 0..self.below(3) {
            headers.push(self.ip());
            self.tunnel(&mut headers);
        }
        headers.push(self.ip());
        self.transport(&mut headers);
        Stack::new(headers)
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = vec![0; len];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.rng.fill_bytes(&mut bytes);
        bytes
    }

    fn u32(&mut self) -> u32 {
        (self.rng.next_u64() >> 32) as u32
    }

    fn u16(&mut self) -> u16 {
        (self.u32() >> 16) as u16
    }

    fn u8(&mut self) -> u8 {
        (self.u32() >> 24) as u8
    }

    /// Options of IPv4 or TCP: mostly none, sometimes up to 40 bytes.
    fn options(&mut self) -> Vec<u8> {
        let words = if self.below(3) == 0 {
            self.below(11)
        } else {
            0
        };
        self.bytes(4 * words as usize)
    }

    fn link(&mut self, headers: &mut Vec<Header>) {
        match self.below(18) {
            0..2 => {}
            2 => headers.push(Header::Null),
            3 => headers.push(Header::Loop),
            4 => {
                headers.push(Header::Sll {
                    packet_type: self.below(5) as u16,
                    arphrd: 1,
                    address: self.array(),
                });
                self.shims(headers);
            }
            5 => {
                headers.push(Header::Sll2 {
                    interface: self.u32(),
                    packet_type: self.below(5) as u8,
                    arphrd: 1,
                    address: self.array(),
                });
                self.shims(headers);
            }
            6 => {
                headers.push(Header::radiotap(u64::from(self.u32()), self.u8()));
                self.wireless(headers);
            }
            7 => self.wireless(headers),
            8..10 => {
                let link = self.serial();
                headers.push(link);
            }
            10.. => self.ethernet(headers),
        }
    }

    fn ethernet(&mut self, headers: &mut Vec<Header>) {
        headers.push(Header::Ethernet {
            destination: self.array(),
            source: self.array(),
        });
        self.shims(headers);
    }

    fn wireless(&mut self, headers: &mut Vec<Header>) {
        headers.push(Header::Wireless {
            duration: self.u16() & 0x7fff,
            addresses: [self.array(), self.array(), self.array(), self.array()],
            sequence: self.u16() & 0xfff0,
            between_access_points: self.below(4) == 0,
            qos: self.below(2) == 0,
        });
        headers.push(Header::Snap);
    }

    /// A link header that announces any version of IP.
    fn serial(&mut self) -> Header {
        let (kind, bytes) = match self.below(6) {
            0 => (LinkType::PPP, vec![0xff, 0x03]),
            1 => (LinkType::PPP, vec![]),
            2 => (LinkType::PPP_HDLC, vec![0xff, 0x03]),
            3 => (
                LinkType::C_HDLC,
                vec![[0x0f, 0x8f][self.below(2) as usize], 0],
            ),
            4 => (
                LinkType::FRAME_RELAY,
                vec![self.u8() & !1, self.u8() | 1, 0x03],
            ),
            5.. => (LinkType::IPOIB, self.bytes(40)),
        };
        Header::Link { kind, bytes }
    }

    /// A tag that is neither of VLANs nor of HSR.
    fn tag(&mut self) -> Header {
        let (ethertype, fixed, len): (u16, &[u8], usize) = match self.below(8) {
            0 => (0xf1c1, &[0, 0], 4),
            1 => (0x8926, &[], 4),
            2 => (0x893f, &[], 6),
            3 => (0x8909, &[1, 1], 6),
            4 => (0xd28b, &[0, 1, 0, 0x10], 12),
            5 => (0xd28b, &[0, 1, 1, 0x20], 10),
            6 => (0x88e7, &[], 16),
            7.. => (0x8903, &[], 14),
        };
        let mut bytes = self.bytes(len);
        bytes[..fixed.len()].copy_from_slice(fixed);
        Header::Tag { ethertype, bytes }
    }

    fn shims(&mut self, headers: &mut Vec<Header>) {
        for _ in 0..self.below(3) {
            let tpid = [0x8100, 0x88a8][self.below(2) as usize];
            let tci = self.u16();
            headers.push(Header::Vlan { tpid, tci });
        }
        match self.below(8) {
            0 => headers.push(Header::Hsr {
                path: self.below(16) as u8,
                sequence: self.u16(),
            }),
            1 => {
                let tag = self.tag();
                headers.push(tag);
            }
            2.. => {}
        }
        match self.below(6) {
            0 => headers.push(Header::Pppoe {
                session: self.u16(),
            }),
            1 => {
                for _ in 0..1 + self.below(3) {
                    headers.push(Header::Mpls {
                        label: self.u32() >> 12,
                        class: self.below(8) as u8,
                        ttl: self.u8(),
                    });
                }
                if self.below(3) == 0 {
                    headers.push(Header::ControlWord);
                    headers.push(Header::ethernet());
                }
            }
            2 => headers.push(Header::Snap),
            3.. => {}
        }
    }

    fn ip(&mut self) -> Header {
        if self.below(2) == 0 {
            Header::Ipv4(Ipv4 {
                tos: self.u8(),
                id: self.u16(),
                // Don't fragment, or nothing.
                fragment: [0, 0x4000][self.below(2) as usize],
                ttl: self.u8(),
                checksum: None,
                source: self.array(),
                destination: self.array(),
                options: self.options(),
                protocol: 253,
            })
        } else {
            let extensions = (0..self.below(6).saturating_sub(3))
                .map(|_| {
                    let kind = [0, 43, 51, 60, 135][self.below(5) as usize];
                    let units = self.below(3) as usize;
                    (kind, self.bytes(6 + 8 * units))
                })
                .collect();
            let options = (self.below(4) == 0).then(|| {
                let units = self.below(3) as usize;
                self.bytes(6 + 8 * units)
            });
            Header::Ipv6(Ipv6 {
                class: self.u8(),
                flow_label: self.u32() >> 12,
                hop_limit: self.u8(),
                source: self.array(),
                destination: self.array(),
                extensions,
                options,
                fragment: None,
                protocol: 253,
            })
        }
    }

    fn udp(&mut self) -> Header {
        Header::Udp {
            source: self.u16(),
            // Below the ports of tunnels.
            destination: self.below(2000) as u16,
            checksum: self.u16(),
        }
    }

    fn transport(&mut self, headers: &mut Vec<Header>) {
        let header = match self.below(7) {
            0 => self.udp(),
            1 => Header::Sctp {
                source: self.u16(),
                destination: self.u16(),
                verification: self.u32(),
                checksum: self.u32(),
            },
            2 => Header::Icmp {
                kind: self.u8(),
                code: self.u8(),
                checksum: self.u16(),
                rest: self.u32(),
            },
            3 => Header::Icmpv6 {
                kind: self.u8(),
                code: self.u8(),
                checksum: self.u16(),
                rest: self.u32(),
            },
            // Another protocol: no header.
            4 => return,
            5.. => Header::Tcp(Tcp {
                source: self.u16(),
                destination: self.u16(),
                seq: self.u32(),
                ack: self.u32(),
                flags: self.u8(),
                window: self.u16(),
                checksum: self.u16(),
                urgent: self.u16(),
                options: self.options(),
            }),
        };
        headers.push(header);
    }

    /// The headers between an outer and an inner IP header.
    fn tunnel(&mut self, headers: &mut Vec<Header>) {
        match self.below(11) {
            // IP in IP.
            0 => {}
            1 => {
                headers.push(self.gre());
            }
            2 => {
                headers.push(self.gre());
                self.ethernet(headers);
            }
            3 => {
                headers.push(Header::Gre {
                    checksum: false,
                    key: None,
                    sequence: Some(self.u32()),
                });
                headers.push(Header::Erspan {
                    session: self.u16(),
                });
                self.ethernet(headers);
            }
            4 => {
                headers.push(self.udp());
                headers.push(Header::Vxlan {
                    vni: self.u32() >> 8,
                });
                self.ethernet(headers);
            }
            5 => {
                headers.push(self.udp());
                let words = self.below(4) as usize;
                headers.push(Header::Geneve {
                    vni: self.u32() >> 8,
                    options: self.bytes(4 * words),
                });
                if self.below(2) == 0 {
                    self.ethernet(headers);
                }
            }
            6 => {
                headers.push(self.udp());
                headers.push(Header::Tzsp {
                    fields: [vec![0], vec![10, 1, self.u8()]][self.below(2) as usize].clone(),
                });
                if self.below(2) == 0 {
                    self.ethernet(headers);
                } else {
                    self.wireless(headers);
                }
            }
            7 => {
                headers.push(self.udp());
                headers.push(Header::L2tp {
                    tunnel: self.u16(),
                    session: self.u16(),
                });
                headers.push(Header::Link {
                    kind: LinkType::PPP,
                    bytes: [vec![], vec![0xff, 0x03]][self.below(2) as usize].clone(),
                });
            }
            8 => {
                headers.push(Header::EtherIp);
                self.ethernet(headers);
            }
            9 => {
                headers.push(self.udp());
                headers.push(Header::mpls(self.u32() >> 12));
            }
            10.. => {
                headers.push(self.udp());
                headers.push(Header::GtpU {
                    teid: self.u32(),
                    sequence: (self.below(2) == 0).then(|| self.u16()),
                    extension: self.below(2) == 0,
                });
            }
        }
    }

    fn gre(&mut self) -> Header {
        Header::Gre {
            checksum: self.below(2) == 0,
            key: (self.below(2) == 0).then(|| self.u32()),
            sequence: (self.below(2) == 0).then(|| self.u32()),
        }
    }
}
