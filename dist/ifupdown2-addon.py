"""ifupdown2 addon: a bond keeps its ports, and a member gets no address, whatever /etc/network/interfaces says.

ifupdown2 makes a bridge's ports those that the file names, and deletes the bridge at `ifdown`. A bond is a bridge, and has the
ports that linkbraid gives it. So the lines about bridges of a bond, and the addresses of a member, are left out before any other
addon sees them. So is a bond among the ports of a bridge, whose addresses ifupdown2 would take away before the kernel refuses it.
/etc/network/ifupdown2/addons.conf has to name this addon first, as `pre-up,linkbraid`. Then if-pre-up.d/linkbraid is not run.
"""

import os

try:
    from ifupdown2.ifupdownaddons.modulebase import moduleBase
except ImportError:
    from ifupdownaddons.modulebase import moduleBase

# Where the daemon has a file for each bond, and one for each member.
STATE = "/run/linkbraid/linkbraid.sock.state"


def is_bond(name):
    return os.path.exists(f"{STATE}/{name}.json")


def is_member(name):
    return os.path.exists(f"{STATE}/members/{name}")


class linkbraid(moduleBase):
    """ifupdown2 takes the class that has the name of the file."""

    _modinfo = {"mhelp": "bonds of linkbraid and their members", "attrs": {}}

    def get_dependent_ifacenames(self, ifaceobj, ifacenames_all=None):
        """Every command asks all addons for the ports of an interface first, so that is when lines can be left out."""
        if is_bond(ifaceobj.name):
            self._leave_out(ifaceobj, [line for line in ifaceobj.config if line.startswith("bridge")])
        elif is_member(ifaceobj.name):
            if ifaceobj.addr_method in ("dhcp", "static"):
                ifaceobj.addr_method = "manual"
            self._leave_out(ifaceobj, [line for line in ifaceobj.config if line in ("address", "gateway")])
        else:
            ports = " ".join(ifaceobj.get_attr_value("bridge-ports") or []).split()
            for bond in filter(is_bond, ports):
                self._refuse(ifaceobj, bond, [port for port in ports if not is_bond(port)])

    def _refuse(self, ifaceobj, bond, kept):
        name = ifaceobj.name
        self.logger.error(f"{name}: '{bond}' is not its port: a bond is a bridge, and no bridge is a port of another one")
        self.logger.error(f"  hint: in /etc/linkbraid.toml: [bond.{name}] in place of [bond.{bond}]")
        ifaceobj.replace_config("bridge-ports", " ".join(kept) or "none")

    def _leave_out(self, ifaceobj, lines):
        for line in lines:
            ifaceobj.delete_config(line)
        if lines:
            self.logger.info(f"{ifaceobj.name}: left out, as linkbraid has this interface: {', '.join(lines)}")
