//! Who may ask the daemon for what: root for anything, users of the daemon's group for what only shows something, and nobody else.

use linkbraid_lab::{Topology, daemon};
use linkbraid_netns_tests::{BOND, Net, Said};
use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

/// A group that no machine has.
const GROUP: u32 = 64_242;
/// Some user.
const USER: u32 = 64_243;

/// A copy of the command where every user can reach it; removed with it.
struct ForAll(PathBuf);

impl ForAll {
    fn new() -> Self {
        let folder = std::env::temp_dir().join(format!("linkbraid-socket-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("makes");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("sets");
        fs::copy(daemon::binary().expect("linkbraid is built"), folder.join("linkbraid")).expect("copies");
        Self(folder)
    }

    /// What the command says to a user who is a member of that group.
    fn say(&self, net: &Net, group: u32, words: &str) -> Said {
        let (user, group) = (USER.to_string(), group.to_string());
        let mut command = net.host("a").linkbraid_command("setpriv");
        command.args(["--reuid", &user, "--regid", &group, "--clear-groups"]).arg(self.0.join("linkbraid"));
        Said::by(command.args(words.split(' ')))
    }
}

impl Drop for ForAll {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn users_of_the_daemons_group_may_read_and_nobody_else_may() {
    let net = Net::up(Topology::symmetric(1, 2, None));
    let command = ForAll::new();
    let group = GROUP.to_string();
    net.start_behind("a", &["setpriv", "--regid", &group, "--clear-groups"], &[]);
    net.bond("a");
    for words in ["show", "peers", "lanes", "stats", "class show", "fabric show", "show --json"] {
        let said = command.say(&net, GROUP, words);
        assert_eq!((said.code, said.err.as_str()), (0, ""), "{words}: {said:?}");
    }
    for words in [format!("bond del {BOND}"), format!("leave {BOND}"), "check eth0".to_owned()] {
        let error = "request: refused: only root may ask for it; users of the group that may read may not";
        let hint = command.say(&net, GROUP, &words).refused(1, error);
        assert_eq!(hint, format!("sudo linkbraid {words}"));
    }
    let is_kept_out = |said: Said| {
        assert!(
            said.code == 1 && said.err.contains("permission denied; only root may use this socket"),
            "{said:?}"
        );
    };
    is_kept_out(command.say(&net, USER, "show"));
    // Root alone, without such a group.
    net.stop("a");
    net.start("a", &[]);
    is_kept_out(command.say(&net, GROUP, "show"));
    net.ok("a", &format!("bond del {BOND}"));
}
