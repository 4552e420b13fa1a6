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
        self.map_err(|error| {
            let cause = match std::error::Error::source(&error) {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            };
            Error::new(object, what, cause)
        })
    }
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
