//! `linkbraid check`: asks the daemon, which knows its bonds; looks itself where none runs.

use linkbraid_api::{FindingRecord, LinkName, Records, Reply, Request};
use linkbraid_terminal::{
    args::STATE_ENV,
    client::{self, Failure},
    report::Failed,
};
use std::env;
use std::path::Path;

/// What is found, in the order in which it is shown.
pub fn findings(socket: &Path, interfaces: Vec<LinkName>) -> Result<Vec<FindingRecord>, Failed> {
    let request = Request::Check { interfaces: interfaces.clone() };
    match client::ask(socket, &request, client::REPLY_TIMEOUT) {
        Ok(Reply::Records(Records::Findings(findings))) => Ok(findings),
        Ok(Reply::Error(error)) => Err(Failed::refused(error)),
        Ok(_) => Err(client::unexpected(socket, "cannot check")),
        Err(Failure::NoDaemon(error)) => {
            let state = env::var_os(STATE_ENV).map(Into::into);
            let start = error.hint.unwrap_or_default();
            linkbraid_daemon::check(socket, state, start, interfaces).map_err(Failed::refused)
        }
        Err(failure) => Err(failure.into()),
    }
}
