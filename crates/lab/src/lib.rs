//! Hosts in network namespaces: for the lab command, tests and benchmarks.
