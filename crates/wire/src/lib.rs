//! Byte layouts of ARP+ messages: no I/O, no unsafe.
