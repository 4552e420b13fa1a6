# linkbraid: the commands of the project. `make` alone lists them.

PREFIX     ?= /usr/local
DESTDIR    ?=
CARGO      ?= cargo
# Experiments for `make bench`, see `linkbraid bench list`.
BENCH      ?= scaling overhead unequal plain
# How long `make fuzz` gives each target.
FUZZ_SECONDS ?= 60
# Options of cargo-mutants for `make mutants`, say --file crates/proto/src/plan.rs; all files take hours.
MUTANTS    ?=

BINDIR     := $(PREFIX)/bin
MANDIR     := $(PREFIX)/share/man
BASHDIR    := $(PREFIX)/share/bash-completion/completions
ZSHDIR     ?= $(PREFIX)/share/zsh/site-functions
FISHDIR    := $(PREFIX)/share/fish/vendor_completions.d
DOCDIR     ?= $(PREFIX)/share/doc/linkbraid
UNITDIR    ?= $(PREFIX)/lib/systemd/system
NETWORKDIR ?= $(PREFIX)/lib/systemd/network
UDEVDIR    ?= $(PREFIX)/lib/udev/rules.d
# Where ifupdown, ifupdown2 and dhclient look for scripts, whatever the prefix.
IFUPDIR    ?= /etc/network/if-pre-up.d
ADDONDIR   ?= /usr/share/ifupdown2/addons
DHCPDIR    ?= /etc/dhcp/dhclient-enter-hooks.d
# Where Wireshark and tshark look for dissectors, whatever the prefix.
SHARKDIR   ?= /usr/lib/$(shell cc -print-multiarch 2>/dev/null)/wireshark/plugins
# Where Debian's sos looks for plugins, whatever the prefix.
SOSDIR     ?= /usr/lib/python3/dist-packages/sos/report/plugins
# The page for Cockpit.
COCKPITDIR := $(PREFIX)/share/cockpit/linkbraid
# Programs that the command and the daemon run, and nobody else does.
LIBEXECDIR := $(PREFIX)/libexec/linkbraid

# The units of ifupdown, which are told to wait for bonds.
IFUPUNITS  := networking.service ifup@.service

TARGET_DIR := $(or $(CARGO_TARGET_DIR),target)
BIN        := $(TARGET_DIR)/$(CARGO_BUILD_TARGET:%=%/)release/linkbraid
# Runs what was built for another architecture, such as qemu-aarch64.
RUN        ?=
PROGRAMS   := linkbraid-lab linkbraid-bench linkbraid-ofi linkbraid-etcd
# Where runtimes of containers look for plugins, and what they find there.
CNIDIR     := $(PREFIX)/lib/cni
PLUGIN     := linkbraid-cni

# rustup puts cargo here; a root shell often lacks it in its PATH.
export PATH := $(PATH):$(HOME)/.cargo/bin

.DEFAULT_GOAL := help
.PHONY: help deps build demo test test-bare deb deb-arm64 test-deb bench docs vm-doctor vm-cluster vm-rdma vm-drivers vm-debian vm-guides vm-life vm-migrate fmt lint fuzz mutants install uninstall

help: ## list these commands
	@sed -n 's/^\([a-z0-9-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

deps: ## install the Debian packages that are missing
	@scripts/deps.sh build run test

build: ## build the command with optimisations
	@scripts/deps.sh build
	$(CARGO) build --release --locked --bin linkbraid $(PROGRAMS:%=--bin %) --bin $(PLUGIN)

demo: ## install what is missing, build, and show one TCP flow over four links
	@scripts/deps.sh build run
	@scripts/need-root.sh demo
	$(CARGO) build --release --locked --bin linkbraid --bin linkbraid-lab
	$(BIN) lab demo

test: ## install what is missing and run every test (as root)
	@scripts/deps.sh build run test
	@scripts/need-root.sh test
	@CARGO="$(CARGO)" LINKBRAID_BIN="$(abspath $(BIN))" scripts/test.sh

test-bare: ## try 'make demo', and what 'make test' installs, in a minimal Debian 12 (as root; downloads it)
	@scripts/deps.sh bare
	@scripts/need-root.sh test-bare
	@scripts/test-bare.sh

deb: ## build Debian packages for this machine's architecture, in target/debian
	@scripts/deps.sh build deb
	@rm -rf $(TARGET_DIR)/debian
	debian/rules clean
	debian/rules binary
	debian/rules clean
	@ls $(TARGET_DIR)/debian/*.deb

deb-arm64: ## the same for arm64, on amd64, in target/arm64/debian; checks them, too (as root; downloads a Debian 12)
	@scripts/deps.sh build bare
	@scripts/need-root.sh deb-arm64
	@CARGO="$(CARGO)" scripts/deb-arm64.sh

test-deb: ## build the packages; check, install, upgrade and purge them in a minimal Debian 12 (as root; downloads it)
	@scripts/deps.sh build deb bare
	@scripts/need-root.sh test-deb
	@$(MAKE) --no-print-directory deb
	@scripts/test-deb.sh $(TARGET_DIR)/debian

bench: ## run the benchmarks BENCH="NAME..." (as root); results go to results/
	@scripts/deps.sh build run
	@scripts/need-root.sh bench
	$(CARGO) build --release --locked --bin linkbraid --bin linkbraid-bench
	$(BIN) bench run $(BENCH)

docs: ## make a site of the documents, in target/book/site
	@CARGO="$(CARGO)" scripts/book.sh $(TARGET_DIR)/book

vm-doctor: ## what doctor says of faults that are made one after the other (as root; boots a guest)
	@scripts/deps.sh build run test
	@scripts/need-root.sh vm-doctor
	$(CARGO) build --release --locked --bin linkbraid
	LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/doctor

vm-cluster: ## Corosync's token beside full links, where the processor has time (as root; boots a guest)
	@scripts/deps.sh build run test
	@scripts/need-root.sh vm-cluster
	$(CARGO) build --release --locked --bin linkbraid
	CARGO="$(CARGO)" LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/cluster

vm-rdma: ## a fabric over soft RoCE between two kernels, and its faults (as root; boots two guests)
	@scripts/deps.sh build run test
	@scripts/need-root.sh vm-rdma
	$(CARGO) build --release --locked --bin linkbraid --bin linkbraid-ofi
	LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/fabric --rdma

vm-drivers: ## what becomes of a bond of emulated NICs (as root; boots two guests for each driver)
	@scripts/deps.sh build run test
	@scripts/need-root.sh vm-drivers
	$(CARGO) build --release --locked --bin linkbraid
	LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/drivers

vm-debian: ## whether managers of networks leave members alone, and the service keeps its limits (as root; downloads and boots systems)
	@scripts/deps.sh build run test deb bare
	@scripts/need-root.sh vm-debian
	@$(MAKE) --no-print-directory deb
	LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/debian --packages $(TARGET_DIR)/debian

vm-guides: ## follow the guides in a Debian 12, over one SSH session (as root; downloads and boots systems)
	@scripts/deps.sh build run test deb bare
	@scripts/need-root.sh vm-guides
	@$(MAKE) --no-print-directory deb
	LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/guides --packages $(TARGET_DIR)/debian

vm-life: ## a Debian 12 from the installation to the purge, with a record of its console (as root; downloads and boots a system)
	@scripts/deps.sh build run test deb bare
	@scripts/need-root.sh vm-life
	@$(MAKE) --no-print-directory deb
	LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/life --packages $(TARGET_DIR)/debian

vm-migrate: ## a virtual machine moves to another host while others talk to it, and a link fails (as root; boots a guest)
	@scripts/deps.sh build run test
	@scripts/need-root.sh vm-migrate
	$(CARGO) build --release --locked --bin linkbraid
	LINKBRAID_BIN="$(abspath $(BIN))" tests/vm/migrate

fmt: ## format the code
	$(CARGO) fmt --all

lint: ## check format and lints
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fuzz: ## fuzz every parser, FUZZ_SECONDS each
	@CARGO="$(CARGO)" scripts/fuzz.sh $(FUZZ_SECONDS)

mutants: ## change the protocol's code place by place; some test must notice each change (takes hours)
	@CARGO="$(CARGO)" scripts/mutants.sh $(MUTANTS)

$(BIN):
	@$(MAKE) --no-print-directory build

install: $(BIN) ## install what is built under PREFIX (and DESTDIR)
	install -D -m 755 $(BIN) $(DESTDIR)$(BINDIR)/linkbraid
	install -D -m 755 -t $(DESTDIR)$(LIBEXECDIR) $(PROGRAMS:%=$(dir $(BIN))%)
	install -D -m 755 -t $(DESTDIR)$(CNIDIR) $(dir $(BIN))$(PLUGIN)
	install -d $(DESTDIR)$(MANDIR) $(DESTDIR)$(UNITDIR)
	sed 's|/usr/local/bin/|$(BINDIR)/|' dist/linkbraid.service > $(DESTDIR)$(UNITDIR)/linkbraid.service
	chmod 644 $(DESTDIR)$(UNITDIR)/linkbraid.service
	# What has managers of networks leave members alone.
	install -D -m 644 dist/82-linkbraid.rules $(DESTDIR)$(UDEVDIR)/82-linkbraid.rules
	install -D -m 644 -t $(DESTDIR)$(NETWORKDIR) dist/00-linkbraid.network dist/zzz-linkbraid-bond.network
	for unit in $(IFUPUNITS); do install -D -m 644 dist/ifupdown.conf $(DESTDIR)$(UNITDIR)/$$unit.d/linkbraid.conf || exit 1; done
	install -D -m 755 dist/if-pre-up $(DESTDIR)$(IFUPDIR)/linkbraid
	install -D -m 644 dist/ifupdown2-addon.py $(DESTDIR)$(ADDONDIR)/linkbraid.py
	install -D -m 644 dist/dhclient-enter-hook $(DESTDIR)$(DHCPDIR)/linkbraid
	install -D -m 644 dist/wireshark/linkbraid.lua $(DESTDIR)$(SHARKDIR)/linkbraid.lua
	install -D -m 644 dist/sos-plugin.py $(DESTDIR)$(SOSDIR)/linkbraid.py
	install -D -m 644 -t $(DESTDIR)$(COCKPITDIR) dist/cockpit/*
	# An example: /etc/linkbraid.toml is the administrator's.
	install -D -m 644 dist/linkbraid.toml $(DESTDIR)$(DOCDIR)/linkbraid.toml
	# Examples, too: rules for Prometheus and a dashboard for Grafana.
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/prometheus dist/prometheus/*.yml
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/grafana dist/grafana/linkbraid.json
	install -D -m 644 -t $(DESTDIR)$(DOCDIR)/kubernetes dist/kubernetes/*
	$(RUN) $(BIN) man $(DESTDIR)$(MANDIR)
	install -d $(DESTDIR)$(BASHDIR) $(DESTDIR)$(ZSHDIR) $(DESTDIR)$(FISHDIR)
	$(RUN) $(BIN) completions bash > $(DESTDIR)$(BASHDIR)/linkbraid
	$(RUN) $(BIN) completions zsh > $(DESTDIR)$(ZSHDIR)/_linkbraid
	$(RUN) $(BIN) completions fish > $(DESTDIR)$(FISHDIR)/linkbraid.fish

uninstall: ## remove what install put in place
	rm -f $(DESTDIR)$(BINDIR)/linkbraid $(DESTDIR)$(UNITDIR)/linkbraid.service $(DESTDIR)$(DOCDIR)/linkbraid.toml
	rm -f $(PROGRAMS:%=$(DESTDIR)$(LIBEXECDIR)/%) $(DESTDIR)$(CNIDIR)/$(PLUGIN)
	rm -f $(DESTDIR)$(UDEVDIR)/82-linkbraid.rules $(DESTDIR)$(NETWORKDIR)/00-linkbraid.network $(DESTDIR)$(NETWORKDIR)/zzz-linkbraid-bond.network
	rm -f $(IFUPUNITS:%=$(DESTDIR)$(UNITDIR)/%.d/linkbraid.conf)
	rm -f $(DESTDIR)$(IFUPDIR)/linkbraid $(DESTDIR)$(ADDONDIR)/linkbraid.py $(DESTDIR)$(DHCPDIR)/linkbraid
	rm -f $(patsubst dist/%,$(DESTDIR)$(DOCDIR)/%,$(wildcard dist/prometheus/*.yml) dist/grafana/linkbraid.json $(wildcard dist/kubernetes/*))
	rm -f $(DESTDIR)$(SHARKDIR)/linkbraid.lua $(DESTDIR)$(SOSDIR)/linkbraid.py
	rm -rf $(DESTDIR)$(COCKPITDIR)
	rm -f $(DESTDIR)$(MANDIR)/man8/linkbraid.8 $(DESTDIR)$(MANDIR)/man8/linkbraid-*.8 $(DESTDIR)$(MANDIR)/man5/linkbraid.toml.5
	rm -f $(DESTDIR)$(BASHDIR)/linkbraid $(DESTDIR)$(ZSHDIR)/_linkbraid $(DESTDIR)$(FISHDIR)/linkbraid.fish
