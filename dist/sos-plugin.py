"""What `sos report` collects of linkbraid: what the daemon says, its log, its configuration and its state, and no key."""

from sos.report.plugins import DebianPlugin, IndependentPlugin, Plugin

# All of these only ask. Text for who reads, JSON for programs.
COMMANDS = [
    "show",
    "check",
    "apply --dry-run",
    "--json show",
    "--json peers",
    "--json lanes",
    "--json class show",
    "--json fabric show",
    "--json stats --all",
    "--json stats --latency",
    "--json check",
]


class Linkbraid(Plugin, IndependentPlugin, DebianPlugin):
    """Members have the names that sos 4.0 and its successors look for; on Debian, 4.0 takes plugins for Debian only."""

    short_desc = "Bonds and fabrics of linkbraid"
    plugin_name = "linkbraid"
    profiles = ("network", "system")
    packages = ("linkbraid",)
    commands = ("linkbraid",)

    def setup(self):
        # Keys have any name but that of a configuration file; this is how docs/security.md calls them.
        self.add_forbidden_path("/etc/linkbraid/*.key")
        self.add_copy_spec([
            "/etc/linkbraid.toml",
            "/etc/linkbraid/*.toml",
            "/run/linkbraid/linkbraid.sock.state",
        ])
        self.add_cmd_output(["linkbraid --version"] + [f"linkbraid {command}" for command in COMMANDS])
        self.add_service_status("linkbraid")
        self.add_journal(units="linkbraid")

    def postproc(self):
        # A key in a file that should have none: 32 bytes in hexadecimal digits.
        self.do_path_regex_sub(r"/etc/linkbraid", r"\b[0-9a-fA-F]{64}\b", "(a key)")
