//! Errors of the parts, in the one shape the user sees.

use linkbraid_api::Error;

/// Gives an error of a part its object and what failed.
pub(crate) trait About<T> {
    /// `OBJECT: WHAT: CAUSE`, the cause being the part's own words.
    fn about(self, object: &str, what: impl Into<String>) -> Result<T, Error>;
}

impl<T> About<T> for linkbraid_link::Result<T> {
    fn about(self, object: &str, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|error| Error::new(object, what, format!("{} ({})", error.cause(), error.object)))
    }
}

impl<T> About<T> for linkbraid_dataplane::Result<T> {
    fn about(self, object: &str, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|error| match missing(&error) {
            None if is_forbidden(&error) => {
                let cause = "needs CAP_SYS_ADMIN, by which BPF programs and maps are found";
                Error::new(object, what, cause).hint("sudo linkbraid daemon")
            }
            Some(feature) => Error::new(object, what, feature)
                .hint("grep -E 'BPF|XGRESS|SCH_INGRESS' /boot/config-$(uname -r)"),
            None => {
                let error_of = Error::new(object, what, error.to_string());
                match error {
                    // The process that looks for them may have been killed.
                    linkbraid_dataplane::Error::NotFound(_) => error_of.hint("systemctl restart linkbraid"),
                    _ => error_of,
                }
            }
        })
    }
}

/// Whether this process may not look for BPF programs and maps.
fn is_forbidden(error: &linkbraid_dataplane::Error) -> bool {
    use linkbraid_dataplane::{Error as E, Refusal};
    matches!(error, E::NotFound(cause) if Refusal::of(cause) == Refusal::NotPermitted)
}

/// What the kernel or this process is missing, if that is why it refused.
fn missing(error: &linkbraid_dataplane::Error) -> Option<&'static str> {
    use linkbraid_dataplane::{Error as E, Refusal};
    let (E::Load(cause) | E::Attach { cause, .. } | E::Map { cause, .. }) = error else { return None };
    let is_load = matches!(error, E::Load(_));
    Some(match (Refusal::of(cause), is_load) {
        (Refusal::NotPermitted, _) => "needs CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN",
        (Refusal::Unsupported, true) => "this kernel has no eBPF (CONFIG_BPF_SYSCALL)",
        (Refusal::Unsupported, false) => {
            "this kernel has neither tcx (6.6, CONFIG_NET_XGRESS) nor clsact (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF)"
        }
        (Refusal::Invalid, true) => {
            "this kernel's verifier refuses the programs; Linux 6.1 or newer is needed"
        }
        _ => return None,
    })
}

impl<T> About<T> for std::io::Result<T> {
    fn about(self, object: &str, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|error| {
            let text = error.to_string().to_lowercase();
            let text = text.split(" (os error").next().unwrap_or_default().to_owned();
            Error::new(object, what, text)
        })
    }
}
