"""A host that bonds as the papers describe it: the published part of ARP+, and round robin over its NICs.

usage: host.py ADDRESS/LENGTH NIC...

This is a second implementation, written from docs/arp-plus.md and from nothing else; numbers are its clauses. It knows the four
messages, the states S0 to S3 and no TLV. Its interface is `plus0`, which has the address and the MAC of the first NIC. It prints its
table as a line of JSON when it changes: each address and its MACs. A line `del NIC` or `add NIC` on standard input takes a NIC out or
in. The end of standard input is the end of the host: it broadcasts CLEAR.
"""

import fcntl
import ipaddress
import json
import os
import selectors
import socket
import struct
import subprocess
import sys

ETHERTYPE = b"\x88\xb5"  # 1.1
BROADCAST, REPLY, CHANGE, CLEAR = 1, 2, 3, 4  # 2.1
HLEN, PLEN, SHORTEST, MOST_MACS = 6, 4, 60, 16  # 2.2, 2.3, 1.3, 2.4
TO_ALL = b"\xff" * 6

# linux/if_tun.h, linux/if_packet.h, linux/virtio_net.h. Frames have the kernel's header of 10 bytes before them, in and out: it
# says which checksum is still to be made, and where a long buffer is to be cut.
TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454CA, 0x0002, 0x1000, 0x4000
SOL_PACKET, PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING, ETH_P_ALL = 263, 15, 23, 3
VNET_HDR = 10
LONGEST = VNET_HDR + 14 + 65536


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def group(mac):
    return mac[0] & 1 == 1


class Nic:
    """A NIC: a packet socket. The kernel itself takes nothing in from it, because it is a port of a bridge that is down."""

    def __init__(self, name):
        self.name = name
        ip("address", "flush", "dev", name)
        ip("link", "set", name, "master", "hold")
        ip("link", "set", name, "up")
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        self.socket.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, 1)
        self.socket.bind((name, ETH_P_ALL))
        self.mac = self.socket.getsockname()[4]

    def send(self, frame, header=bytes(VNET_HDR)):
        try:
            self.socket.send(header + frame)
        except OSError as error:  # a cable that is out, or a queue that is full: the frame is lost, as on any NIC
            print(f"{self.name}: {error}", file=sys.stderr)


class ArpPlus:
    """The protocol: states and the table. The table has 256 entries, by the last byte of the address, as in the papers."""

    def __init__(self, address, nics):
        self.address, self.nics, self.state, self.table = address, nics, "S0", [None] * 256

    def message(self, kind):  # 2.1, 6.2
        macs = [nic.mac for nic in self.nics]
        return bytes([HLEN, PLEN, len(macs), kind]) + self.address + b"".join(macs)

    def send(self, nic, to, kind):  # 1.1, 1.3
        nic.send((to + nic.mac + ETHERTYPE + self.message(kind)).ljust(SHORTEST, b"\0"))

    def broadcast(self, kind):  # 5.2, 5.3, 5.6: on every member, so that each of its MACs is heard (7.7)
        for nic in self.nics:
            self.send(nic, TO_ALL, kind)

    def start(self):  # 4: S0 to S1
        self.broadcast(BROADCAST)
        self.state = "S1"

    def stop(self):  # 4: S1 to S0. Twice, because nobody repeats it (5.6)
        self.broadcast(CLEAR)
        self.broadcast(CLEAR)
        self.state = "S0"

    def change(self):  # 4: stays in S1
        self.broadcast(CHANGE)
        self.tell()

    def receive(self, nic, frame):
        source, body = frame[6:12], frame[14:]
        if self.state != "S1":  # 4.1
            return
        if group(source) or source == bytes(6) or len(body) < 4:  # 1.2, 2.8
            return
        hlen, plen, count, kind = body[:4]
        end = 4 + PLEN + count * HLEN
        if (hlen, plen) != (HLEN, PLEN) or not 1 <= count <= MOST_MACS or len(body) < end:  # 2.2 to 2.4, 2.8
            return
        address = body[4:8]
        macs = [body[at : at + HLEN] for at in range(8, end, HLEN)]
        if any(group(mac) or mac == bytes(6) for mac in macs) or len(set(macs)) != count:  # 2.5
            return
        own = {nic.mac for nic in self.nics}
        if source not in macs or source in own or own & set(macs) or address == self.address:  # 7.2, 8.1, 8.2
            return
        before = self.table[address[-1]]
        if kind == BROADCAST:
            self.state = "S2"
            self.table[address[-1]] = (address, macs)
            self.send(nic, source, REPLY)  # 5.8
        elif kind in (REPLY, CHANGE):
            self.state = "S3"
            self.table[address[-1]] = (address, macs)
        elif kind == CLEAR:
            self.state = "S3"
            if before is not None and before[0] == address and source in before[1]:  # 6.5
                self.table[address[-1]] = None
        self.state = "S1"
        if self.table[address[-1]] != before:
            self.tell()

    def tell(self):
        rows = [row for row in self.table if row is not None]
        print(json.dumps({socket.inet_ntoa(address): [mac.hex(":") for mac in macs] for address, macs in rows}), flush=True)

    def by_mac(self, mac):
        """The MACs of the host that has this one, the primary first."""
        return next((row[1] for row in self.table if row is not None and mac in row[1]), None)


class Host:
    def __init__(self, interface, names):
        ip("link", "add", "hold", "type", "bridge")
        self.nics = [Nic(name) for name in names]
        self.mac, self.turn = self.nics[0].mac, 0
        self.arp_plus = ArpPlus(interface.ip.packed, self.nics)
        self.tap = os.open("/dev/net/tun", os.O_RDWR)
        fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", b"plus0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
        ip("link", "set", "plus0", "address", self.mac.hex(":"), "up")
        ip("address", "add", str(interface), "dev", "plus0")
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.tap, selectors.EVENT_READ, self.sent)
        self.ready.register(sys.stdin.buffer.raw, selectors.EVENT_READ, self.told)
        for nic in self.nics:
            self.ready.register(nic.socket, selectors.EVENT_READ, lambda nic=nic: self.received(nic))

    def sent(self):
        """A frame of the own IP stack: to a host of the table by all NICs in turn, and to others by the first one."""
        data = os.read(self.tap, LONGEST)
        header, frame = data[:VNET_HDR], data[VNET_HDR:]
        nic, to = self.nics[0], frame[:6]
        macs = self.arp_plus.by_mac(to)
        if macs is not None:
            nic, to = self.nics[self.turn % len(self.nics)], macs[self.turn % len(macs)]
            self.turn += 1
        nic.send(to + nic.mac + frame[12:], header)

    def received(self, nic):
        """A frame of the wire: ARP+, or one for the own IP stack, as if it had come by one NIC from one."""
        try:
            data = nic.socket.recv(LONGEST)
        except OSError:  # the link went away
            return
        header, frame = data[:VNET_HDR], data[VNET_HDR:]
        to, source = frame[:6], frame[6:12]
        if frame[12:14] == ETHERTYPE:
            if to == nic.mac or group(to):
                self.arp_plus.receive(nic, frame)
        elif to == nic.mac or group(to) and nic is self.nics[0] and source not in {nic.mac for nic in self.nics}:
            macs = self.arp_plus.by_mac(source)
            os.write(self.tap, header + (to if group(to) else self.mac) + (macs[0] if macs else source) + frame[12:])

    def told(self):
        line = sys.stdin.buffer.raw.readline().decode().split()
        if not line:
            self.arp_plus.stop()
            sys.exit()
        word, name = line
        if word == "del":
            nic = next(nic for nic in self.nics if nic.name == name)
            self.nics.remove(nic)
            self.ready.unregister(nic.socket)
            nic.socket.close()
        elif word == "add":
            nic = Nic(name)
            self.nics.append(nic)
            self.ready.register(nic.socket, selectors.EVENT_READ, lambda: self.received(nic))
        self.arp_plus.change()

    def run(self):
        self.arp_plus.start()
        self.arp_plus.tell()
        while True:
            for key, _ in self.ready.select():
                key.data()


Host(ipaddress.ip_interface(sys.argv[1]), sys.argv[2:]).run()
