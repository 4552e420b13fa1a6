//! netlink, packet sockets.
